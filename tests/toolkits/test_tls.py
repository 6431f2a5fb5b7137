"""A credential goes over TLS to who can prove that they are the service, and to nobody else."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

import pytest
from tests.egress.serving import Names, Visitor, serving
from tests.toolkits.service import CANARY, HERE, POLICY, QUICK, bearer

from workbench.contracts.service_calls import ServiceOrder
from workbench.egress.policy import AddressPolicy
from workbench.errors import Denied, UpstreamRefused
from workbench.toolkits.sending import ServiceCaller


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """For api.example alone, signed by itself."""
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=api.example", "-addext", "subjectAltName=DNS:api.example", "-keyout", str(key),
         "-out", str(cert)],
        check=True, capture_output=True,
    )  # fmt: skip
    return cert, key


async def _answer(visitor: Visitor) -> None:
    await visitor.answer("200 OK", b"{}", Content_Type="application/json")


def _order(port: int, host: str) -> ServiceOrder:
    return ServiceOrder(
        method="POST", url=f"https://{host}:{port}/", hosts=(f"*.example:{port}",), credential=bearer(), body=b"private"
    )


async def test_only_who_has_the_certificate_gets_anything(certificate: tuple[Path, Path]) -> None:
    at_server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    at_server.load_cert_chain(*certificate)
    names = Names(api_example=[[HERE]], other_example=[[HERE]])
    trusting = ssl.create_default_context(cafile=str(certificate[0]))
    async with serving(_answer, HERE, tls=at_server) as service:
        for context, host in ((trusting, "other.example"), (None, "api.example")):
            caller = ServiceCaller(POLICY, patience=QUICK, resolver=names, tls=context)
            with pytest.raises(UpstreamRefused, match="no TLS with") as caught:
                await caller.call(_order(service.port, host))
            assert CANARY not in caught.value.message
            await caller.aclose()
        assert service.seen == []
        caller = ServiceCaller(POLICY, patience=QUICK, resolver=names, tls=trusting)
        assert (await caller.call(_order(service.port, "api.example"))).status == 200
        await caller.aclose()
    assert [one.header("authorization") for one in service.seen] == [f"Bearer {CANARY}"]


async def test_a_name_that_leads_to_a_private_address_is_not_asked() -> None:
    caller = ServiceCaller(AddressPolicy(), patience=QUICK, resolver=Names(api_example=[[HERE]]))
    with pytest.raises(Denied, match="loopback"):
        await caller.call(_order(443, "api.example"))
    await caller.aclose()
