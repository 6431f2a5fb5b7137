"""Raw calls: where a relative address leads, and what an account can put into it."""

from __future__ import annotations

import pytest
from tests.unit.core.router.sources import Source, session
from tests.unit.core.router.world import World

from workbench.contracts.service_calls import ServiceAnswer, ServiceOrder
from workbench.core.router.accounts import NoAccounts, Standing
from workbench.core.router.catalogue import Catalogue
from workbench.core.router.proxying import Proxying, RawCall
from workbench.errors import Denied, InvalidRequest, NotConfigured
from workbench.model.approval import Permissions, Policy
from workbench.model.configuration import Choice, SessionConfig, ToolChoice
from workbench.model.connection import Credential, Secret
from workbench.model.session import Session
from workbench.model.toolkit import AuthKind, AuthScheme, Reach, ReturnedFile, Toolkit

KIT = Toolkit(
    slug="desk",
    name="Desk",
    base_url="https://{subdomain}.desk.test/api/",
    hosts=("*.desk.test",),
    auth=(AuthScheme(kind=AuthKind.API_KEY),),
)
NOWHERE = Toolkit(slug="nowhere", name="Nowhere", no_auth=True)


class _One(NoAccounts):
    def __init__(self, subdomain: str) -> None:
        self._values = {"api_key": Secret("k"), "subdomain": Secret(subdomain)}

    async def standing(self, session: Session, toolkit: Toolkit) -> Standing:
        del session
        return Standing(reach=Reach(toolkit=toolkit.slug, is_active=True, words="yes"))

    async def credential_for(self, session: Session, toolkit: Toolkit, account: str) -> Credential:
        del session, account
        return Credential(kind=AuthKind.API_KEY, scheme=toolkit.auth[0], values=self._values, account="ca_1")


class _Calls:
    def __init__(self, answer: ServiceAnswer) -> None:
        self.answer = answer
        self.orders: list[ServiceOrder] = []

    async def call(self, order: ServiceOrder) -> ServiceAnswer:
        self.orders.append(order)
        return self.answer


def _proxying(world: World, calls: _Calls, subdomain: str = "acme") -> Proxying:
    return Proxying(
        catalogue=Catalogue([Source((KIT, NOWHERE), ())]),
        accounts=_One(subdomain),
        services=calls,
        clock=world.clock,
        mounts_of=lambda _: world.bench.mounts,
    )


async def test_a_relative_address_is_below_the_services_own(world: World) -> None:
    calls = _Calls(ServiceAnswer(status=200, data={}))
    proxying = _proxying(world, calls)
    for endpoint in ("tickets", "/tickets", "//tickets"):
        ready = await proxying.ready(session(), RawCall(toolkit="Desk", endpoint=endpoint, method="get"))
        assert (await proxying.carry_out(session(), ready)).status == 200
    assert {one.url for one in calls.orders} == {"https://acme.desk.test/api/tickets"}
    assert {(one.method, one.hosts) for one in calls.orders} == {("GET", ("acme.desk.test",))}


@pytest.mark.parametrize("subdomain", ["evil.example/", "a.b", "", "a@b", "x#y", "x\ny", "é"])
async def test_an_account_leads_to_no_other_host(world: World, subdomain: str) -> None:
    calls = _Calls(ServiceAnswer(status=200))
    proxying = _proxying(world, calls, subdomain)
    ready = await proxying.ready(session(), RawCall(toolkit="desk", endpoint="/x", method="GET"))
    with pytest.raises(InvalidRequest, match="connect it again"):
        await proxying.carry_out(session(), ready)
    assert calls.orders == []


async def test_a_toolkit_without_hosts_is_not_called_directly(world: World) -> None:
    with pytest.raises(NotConfigured, match="use its tools"):
        await _proxying(world, _Calls(ServiceAnswer())).ready(
            session(), RawCall(toolkit="nowhere", endpoint="/", method="GET")
        )


async def test_a_file_is_kept_and_one_for_which_there_is_no_room_is_said_to_have_come(world: World) -> None:
    here = await world.session()
    for size, kept in ((10, True), (here.spec.tier.files_bytes + 1, False)):
        file = ReturnedFile(name="a.png", content_type="image/png", content=b"" if not kept else bytes(size))
        if not kept:
            file = ReturnedFile(name="a.png", content_type="image/png", content=_Huge(size))
        proxying = _proxying(world, _Calls(ServiceAnswer(status=200, file=file)))
        ready = await proxying.ready(here, RawCall(toolkit="desk", endpoint="/x", method="GET"))
        result = await proxying.carry_out(here, ready)
        assert (result.file is not None) == kept
        assert ("could not be kept" in result.problem) == (not kept)


class _Huge(bytes):
    """That says that it is larger than anybody has room for."""

    _size: int

    def __new__(cls, size: int) -> _Huge:
        made = super().__new__(cls)
        made._size = size
        return made

    def __len__(self) -> int:
        return self._size


@pytest.mark.parametrize("name", ["X-HTTP-Method-Override", "x-http-method", "X-Method-Override"])
async def test_what_reads_cannot_be_made_to_delete_by_a_header(world: World, name: str) -> None:
    call = RawCall(toolkit="desk", endpoint="/x", method="GET", headers=((name, "DELETE"),))
    with pytest.raises(InvalidRequest, match="say what is meant by `method`"):
        await _proxying(world, _Calls(ServiceAnswer())).ready(session(), call)


def _tools(**choice: tuple[str, ...]) -> SessionConfig:
    return SessionConfig(tools={"desk": ToolChoice(tools=Choice(**choice))})


def _overrides(**policies: Policy) -> SessionConfig:
    return SessionConfig(permissions=Permissions(overrides=policies))


@pytest.mark.parametrize(
    ("config", "method", "expected"),
    [
        (SessionConfig(), "POST", Policy.ALWAYS_ALLOW),
        (_tools(disable=("DESK_SEND",)), "GET", None),
        (_tools(enable=("DESK_LOOK",)), "GET", None),
        (_tools(enable=("DESK_LOOK", "COMPOSIO_PROXY_EXECUTE")), "GET", Policy.ALWAYS_ALLOW),
        (SessionConfig(tags=Choice(enable=("readOnlyHint",))), "GET", Policy.ALWAYS_ALLOW),
        (SessionConfig(tags=Choice(enable=("readOnlyHint",))), "DELETE", None),
        (SessionConfig(tags=Choice(disable=("destructiveHint",))), "PATCH", None),
        (_tools(require_approval=("DESK_SEND",)), "POST", Policy.ASK_ALWAYS),
        (_overrides(DESK_SEND=Policy.ALWAYS_DENY), "POST", Policy.ALWAYS_DENY),
        (_overrides(desk_send=Policy.ASK_ONCE), "POST", Policy.ASK_ONCE),
        (_overrides(OTHER_SEND=Policy.ALWAYS_DENY), "POST", Policy.ALWAYS_ALLOW),
        (_overrides(DESK_SEND=Policy.ALWAYS_DENY, COMPOSIO_PROXY_EXECUTE=Policy.ALWAYS_ALLOW), "POST",
         Policy.ALWAYS_ALLOW),
    ],
)  # fmt: skip
async def test_a_raw_call_is_no_way_around_what_is_said_of_tools(
    world: World, config: SessionConfig, method: str, expected: Policy | None
) -> None:
    proxying = _proxying(world, _Calls(ServiceAnswer(status=200)))
    call = RawCall(toolkit="desk", endpoint="/x", method=method)
    if expected is None:
        with pytest.raises(Denied, match="no raw calls like this are made to desk"):
            await proxying.ready(session(config), call)
    else:
        assert (await proxying.ready(session(config), call)).considered.policy(config) is expected
