"""What the way out of a sandbox costs: a helper's call with nothing behind it, beside the same within the server."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field, replace

from bench.serving import Client, serving
from workbench.data_folder import DataFolder
from workbench.model.calls import Caller, GuestCall
from workbench.model.ids import DEFAULT_PROJECT, CallId, SessionId
from workbench.settings import Settings
from workbench.storage.opening import open_records
from workbench.wiring import open_service

_AT_A_TIME = 20
_CALLS = f"""\
import json, time
def one():
    began = time.perf_counter()
    key, error = get_mount_file_s3_key('/mnt/files/x')
    assert not error, error
    return (time.perf_counter() - began) * 1000
json.dumps([one() for _ in range({_AT_A_TIME})])"""


@dataclass(slots=True)
class HelperTimes:
    """Milliseconds, taken in turns."""

    inside: list[float] = field(default_factory=list)
    """of the helper, as its cell sees it"""
    within: list[float] = field(default_factory=list)
    """of the same, asked of the core in one process"""


async def helper_calls(settings: Settings, n: int) -> HelperTimes:
    """A call that only looks a file up, `n` times each way."""
    times = HelperTimes()
    # As fast as it goes, which a session may not for long.
    async with serving(replace(settings, calls_per_minute=1_000_000)) as server:
        client = await server.client()
        session: str = (await client.ask("POST", "/v1/sessions", {})).json()["id"]
        await _cell(client, session, "open('/mnt/files/x', 'w').close()")
        async with open_service(server.settings, os.environ) as service:
            answer = service.guest_calls().answer
            call = await _call(server.settings, session)
            for turn in range(-1, -(-n // _AT_A_TIME)):
                seen = json.loads((await _cell(client, session, _CALLS)).strip("'"))
                direct = []
                for _ in range(_AT_A_TIME):
                    began = time.perf_counter()
                    told = await answer(call)
                    direct.append((time.perf_counter() - began) * 1000)
                    assert not told.failed, told.body
                if turn >= 0:
                    times.inside += seen
                    times.within += direct
        await client.close()
    return times


async def _call(settings: Settings, session: str) -> GuestCall:
    records = open_records(DataFolder(settings.data_dir).records, settings.database_url)
    try:
        found = await records.sessions(DEFAULT_PROJECT).get(SessionId(session))
    finally:
        await records.aclose()
    body = json.dumps({"operation": "file_key", "arguments": {"path": "x"}}).encode()
    return GuestCall(id=CallId("bench"), caller=Caller(sandbox=found.sandbox, kernel=found.kernel), body=body)


async def _cell(client: Client, session: str, code: str) -> str:
    told = (await client.ask("POST", f"/v1/sessions/{session}/cells", {"code": code})).json()
    assert told["result"]["outcome"] == "ok", told
    text: str = told["result"]["results"]["text"]
    return text
