"""Programs of the operator's: what they have of ours, which is nothing, and that nothing of them is left."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.host.support import alive, eventually

from workbench.errors import NotConfigured
from workbench.toolkits.children import Child, Program


async def _lines(child: Child) -> list[bytes]:
    found = []
    while line := await child.hear():
        found.append(line)
    return found


async def test_it_has_the_environment_that_it_was_given_and_nothing_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_LLM_KEY", "canary-of-the-server")
    child = await Child.start(Program(command=("/usr/bin/env",), env={"MINE": "yes"}, folder=str(tmp_path)))
    try:
        told = dict(line.decode().strip().split("=", 1) for line in await _lines(child))
    finally:
        await child.aclose()
    assert {name: told[name] for name in ("MINE", "HOME", "LANG")} == {
        "MINE": "yes",
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
    }
    assert set(told) == {"MINE", "HOME", "LANG", "PATH"}


async def test_it_has_no_descriptor_besides_its_three(tmp_path: Path) -> None:
    code = "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd'))[:4])"
    with (tmp_path / "ours").open("w") as ours:
        os.set_inheritable(ours.fileno(), True)
        child = await Child.start(Program(command=(sys.executable, "-I", "-c", code), folder=str(tmp_path)))
        try:
            # The fourth is the folder that it reads.
            assert (await _lines(child)) == [b"[0, 1, 2, 3]\n"]
        finally:
            await child.aclose()


async def test_a_program_that_is_not_there_says_so(tmp_path: Path) -> None:
    child = await Child.start(Program(command=("no-such-program",), folder=str(tmp_path)))
    try:
        assert await child.hear() == b""
        assert await child.ended() == 127
        assert child.words == "no-such-program cannot be started: No such file or directory"
    finally:
        await child.aclose()


async def test_a_folder_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotConfigured, match="cannot be started in /no/such/folder: No such file"):
        await Child.start(Program(command=("true",), folder="/no/such/folder"))


async def test_a_line_without_an_end_is_not_kept(tmp_path: Path) -> None:
    program = Program(command=("/usr/bin/yes", "x" * 50), folder=str(tmp_path), most_line_bytes=64)
    endless = Program(command=("/bin/cat", "/dev/zero"), folder=str(tmp_path), most_line_bytes=64 * 1024)
    for one in (program, endless):
        child = await Child.start(one)
        try:
            if one is endless:
                with pytest.raises(ValueError, match="limit"):
                    await child.hear()
                assert child.silent.is_set()
            else:
                assert await child.hear() == b"x" * 50 + b"\n"
        finally:
            await child.aclose()


async def test_closing_it_ends_what_it_left_in_the_background_and_what_ignores_that(tmp_path: Path) -> None:
    script = "trap '' TERM; (setsid sleep 4001 & echo $!); sleep 4002 & echo $!; while :; do sleep 1; done"
    child = await Child.start(Program(command=("/bin/sh", "-c", script), folder=str(tmp_path)))
    pids = [int(await child.hear()), int(await child.hear()), child.pid]
    assert all(alive(pid) for pid in pids)
    async with asyncio.timeout(10):
        await child.aclose()
        await child.aclose()
    assert not [pid for pid in pids if alive(pid)]


async def test_too_much_memory_ends_it(tmp_path: Path) -> None:
    code = "import time; held = bytearray(300 * 2**20); time.sleep(60)"
    program = Program(command=(sys.executable, "-I", "-c", code), folder=str(tmp_path), memory_mib=100)
    child = await Child.start(program)
    try:
        async with asyncio.timeout(30):
            assert await child.hear() == b""
        assert "may have 100" in child.words
    finally:
        await child.aclose()


_OWNER = """
import asyncio, sys
from workbench.toolkits.children import Child, Program
async def main():
    script = "trap '' TERM HUP; (setsid sleep 4003 & echo $!); echo $$; while :; do sleep 1; done"
    child = await Child.start(Program(command=("/bin/sh", "-c", script), folder="/tmp"))
    print(int(await child.hear()), int(await child.hear()), child.pid, flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_it_ends_with_its_owner_however_that_ends(how: int) -> None:
    owner = subprocess.Popen([sys.executable, "-c", _OWNER], stdout=subprocess.PIPE)
    assert owner.stdout is not None
    pids = [int(word) for word in owner.stdout.readline().split()]
    assert len(pids) == 3
    owner.send_signal(how)
    owner.wait(10)
    owner.stdout.close()
    eventually(lambda: not [pid for pid in pids if alive(pid)], "all of them have ended")


async def test_it_ends_with_its_keeper(tmp_path: Path) -> None:
    child = await Child.start(Program(command=("/bin/sh", "-c", "echo $$; sleep 4004"), folder=str(tmp_path)))
    pid = int(await child.hear())
    os.kill(child.pid, signal.SIGKILL)
    eventually(lambda: not alive(pid), "the program has ended")
    await child.aclose()
