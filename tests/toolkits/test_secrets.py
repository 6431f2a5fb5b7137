"""A service that tells everything it was sent: nothing of the credential comes back, in no form."""

from __future__ import annotations

import base64
import json
import urllib.parse

import pytest
from tests.helpers.leaks import Search
from tests.toolkits.service import CANARY, Asked, basic, bearer, calling, key, oauth, order, serving

from workbench.contracts.service_calls import ServiceAnswer
from workbench.errors import WorkbenchError
from workbench.model.connection import Credential
from workbench.toolkits.answers import as_result

CREDENTIALS = [
    bearer(), oauth(), key(), key(place="query", name="key"), basic(), basic(username=CANARY, password=""),
]  # fmt: skip
WAYS = ["json", "escaped", "text", "file", "error", "headers", "packed", "hex"]


def _told(asked: Asked) -> str:
    return json.dumps({"target": asked.target, "headers": asked.headers})


def _leaks(*texts: str | bytes) -> set[tuple[str, str]]:
    search = Search({"canary": CANARY.encode()})
    for text in texts:
        search.text("answer", text)
        search.text("answer", urllib.parse.unquote_plus(text if isinstance(text, str) else text.decode("latin-1")))
    return search.found


def _all_of(answer: ServiceAnswer) -> list[str | bytes]:
    result = as_result(answer, "it")
    found: list[str | bytes] = [json.dumps(answer.data), json.dumps(dict(answer.headers)), answer.problem, repr(answer)]
    found += [json.dumps(result.data), result.error, repr(result)]
    if answer.file is not None:
        found += [answer.file.content, answer.file.name]
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("credential", CREDENTIALS, ids=lambda one: str(one.kind))
async def test_nothing_of_a_credential_comes_back(credential: Credential, way: str) -> None:
    async def reflect(asked: Asked) -> None:
        told = _told(asked)
        match way:
            case "json":
                await asked.json(told)
            case "escaped":
                await asked.json('{"a": "' + "".join(f"\\u{ord(one):04x}" for one in told) + '"}')
            case "text":
                await asked.answer(200, told.encode(), {"Content-Type": "text/plain"})
            case "file":
                await asked.answer(200, b"\0" + told.encode(), {"Content-Type": "image/png"})
            case "error":
                await asked.json(json.dumps({"error": {"message": told, CANARY: 1}}), 403)
            case "headers":
                await asked.json("{}", Link=told.replace("\n", ""), Location=asked.target)
            case "packed":
                around = [base64.b64encode(b"x" * number + told.encode()).decode() for number in range(3)]
                await asked.json(json.dumps({"packed": around, "key": base64.b64encode(CANARY.encode()).decode()}))
            case _:
                await asked.json(json.dumps({"hex": CANARY.encode().hex()}))

    async with serving(reflect) as service, calling() as caller:
        answer = await caller.call(order(service, credential=credential))
    assert answer.status is not None
    texts = _all_of(answer)
    assert not _leaks(*texts)
    assert all(CANARY.encode().hex() not in (one if isinstance(one, str) else one.decode("latin-1")) for one in texts)
    assert CANARY in urllib.parse.unquote(repr(service.seen[0].headers) + service.seen[0].target) or "Basic" in repr(
        service.seen[0].headers
    )


async def test_nor_in_an_error() -> None:
    async def never(asked: Asked) -> None:
        raise AssertionError

    async with serving(never) as service:
        pass
    async with calling() as caller:
        url = f"{service.url}/{urllib.parse.quote(CANARY, safe='')}?key={CANARY}"
        for hosts in ((service.host,), ("example.com",)):
            with pytest.raises(WorkbenchError) as caught:
                await caller.call(order(service, url[len(service.url) :], hosts=hosts, credential=bearer()))
            assert not _leaks(caught.value.message, json.dumps(caught.value.context), repr(caught.value))


async def test_what_is_no_secret_stays() -> None:
    async def tell(asked: Asked) -> None:
        await asked.json('{"email": "ann@example.com", "note": "a***b"}')

    async with serving(tell) as service, calling() as caller:
        assert (await caller.call(order(service, credential=basic()))).data["email"] == "ann@example.com"


def test_orders_and_answers_print_nothing_of_it() -> None:
    assert CANARY not in repr(order(type("S", (), {"host": "h", "url": f"http://h/{CANARY}"})(), credential=bearer()))
