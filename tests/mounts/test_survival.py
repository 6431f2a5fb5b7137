"""Files under /mnt/files outlive what they were written by: byte for byte, and still the code's own to change."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.host.support import eventually, output_of, read, sandbox_roots, workbench
from tests.restart.server import Server, own_settings, served
from tests.restart.work import Place, new_session

from workbench import Session
from workbench.host_client.find import connect_or_start
from workbench.wire import host as wire

pytestmark = [pytest.mark.timeout(240), pytest.mark.isolation]

SIZE = 3 * 2**20 + 1
WRITE = f"""
import os, pathlib, random
top = pathlib.Path('/mnt/files/work/deep')
top.mkdir(parents=True)
(top / 'data.bin').write_bytes(random.Random(7).randbytes({SIZE}))
(top / 'run.sh').write_text('#!/bin/sh\\necho it runs\\n')
os.chmod(top / 'run.sh', 0o750)
os.symlink('data.bin', top / 'link')
x = 1
"""
# Everything that the owner of a file may do with it, and back to what it was.
USE = f"""
import hashlib, os, pathlib, subprocess
top = pathlib.Path('/mnt/files/work/deep')
print(hashlib.sha256((top / 'link').read_bytes()).hexdigest())
print(subprocess.run([top / 'run.sh'], capture_output=True, text=True).stdout, end='')
print({{os.lstat(path).st_uid for path in (top.parent, top, *top.iterdir())}} == {{os.getuid()}})
with open(top / 'data.bin', 'ab') as file: file.write(b'more')
os.truncate(top / 'data.bin', {SIZE})
(top / 'new').write_text('new')
os.rename(top / 'new', top.parent / 'moved')
os.unlink(top.parent / 'moved')
os.chmod(top / 'run.sh', 0o700)
os.chmod(top / 'run.sh', 0o750)
"""
RIGHT = f"{hashlib.sha256(random.Random(7).randbytes(SIZE)).hexdigest()}\nit runs\nTrue\n"
Happening = Callable[[Server, Session], Session]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One for all; each test has a session of its own, and finds the server running."""
    with own_settings() as settings, served(settings) as server:
        yield server


def host_pid(server: Server) -> int:
    async def ask() -> int:
        async with await connect_or_start(server.settings, os.environ) as host:
            return (await host.ask(wire.Status(), wire.StatusAnswer)).pid

    return asyncio.run(ask())


def restart_of_the_kernel(_server: Server, session: Session) -> Session:
    session.restart()
    return session


def crash_of_the_kernel(_server: Server, session: Session) -> Session:
    session.run("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    return session


def loss_of_the_sandbox(server: Server, session: Session) -> Session:
    mark = f"/{session.id} /mnt/files ".encode()
    (root,) = [pid for pid in sandbox_roots(host_pid(server)) if mark in read(f"/proc/{pid}/mountinfo")]
    os.kill(root, signal.SIGKILL)
    eventually(lambda: session.describe().state == "lost", "its loss is known")
    return session


def change_of_tier(_server: Server, session: Session) -> Session:
    session.change(sandbox_size="large")
    assert session.run("x").results == "1", "its memory stayed"
    return session


def kill_of_the_server(server: Server, session: Session) -> Session:
    server.kill()
    server.start()
    return session


def kill_of_the_host(server: Server, session: Session) -> Session:
    os.kill(pid := host_pid(server), signal.SIGKILL)
    eventually(lambda: not Path(f"/proc/{pid}").exists(), "the host is gone")
    return session


def stop_of_the_host(server: Server, session: Session) -> Session:
    code, _, errors = output_of(workbench(server.settings, "host", "stop"))
    assert code == 0, errors
    return session


def kill_of_both(server: Server, session: Session) -> Session:
    pid = host_pid(server)
    server.kill()
    os.kill(pid, signal.SIGKILL)
    server.start()
    return session


def undo(_server: Server, session: Session) -> Session:
    """Takes variables back, and no files."""
    session.undo()
    assert "x" not in {one.name for one in session.variables()}
    return session


def branch(_server: Server, session: Session) -> Session:
    """Has the same files."""
    return session.branch()


def copy(server: Server, session: Session) -> Session:
    """Has files of its own, which are the same."""
    copied = session.branch(copy=True)
    assert _on_disk(Place(server.settings, copied.id)) == _on_disk(Place(server.settings, session.id))
    return copied


def end_by_idleness(_server: Server, session: Session) -> Session:
    session.change(freeze_after_s=0, end_after_s=1)
    eventually(lambda: session.describe().state == "lost", "it has ended", 90)
    return session


@pytest.mark.parametrize(
    "happening",
    [
        restart_of_the_kernel,
        crash_of_the_kernel,
        loss_of_the_sandbox,
        change_of_tier,
        kill_of_the_server,
        kill_of_the_host,
        stop_of_the_host,
        kill_of_both,
        undo,
        branch,
        copy,
        # The server looks around every 15 seconds or so.
        pytest.param(end_by_idleness, marks=pytest.mark.long),
    ],
    ids=lambda happening: happening.__name__.replace("_", "-"),
)
def test_files_outlive_it_and_stay_the_codes_own(server: Server, happening: Happening) -> None:
    with server.client() as client, server.bench() as bench:
        place = new_session(client, server.settings)
        session = bench.use(place.session)
        session.run("1").raise_for_outcome()
        session.run(WRITE).raise_for_outcome()
        before = _on_disk(place)
        after = happening(server, session)
        used = after.run(USE).raise_for_outcome()
        assert (used.stdout, used.explanation) == (RIGHT, "")
        assert _on_disk(place) == before
        for one in {after.id: after, session.id: session}.values():
            one.delete()


def test_a_branch_and_its_parent_see_each_others_files_and_a_copy_sees_none(server: Server) -> None:
    with server.client() as client, server.bench() as bench:
        session = bench.use(new_session(client, server.settings).session)
        session.run("open('/mnt/files/first', 'w').write('1')").raise_for_outcome()
        branch, copy = session.branch(), session.branch(copy=True)
        for number, one in enumerate((session, branch, copy)):
            one.run(f"open('/mnt/files/by-{number}', 'w').write('1')").raise_for_outcome()
        seen = [one.bash("ls /mnt/files").stdout.split() for one in (session, branch, copy)]
        assert seen == [["by-0", "by-1", "first"]] * 2 + [["by-2", "first"]]
        session.delete()
        assert branch.bash("cat /mnt/files/first").stdout == "1", "files stay for as long as one of them has them"
        branch.delete()
        copy.delete()


def _on_disk(place: Place) -> dict[str, tuple[int, str]]:
    """Mode and content of what lies there, links by where they lead."""
    found = {}
    for path in sorted((place.files / "work").rglob("*")):
        content = os.readlink(path) if path.is_symlink() else path.is_file() and path.read_bytes()
        found[str(path.relative_to(place.files))] = (
            path.lstat().st_mode,
            hashlib.sha256(repr(content).encode()).hexdigest(),
        )
    return found
