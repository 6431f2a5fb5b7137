"""Programs of other languages, run by commands in one session, and what their results tell."""

from __future__ import annotations

from dataclasses import dataclass

from workbench import Session
from workbench.client.values import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A file, run by a command, and what that comes to."""

    name: str
    file: str
    code: str
    command: str = ""
    """with the file's name; by what its ending says unless given"""
    ok: bool = True
    stdout: str | None = None
    says: tuple[str, ...] = ()
    """somewhere in stderr"""
    installed: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()


def check(session: Session, program: Program) -> None:
    """Run it in a folder of its own."""
    command = program.command or f"{'Rscript' if program.file.endswith('.R') else 'node'} {program.file}"
    folder = f"work-{abs(hash(program.name))}"
    done = session.bash(
        f"mkdir -p {folder} && cd {folder} && cat > {program.file} <<'END'\n{program.code}\nEND\n{command}"
    )
    told = f"{program.name}: {done.stdout}\n{done.stderr}\n{done.corrections}"
    assert (done.exit_code == 0) is program.ok, told
    if program.stdout is not None:
        assert done.stdout.strip() == program.stdout, told
    for words in program.says:
        assert words in done.stderr, told
    assert installed(done) == set(program.installed), told
    assert [one.rule for one in done.corrections if one.kind == "hint"] == list(program.hints), told


def installed(done: Result) -> set[str]:
    """Names, without versions, of what was asked for and what came with it."""
    return {pin.partition("==")[0] for one in done.corrections if one.kind == "installed" for pin in one.packages}
