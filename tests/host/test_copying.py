"""Files of one real sandbox into another, by a tar in each."""

from __future__ import annotations

import asyncio
import os
import secrets
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.conftest import MakeEngineOptions

from workbench.contracts.engine import Engine, Sandbox, SandboxSpec
from workbench.engines.namespace.engine import NamespaceEngine
from workbench.engines.process import ProcessEngine
from workbench.errors import QuotaExceeded, SandboxUnavailable
from workbench.guest_trees import remove_tree
from workbench.host.cells.copying import MOST_NOTE, copy_files
from workbench.model.ids import new_sandbox_id
from workbench.model.tier import STANDARD, Tier
from workbench.testing.driving import PATIENCE_S, TINY, MakeSandbox, Reading, code, eventually, run, shell

pytestmark = pytest.mark.asyncio(loop_scope="module")
# Everything about a tree that a copy keeps.
_LOOK = "find . -mindepth 1 -printf '%P %y %m %s %n %l %T@\\n' | sort; find . -type f -exec md5sum {} + | sort"


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="wb-", dir="/tmp"))
    (folder / "run").mkdir()
    (folder / "files").mkdir()
    yield folder
    assert remove_tree(folder)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=[NamespaceEngine, ProcessEngine])
async def engine(
    request: pytest.FixtureRequest, place: Path, make_engine_options: MakeEngineOptions
) -> AsyncIterator[Engine]:
    engine: Engine = request.param(make_engine_options(place))
    await engine.start()
    yield engine
    await engine.aclose()


@pytest_asyncio.fixture(loop_scope="module")
async def make_sandbox(engine: Engine, place: Path) -> AsyncIterator[MakeSandbox]:
    made: list[Sandbox] = []

    async def make(*, tier: Tier = STANDARD, env: dict[str, str] | None = None) -> Sandbox:
        files = place / "files" / f"m-{secrets.token_hex(6)}"
        files.mkdir()
        made.append(await engine.create(SandboxSpec(id=new_sandbox_id(), tier=tier, files=files, env=env or {})))
        return made[-1]

    yield make
    for sandbox in made:
        await sandbox.aclose()


@pytest_asyncio.fixture(loop_scope="module")
async def source(make_sandbox: MakeSandbox) -> Sandbox:
    return await make_sandbox()


@pytest_asyncio.fixture(loop_scope="module")
async def target(make_sandbox: MakeSandbox) -> Sandbox:
    return await make_sandbox()


async def said(sandbox: Sandbox, script: str) -> str:
    """In a folder that has a name for each of the three, whatever the engine."""
    files = 'F=/mnt/files; [ -n "${WORKBENCH_FILES:-}" ] && F=$WORKBENCH_FILES'
    done = await run(sandbox, shell(f'{files}; T=${{TMPDIR:-/tmp}}; cd "$HOME"\n{script}'))
    assert done.exit.code == 0, done.stderr
    return done.stdout.decode("utf-8", "surrogateescape")


async def test_all_three_folders_arrive_with_times_modes_and_links(source: Sandbox, target: Sandbox) -> None:
    await said(
        source,
        """
        mkdir -p deep/er; echo text > deep/er/file; chmod 640 deep/er/file; touch -d '2001-02-03 04:05:06.789' deep
        ln deep/er/file hard; ln -s deep/er/file soft; ln -s nowhere dangling; mkfifo pipe; mkdir -m 555 closed
        truncate -s 50M sparse; printf end >> sparse; : > empty; echo hidden > .hidden
        mkdir readonly; echo kept > readonly/file; chmod 555 readonly; echo '#!/bin/sh' > run.sh; chmod 755 run.sh
        echo scratch > "$T/variables"; chmod 600 "$T/variables"; mkdir "$F/outputs"; echo mount > "$F/outputs/file"
        """,
    )
    assert await copy_files(source, target, limit_s=PATIENCE_S) == ""
    assert await said(target, _LOOK) == await said(source, _LOOK)
    assert await said(target, 'cat "$T/variables" "$F/outputs/file"; stat -c %a "$T/variables"') == (
        "scratch\nmount\n600\n"
    )
    assert int(await said(target, "du -k sparse | cut -f1")) < 1024
    await said(target, "echo changed > hard; grep changed deep/er/file")


async def test_unusual_names_arrive(source: Sandbox, target: Sandbox) -> None:
    await said(
        source,
        """
        echo a > "$(printf 'new\\nline')"; echo b > "$(printf 'no\\377text')"; echo c > ' spaces '; echo d > -rf
        echo e > '--checkpoint-action=exec=sh'; echo f > '*'; echo g > 'back\\slash'; echo h > 'ünïcødé'
        mkdir -p "$(printf 'long%.0s' $(seq 60))/$(printf 'name%.0s' $(seq 60))"
        echo i > "$(printf 'z%.0s' $(seq 255))"
        """,
    )
    assert await copy_files(source, target, limit_s=PATIENCE_S) == ""
    assert await said(target, _LOOK) == await said(source, _LOOK)


async def test_links_that_point_outside_stay_links_and_nothing_is_written_through_them(
    source: Sandbox, target: Sandbox
) -> None:
    await said(target, 'mkdir "$T/elsewhere"; echo mine > "$T/elsewhere/file"')
    await said(
        source,
        'ln -s /etc/passwd passwd; ln -s / root; ln -s ../../.. up; ln -s "$T/elsewhere" folder; ln -s loop loop',
    )
    assert await copy_files(source, target, limit_s=PATIENCE_S) == ""
    told = await said(target, 'for one in passwd root up loop; do readlink $one; done; cat "$T/elsewhere/file"')
    assert told == "/etc/passwd\n/\n../../..\nloop\nmine\n"


async def test_what_the_target_has_is_replaced_or_kept(source: Sandbox, target: Sandbox) -> None:
    await said(
        target, "mkdir shared; echo old > shared/file; echo only > shared/only; ln -s /etc was-link; mkdir was-dir"
    )
    await said(source, "mkdir shared; echo new > shared/file; mkdir was-link; echo in > was-link/file")
    mode = await said(target, 'stat -c %a "$HOME" "$T" "$F"')
    assert await copy_files(source, target, limit_s=PATIENCE_S) == ""
    assert await said(target, "cat shared/file shared/only was-link/file; test ! -L was-link") == "new\nonly\nin\n"
    assert await said(target, 'stat -c %a "$HOME" "$T" "$F"') == mode


async def test_sockets_stay_behind_and_are_named(source: Sandbox, target: Sandbox) -> None:
    bind = "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])"
    await said(source, f"echo text > file; for n in $(seq 9); do python3 -c '{bind}' s$n.sock; done")
    note = await copy_files(source, target, limit_s=PATIENCE_S)
    assert note.startswith("not all of /home/user was copied as it is: s")
    assert "socket ignored" in note
    assert note.endswith(", and 4 more")
    assert await said(target, "ls") == "file\n"


async def test_a_file_that_changes_while_it_is_read_is_named_and_the_others_arrive(
    source: Sandbox, target: Sandbox
) -> None:
    await said(source, "echo text > zzz; mkdir log")
    grow_and_shrink = "while :; do head -c 300000 /dev/zero >> log/$n; : > log/$n; done"
    grow = f"echo begun; for n in 1 2 3 4; do ({grow_and_shrink}) & done; wait"
    growing = await source.start(shell(grow))
    async with Reading(growing) as reading:
        await reading.until(b"begun\n")
        notes = [await copy_files(source, target, limit_s=PATIENCE_S) for _ in range(20)]
        await growing.signal(9)
        await growing.wait()
    assert any("file changed as we read it" in note or "shrank" in note for note in notes)
    assert all(note.startswith("not all of /home/user was copied") for note in notes if note)
    assert await said(target, "cat zzz") == "text\n"


async def test_files_that_cannot_be_read_are_named(engine: Engine, source: Sandbox, target: Sandbox) -> None:
    await said(source, "echo mine > closed; chmod 0 closed; mkdir -m 0 folder; echo text > file")
    note = await copy_files(source, target, limit_s=PATIENCE_S)
    if engine.name == "process" and os.geteuid() == 0:
        assert note == "", "nothing is closed to root"
    else:
        assert "closed" in note
        assert "folder" in note
        assert "Permission denied" in note
    assert await said(target, "cat file") == "text\n"


async def test_files_that_do_not_fit_are_named_and_the_others_arrive(
    engine: Engine, source: Sandbox, make_sandbox: MakeSandbox
) -> None:
    small = await make_sandbox(tier=TINY)
    await said(source, 'head -c 30M /dev/urandom > big; echo kept > "$T/variables"; echo kept > "$F/file"')
    note = await copy_files(source, small, limit_s=PATIENCE_S)
    if engine.name == "process":
        assert note == "", "it has no limits"
    else:
        assert note.startswith("not all of /home/user was copied as it is (there is no room for it in the copy): big: ")
    assert await said(small, 'cat "$T/variables" "$F/file"') == "kept\nkept\n"


async def test_thousands_of_complaints_make_a_short_note(source: Sandbox, target: Sandbox) -> None:
    bind = "import socket\nfor n in range(3000): socket.socket(socket.AF_UNIX).bind(f'{n}' + 'x' * 60)"
    await said(source, f'python3 -c "{bind}"')
    note = await copy_files(source, target, limit_s=PATIENCE_S)
    assert len(note) <= MOST_NOTE
    assert note.endswith("and 2995 more")


async def tars(sandbox: Sandbox) -> list[str]:
    return [one.command for one in await sandbox.processes() if "/bin/tar" in one.command]


async def begun(source: Sandbox, target: Sandbox) -> asyncio.Task[str]:
    """A copy that takes a while, and has begun."""
    await said(source, 'head -c 300M /dev/zero | tr "\\0" x > "$F/big"')
    copying = asyncio.create_task(copy_files(source, target, limit_s=PATIENCE_S))

    async def writing() -> bool:
        return await said(target, '[ -e "$F/big" ] && echo yes || :') != ""

    await eventually(writing, "the large file is being written")
    return copying


async def test_a_copy_that_takes_too_long_is_ended_and_leaves_no_process(source: Sandbox, target: Sandbox) -> None:
    await said(source, 'head -c 300M /dev/zero | tr "\\0" x > "$F/big"')
    with pytest.raises(QuotaExceeded, match=r"could not be copied in 0.05 s"):
        await copy_files(source, target, limit_s=0.05)
    assert await tars(source) == await tars(target) == []


async def test_who_stops_waiting_leaves_no_process(source: Sandbox, target: Sandbox) -> None:
    copying = await begun(source, target)
    copying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await copying
    assert await tars(source) == await tars(target) == []


@pytest.mark.parametrize("which", ["source", "target"])
async def test_a_sandbox_that_ends_meanwhile_is_an_error(which: str, source: Sandbox, target: Sandbox) -> None:
    copying = await begun(source, target)
    ending, other = (source, target) if which == "source" else (target, source)
    await ending.aclose()
    with pytest.raises(SandboxUnavailable):
        await copying
    assert await tars(other) == []


async def test_a_tar_that_the_agent_ends_is_an_error(source: Sandbox, target: Sandbox) -> None:
    copying = await begun(source, target)
    for one in await source.processes():
        if "/bin/tar" in one.command:
            await said(source, f"kill -KILL {one.pid}")
    with pytest.raises(SandboxUnavailable, match="/mnt/files could not be copied: tar ended with signal 9"):
        await copying
    assert await tars(source) == await tars(target) == []


async def test_a_sandbox_that_is_gone_is_an_error(source: Sandbox, target: Sandbox) -> None:
    await target.aclose()
    with pytest.raises(SandboxUnavailable):
        await copy_files(source, target, limit_s=PATIENCE_S)
    assert await tars(source) == []


async def test_variables_of_the_session_do_not_change_how_it_is_copied(make_sandbox: MakeSandbox) -> None:
    env = {"TAR_OPTIONS": "--exclude=*", "LC_ALL": "de_DE.UTF-8"}
    source, target = await make_sandbox(env=env), await make_sandbox(env=env)
    await said(source, "echo text > file")
    assert await copy_files(source, target, limit_s=PATIENCE_S) == ""
    assert await said(target, "cat file") == "text\n"


_CELL = """
import numpy as np, pandas as pd
table = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}); values = np.arange(3.0)
class Model:
    def __init__(self): self.table, self.f = table, lambda v: v @ values
model = Model()
"""
_IN_MEMORY = """
import os, sys, types
from workbench_guest.kernel import carry
main = sys.modules["__main__"] = types.ModuleType("__main__")
path = os.environ.get("TMPDIR", "/tmp") + "/variables"
"""
_PACK = f"""
exec({_CELL!r}, main.__dict__)
names = {{name: value for name, value in vars(main).items() if not name.startswith("__")}}
print(sorted(carry.pack(names, path)["not_carried"]))
"""
_UNPACK = """
print(carry.unpack(path, main.__dict__)["not_carried"])
print(eval("(isinstance(model, Model), model.table is table, list(table.b), float(model.f(values)))", main.__dict__))
"""


async def test_variables_that_were_packed_into_scratch_arrive_with_the_files(source: Sandbox, target: Sandbox) -> None:
    packed = await run(source, code(_IN_MEMORY + _PACK))
    assert packed.stdout == b"[]\n", packed.stderr
    assert await copy_files(source, target, limit_s=PATIENCE_S) == ""
    unpacked = await run(target, code(_IN_MEMORY + _UNPACK))
    assert unpacked.stdout.decode().splitlines() == ["{}", "(True, True, ['x', 'y'], 5.0)"], unpacked.stderr
    assert await said(target, 'ls "$T"') == ""
