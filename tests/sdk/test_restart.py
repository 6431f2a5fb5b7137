"""A server that is killed in the middle of cells and started again: callers notice a pause, and nothing else."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace

from tests.host.conftest import settings
from tests.host.support import eventually, workbench
from tests.server.running import make_key
from tests.unit.client.loopback import free_port

from workbench import Result, Session, Workbench
from workbench.errors import ServerUnavailable
from workbench.model.access import Scope
from workbench.settings import Settings

__all__ = ["settings"]
_LONG_S = 120.0
_WAIT = """
import os, time
runs = globals().get('runs', 0) + 1
print('begun', flush=True)
while not os.path.exists('/mnt/files/go'): time.sleep(0.01)
print('going on')
runs
"""


@contextlib.contextmanager
def serving(settings: Settings, wb: Workbench) -> Iterator[subprocess.Popen[bytes]]:
    server = workbench(settings, "serve")
    try:
        eventually(lambda: answers(wb), "the server answers", _LONG_S)
        yield server
    finally:
        server.kill()
        server.communicate(timeout=_LONG_S)


def answers(wb: Workbench) -> bool:
    try:
        list(wb.sessions("nobody"))
    except ServerUnavailable:
        return False
    return True


def test_a_kill_in_the_middle_of_cells_costs_neither_results_nor_output(settings: Settings) -> None:
    settings = replace(settings, listen_port=free_port(), log_level="warning")
    key = make_key(settings, Scope.SESSIONS).presented
    with Workbench(f"http://127.0.0.1:{settings.listen_port}", key, retry_for_s=_LONG_S) as wb:
        found: list[Result] = []
        with serving(settings, wb) as server:
            session = wb.create("user_123")
            awaited = threading.Thread(target=lambda: found.append(session.run(_WAIT, limit_s=600)))
            awaited.start()
            eventually(lambda: runs(session), "the cell has begun", _LONG_S)
            stream = session.stream("print('behind'); runs", limit_s=600)
            server.kill()
            server.wait(_LONG_S)
        with serving(settings, wb):
            assert session.bash("touch /mnt/files/go").ok
            awaited.join(_LONG_S)
            assert [result.stdout for result in found] == ["begun\ngoing on\n"]
            assert "".join(piece.text for piece in stream) == "behind\n"
            assert (found[0].results, stream.result.results) == ("1", "1")
            assert [record.status for record in session.history()] == ["ended"] * 3
            session.delete()


def runs(session: Session) -> bool:
    return any(queued.running for queued in session.describe().queue)
