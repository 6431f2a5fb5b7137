"""What the engine contract says about requests: what is refused, what a process finds around it, where files are."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from workbench.contracts.engine import Engine, Sandbox, SandboxSpec
from workbench.errors import Conflict, InvalidRequest
from workbench.model.ids import new_process_id, new_sandbox_id
from workbench.model.process import MAX_ARGUMENT_BYTES, MAX_PAYLOAD_BYTES, ProcessSpec
from workbench.model.tier import MEDIUM, STANDARD, Tier, thread_variables
from workbench.testing.driving import MakeSandbox, code, finish, program, run, shell, still_works

_VARIABLES = "import json, os\nprint(json.dumps(dict(os.environ)))"


def _spec(
    *,
    argv: tuple[str, ...] = (),
    entry: str | None = None,
    payload: bytes = b"",
    cwd: str = "/home/user",
    env: dict[str, str] | None = None,
) -> ProcessSpec:
    return ProcessSpec(id=new_process_id(), argv=argv, entry=entry, payload=payload, cwd=cwd, env=env or {})


REFUSED = {
    "no such program": _spec(argv=("/bin/no-such-program",)),
    "no such program on the path": _spec(argv=("no-such-program",)),
    "a folder as program": _spec(argv=("/usr",)),
    "a file without leave to execute": _spec(argv=("/etc/passwd",)),
    "no such folder": _spec(argv=("/bin/true",), cwd="/no/such/folder"),
    "a file as folder": _spec(argv=("/bin/true",), cwd="/bin/true"),
    "no such folder for an entry": _spec(entry="run_code", payload=b"print(1)", cwd="/no/such/folder"),
    "no such entry": _spec(entry="no_such_entry"),
    "an entry outside": _spec(entry="..init"),
    "an entry with a path": _spec(entry="../init"),
    "a NUL in an argument": _spec(argv=("/bin/echo", "a\0b")),
    "a NUL in a variable": _spec(argv=("/bin/true",), env={"A": "a\0b"}),
    "a NUL in the folder": _spec(argv=("/bin/true",), cwd="/tmp\0"),
    "a name with =": _spec(argv=("/bin/true",), env={"A=B": "c"}),
    "an empty name": _spec(argv=("/bin/true",), env={"": "c"}),
    "half a surrogate": _spec(argv=("/bin/echo", "\ud800")),
    "too much": _spec(argv=("/bin/echo", "x" * MAX_ARGUMENT_BYTES)),
    "too much code": _spec(entry="run_code", payload=b"#" * (MAX_PAYLOAD_BYTES + 1)),
    "neither": _spec(),
    "both": _spec(argv=("/bin/true",), entry="run_code"),
}


class RequestsContract:
    """Part of EngineContract, which has the fixtures."""

    @pytest.mark.parametrize("what", REFUSED)
    async def test_what_cannot_start_is_refused_and_nothing_ran(self, sandbox: Sandbox, what: str) -> None:
        """The sandbox is as it was."""
        with pytest.raises(InvalidRequest) as refusal:
            await sandbox.start(REFUSED[what])
        assert refusal.value.message
        assert await still_works(sandbox)

    @pytest.mark.parametrize("text", ["é" * (MAX_ARGUMENT_BYTES // 2 - 20), "\x01" * (MAX_ARGUMENT_BYTES - 20)])
    async def test_arguments_that_grow_on_the_way_never_cost_the_sandbox(self, sandbox: Sandbox, text: str) -> None:
        """They arrive as they are, or are refused; what lies between would be a process with other arguments."""
        try:
            done = await run(sandbox, program("/bin/echo", text))
        except InvalidRequest:
            pass
        else:
            assert done.stdout == f"{text}\n".encode()
        assert await still_works(sandbox)

    async def test_bytes_that_are_no_text_pass_through_arguments(self, sandbox: Sandbox) -> None:
        """A file name may be anything but NUL."""
        assert (await run(sandbox, program("/bin/echo", os.fsdecode(b"\xff\xfe")))).stdout == b"\xff\xfe\n"

    async def test_an_id_that_runs_is_refused(self, sandbox: Sandbox) -> None:
        """And can be used again when it has ended."""
        spec = program("/bin/cat", stdin=True)
        process = await sandbox.start(spec)
        with pytest.raises(Conflict):
            await sandbox.start(spec)
        await process.close_stdin()
        assert (await finish(process)).exit.code == 0
        again = await sandbox.start(spec)
        await again.close_stdin()
        assert (await finish(again)).exit.code == 0

    async def test_files_elsewhere_are_refused(self, engine: Engine, files_root: Path) -> None:
        """BARRIER: only folders of the files root can be mounted."""
        for files in (files_root, files_root.parent, files_root / "no-such-folder", Path("/etc")):
            with pytest.raises(InvalidRequest):
                await engine.create(SandboxSpec(id=new_sandbox_id(), tier=STANDARD, files=files))

    @pytest.mark.parametrize("env", [{"A": "\0"}, {"": "b"}, {"A=B": "c"}, {"A": "x" * 200_000}, {"A": "\ud800"}])
    async def test_variables_that_no_process_can_have_are_refused_at_once(
        self, make_sandbox: MakeSandbox, env: dict[str, str]
    ) -> None:
        """Not when the first process starts."""
        with pytest.raises(InvalidRequest):
            await make_sandbox(env=env)

    async def test_the_usual_variables_are_set(self, sandbox: Sandbox) -> None:
        """And a process starts at home, which is empty and its own."""
        done = await run(sandbox, shell('cd && pwd -P && ls -A && touch mine && echo "$LANG $USER" && python3 -c ""'))
        started_in = (await run(sandbox, program("/bin/pwd", "-P"))).stdout
        assert done.exit.code == 0, done.stderr
        assert done.stdout.splitlines() == [started_in.strip(), b"C.UTF-8 user"]

    async def test_nothing_of_the_hosts_variables_is_inherited(
        self, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A secret in the host's environment stays there."""
        monkeypatch.setenv("SECRET_OF_THE_HOST", "hidden")
        for spec in (program("/usr/bin/env"), code(_VARIABLES)):
            assert b"SECRET_OF_THE_HOST" not in (await run(sandbox, spec)).stdout

    async def test_thread_variables_follow_the_tier(self, sandbox: Sandbox) -> None:
        """As many as the tier has CPUs and the machine too; from the next process on."""
        for tier in (STANDARD, MEDIUM):
            await sandbox.change_tier(tier)
            for spec in (program("/usr/bin/env", "-0"), code(_VARIABLES)):
                assert _expected_threads(tier).items() <= _variables(await _stdout(sandbox, spec)).items()

    async def test_variables_of_a_process_win_over_those_of_its_sandbox(self, make_sandbox: MakeSandbox) -> None:
        """And those win over the engine's."""
        sandbox = await make_sandbox(env={"LANG": "C", "A": "sandbox", "B": "sandbox"})
        done = await run(sandbox, shell('echo "$LANG $A $B"', env={"B": "process"}))
        assert done.stdout == b"C sandbox process\n"
        assert (await run(sandbox, shell('echo "$B"'))).stdout == b"sandbox\n"

    async def test_a_process_can_start_in_another_folder(self, sandbox: Sandbox) -> None:
        """Programs and entries alike."""
        for spec in (program("/bin/pwd", cwd="/usr"), _spec(entry="run_code", payload=_PWD, cwd="/usr")):
            assert (await run(sandbox, spec)).stdout == b"/usr\n"

    async def test_files_go_both_ways_and_outlive_the_sandbox(self, engine: Engine, files_root: Path) -> None:
        """What the host put there can be read and changed, what the agent made is there for the next sandbox."""
        files = files_root / "both-ways"
        files.mkdir()
        (files / "from-host").write_text("hello")
        inside = self.files_path_inside(files)
        first = await engine.create(SandboxSpec(id=new_sandbox_id(), tier=STANDARD, files=files))
        done = await run(first, shell(f"cd {inside} && cat from-host && echo more >> from-host && echo made > new"))
        assert (done.stdout, done.exit.code) == (b"hello", 0), done.stderr
        assert (files / "new").read_text() == "made\n"
        await first.aclose()
        assert (files / "from-host").read_text() == "hellomore\n"
        second = await engine.create(SandboxSpec(id=new_sandbox_id(), tier=STANDARD, files=files))
        done = await run(second, shell(f"cat {inside}/new && rm {inside}/new"))
        await second.aclose()
        assert (done.stdout, done.exit.code) == (b"made\n", 0), done.stderr
        assert [entry.name for entry in files.iterdir()] == ["from-host"]

    def files_path_inside(self, files: Path) -> str:
        """Where processes find `files`; an engine without mounts says otherwise."""
        del files
        return "/mnt/files"

    async def test_homes_of_two_sandboxes_are_two(self, make_sandbox: MakeSandbox) -> None:
        """What one writes at home or in its scratch folder, the other does not find."""
        one, other = await make_sandbox(), await make_sandbox()
        made = await run(one, shell('cd; echo secret > here; echo secret > "$TMPDIR/here"; pwd'))
        done = await run(other, shell('ls -A ~ "$TMPDIR"'))
        assert b"here" not in done.stdout
        done = await run(other, shell(f"cat {made.stdout.decode().strip()}/here"))
        assert (done.exit.code != 0) == other.description.isolated


_PWD = b"import os\nprint(os.getcwd())"


def _expected_threads(tier: Tier) -> dict[str, str]:
    return thread_variables(min(tier.vcpus, len(os.sched_getaffinity(0))))


async def _stdout(sandbox: Sandbox, spec: ProcessSpec) -> bytes:
    return (await run(sandbox, spec)).stdout


def _variables(printed: bytes) -> dict[str, str]:
    if printed.startswith(b"{"):
        return {str(key): str(value) for key, value in json.loads(printed).items()}
    pairs = (line.partition("=") for line in printed.decode().split("\0"))
    return {name: value for name, _, value in pairs}
