"""Where a service sends a call on to: within its toolkit with the credential, elsewhere without, and never with what
is sent.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.toolkits.service import CANARY, ELSEWHERE, FORBIDDEN, Asked, bearer, calling, key, order, serving

from workbench.toolkits import sending


async def _here(asked: Asked) -> None:
    await asked.json('{"arrived": true}')


async def test_within_the_toolkit_a_redirect_is_followed_with_the_credential() -> None:
    async def lead(asked: Asked) -> None:
        if asked.path == "/old":
            await asked.answer(302, headers={"Location": "/new?x=1"})
        else:
            await _here(asked)

    async with serving(lead) as service, calling() as caller:
        answer = await caller.call(order(service, "/old", credential=bearer(), headers=(("X-Mine", "1"),)))
    assert answer.data == {"arrived": True}
    assert [one.target for one in service.seen] == ["/old", "/new?x=1"]
    assert [one.header("authorization") for one in service.seen] == [f"Bearer {CANARY}"] * 2
    assert service.seen[1].header("x-mine") == "1"


async def test_to_another_host_it_is_followed_with_nothing_of_the_callers() -> None:
    async with serving(_here, ELSEWHERE) as other:

        async def lead(asked: Asked) -> None:
            await asked.answer(302, headers={"Location": f"{other.url}/file?signature=1"})

        for credential in (bearer(), key(place="query", name="key")):
            async with serving(lead) as service, calling() as caller:
                answer = await caller.call(order(service, credential=credential, headers=(("X-Mine", "1"),)))
            assert answer.data == {"arrived": True}
    for asked in other.seen:
        assert CANARY not in repr((asked.target, asked.headers))
        assert asked.target == "/file?signature=1"
        assert not asked.header("x-mine")
        assert not asked.header("authorization")


@pytest.mark.parametrize("status", [307, 308])
async def test_what_is_sent_is_never_sent_on_to_another_host(status: int) -> None:
    async with serving(_here, ELSEWHERE) as other:

        async def lead(asked: Asked) -> None:
            await asked.answer(status, headers={"Location": f"{other.url}/"})

        async with serving(lead) as service, calling() as caller:
            answer = await caller.call(order(service, method="POST", body=b"private", credential=bearer()))
    assert "not of this toolkit" in answer.problem
    assert other.seen == []


async def test_a_redirect_that_carries_the_credential_away_is_not_followed() -> None:
    async with serving(_here, ELSEWHERE) as other:

        async def lead(asked: Asked) -> None:
            await asked.answer(302, headers={"Location": f"{other.url}/?stolen={dict(asked.query)['key']}"})

        async with serving(lead) as service, calling() as caller:
            answer = await caller.call(order(service, credential=key("abcdefgh1234", place="query", name="key")))
    assert "with the credential in the address" in answer.problem
    assert "abcdefgh1234" not in answer.problem
    assert other.seen == []


async def test_no_redirect_leads_to_an_address_that_may_not_be_reached() -> None:
    async with serving(_here, FORBIDDEN) as private:
        for location in (
            f"{private.url}/",
            "http://169.254.169.254/latest",
            "file:///etc/passwd",
            "ftp://example.com/",
        ):

            async def lead(asked: Asked, location: str = location) -> None:
                await asked.answer(302, headers={"Location": location})

            async with serving(lead) as service, calling() as caller:
                answer = await caller.call(order(service))
            assert answer.status == 302
            assert answer.problem
    assert private.seen == []


async def test_what_was_posted_is_not_posted_again_by_an_old_kind_of_redirect() -> None:
    async def lead(asked: Asked) -> None:
        await (_here(asked) if asked.path != "/" else asked.answer(302, headers={"Location": "/next"}))

    async with serving(lead) as service, calling() as caller:
        answer = await caller.call(order(service, method="POST", body=b"x"))
    assert (answer.status, answer.headers["location"]) == (302, "/next")
    assert len(service.seen) == 1


async def test_see_other_is_read_and_the_same_again_is_sent_again() -> None:
    async def lead(asked: Asked) -> None:
        status = {"/303": 303, "/307": 307}.get(asked.path)
        await (_here(asked) if status is None else asked.answer(status, headers={"Location": "/there"}))

    async with serving(lead) as service, calling() as caller:
        for path in ("/303", "/307"):
            await caller.call(
                order(service, path, "POST", body=b"x", headers=(("Content-Type", "text/plain"),), credential=bearer())
            )
    assert [(one.method, one.target, one.body) for one in service.seen] == [
        ("POST", "/303", b"x"), ("GET", "/there", b""), ("POST", "/307", b"x"), ("POST", "/there", b"x")
    ]  # fmt: skip
    assert service.seen[1].header("content-type") == ""


async def test_round_and_round_ends() -> None:
    async def lead(asked: Asked) -> None:
        await asked.answer(302, headers={"Location": "/"})

    async with serving(lead) as service, calling() as caller:
        answer = await caller.call(order(service))
    assert "redirects more than 5 times" in answer.problem
    assert len(service.seen) == 6


async def test_who_was_led_away_is_not_led_back_with_the_credential() -> None:
    async with serving(_here) as home:

        async def back(asked: Asked) -> None:
            await asked.answer(302, headers={"Location": f"{home.url}/delete?all=1"})

        async with serving(back, ELSEWHERE) as other:

            async def away(asked: Asked) -> None:
                await asked.answer(302, headers={"Location": f"{other.url}/"})

            async with serving(away) as service, calling() as caller:
                hosts = (service.host, home.host)
                answer = await caller.call(replace(order(service, credential=bearer()), hosts=hosts))
    assert answer.status == 200
    assert not home.seen[0].header("authorization")


async def test_a_service_of_the_outside_leads_to_nothing_that_the_operator_allowed_inside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving(_here, ELSEWHERE) as inside:

        async def lead(asked: Asked) -> None:
            await asked.answer(302, headers={"Location": f"{inside.url}/admin"})

        async with serving(lead) as service, calling() as caller:
            assert (await caller.call(order(service))).data == {"arrived": True}, "among neighbours it may"
            monkeypatch.setattr(sending, "answered_in_public", lambda response: True)
            answer = await caller.call(order(service))
    assert "loopback" in answer.problem
    assert len(inside.seen) == 1
