"""Which clients and sessions a box of one's own can be had for: ours, and those that look like the official SDK's."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace as Having

import pytest
from tests.local_sandbox.recorder import Recorder, Told, recorder

from workbench import create_local_workbench_session
from workbench.client import AsyncWorkbench

BOX = {"helper_source": "x = 1", "env": {"COMPOSIO_API_KEY": "wbt_a_b"}, "token_id": "a", "expires_at": "2026"}
SESSION = Having(session_id="trs_1")


class Url:
    """As HTTP libraries have them: no text, but told as one."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text


@pytest.fixture
def outside() -> Iterator[Recorder]:
    with recorder(lambda _: Told(status=201, body=BOX)) as server:
        yield server


def test_a_client_with_address_and_key_is_asked_with_them(outside: Recorder) -> None:
    box = create_local_workbench_session(Having(base_url=outside.url, api_key="k1"), SESSION, expires_in_s=60)
    assert (box.helper_source, box.env, box.token_id, box.expires_at) == ("x = 1", BOX["env"], "a", "2026")
    (asked,) = outside.asked
    assert (asked.method, asked.path) == ("POST", "/v1/sessions/trs_1/local-sandbox")
    assert asked.headers["authorization"] == "Bearer k1"
    assert asked.json() == {"expires_in_s": 60}


def test_a_client_that_sends_by_another_is_looked_into(outside: Recorder) -> None:
    address = Url(f"{outside.url}/")
    older = Having(client=Having(base_url=address, api_key="k1"))
    newer = Having(client=Having(base_url=address, _auth=Having(credential="k2")))
    several = Having(client=Having(base_url=address, _auth=Having(project="k3", user="k4")))
    for client in (older, newer, several):
        create_local_workbench_session(client, "trs_1")
    assert [one.headers["authorization"] for one in outside.asked] == ["Bearer k1", "Bearer k2", "Bearer k3"]


def test_a_client_that_keeps_its_key_is_known_by_what_the_session_tells(outside: Recorder) -> None:
    session = Having(session_id="trs_1", mcp=Having(headers={"x-api-key": "k5"}))
    create_local_workbench_session(Having(client=Having(base_url=outside.url)), session)
    assert outside.asked[0].headers["authorization"] == "Bearer k5"


def test_what_is_no_client_and_no_session_is_refused_before_anything_is_sent(outside: Recorder) -> None:
    with pytest.raises(TypeError, match="it has no base_url"):
        create_local_workbench_session(Having(), SESSION)
    with pytest.raises(TypeError, match="it has no base_url"):
        create_local_workbench_session(Having(base_url="ftp://x", api_key="k"), SESSION)
    with pytest.raises(TypeError, match="shows none"):
        create_local_workbench_session(Having(base_url=outside.url), SESSION)
    with pytest.raises(TypeError, match=r"not types\.SimpleNamespace"):
        create_local_workbench_session(Having(base_url=outside.url, api_key="k"), Having())
    with pytest.raises(TypeError, match=r"await session.local_sandbox\(\)"):
        create_local_workbench_session(AsyncWorkbench(outside.url, "k"), "trs_1")
    assert outside.asked == []


def test_a_key_of_ours_is_not_told_by_what_is_given_back(outside: Recorder) -> None:
    box = create_local_workbench_session(Having(base_url=outside.url, api_key="k1"), SESSION)
    assert repr(box) == "LocalWorkbenchSession(token_id='a', expires_at='2026')"
