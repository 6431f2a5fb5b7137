"""Sessions of Node.js and R run code of their language, whatever door it comes through."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator

import pytest
from tests.doors.door import Door, Refused, Said, WholeDoor

pytestmark = pytest.mark.timeout(180)

# What keeps a value, what gives it, and what both doors and people see of it.
PROGRAMS = {
    "node": ("const kept = [1, 2].map((one) => one * 21)", "console.log('here'); await Promise.resolve(kept[1])", "42"),
    "r": ("kept <- c(1, 2) * 21", "cat('here\\n'); kept[2]", "[1] 42"),
}


SOON = Said(limit_s=50.0)


@pytest.fixture
def made(core: WholeDoor, maker: WholeDoor) -> Iterator[Callable[[str], str]]:
    """Makes sessions of a language."""
    names: list[str] = []

    def make(runtime: str) -> str:
        names.append(f"t-{secrets.token_hex(4)}")
        maker.create(names[-1], runtime=runtime)
        return names[-1]

    yield make
    for name in names:
        with contextlib.suppress(Refused):
            core.delete(name)


@pytest.mark.parametrize("runtime", PROGRAMS)
def test_code_runs_in_the_language_of_its_session_and_state_stays(
    door: Door, made: Callable[[str], str], runtime: str
) -> None:
    keeping, giving, value = PROGRAMS[runtime]
    session = made(runtime)
    # With a limit: MCP's other tool for cells has none, and is Python's.
    assert door.run(session, keeping, SOON).outcome == "ok"
    ran = door.run(session, giving, SOON)
    assert (ran.outcome, ran.stdout, ran.results) == ("ok", "here\n", value)


@pytest.mark.parametrize("runtime", PROGRAMS)
def test_a_restart_forgets_and_keeps_the_language(core: WholeDoor, made: Callable[[str], str], runtime: str) -> None:
    keeping, giving, _ = PROGRAMS[runtime]
    session = made(runtime)
    core.run(session, keeping)
    assert core.restart(session).runtime == runtime
    assert core.run(session, giving).outcome == "raised"
    core.run(session, keeping)
    assert core.run(session, giving).outcome == "ok"


@pytest.mark.parametrize("runtime", PROGRAMS)
def test_files_are_shared_with_bash(core: WholeDoor, made: Callable[[str], str], runtime: str) -> None:
    session = made(runtime)
    write = {
        "node": "require('fs').writeFileSync('/mnt/files/from', 'it')",
        "r": "writeLines('it', '/mnt/files/from', sep = '')",
    }
    assert core.run(session, write[runtime]).outcome == "ok"
    assert core.bash(session, "cat /mnt/files/from").stdout == "it"


def test_contexts_of_three_languages_hand_each_other_files(core: WholeDoor, session: str) -> None:
    for runtime in PROGRAMS:
        assert core.add_context(session, f"{session}-{runtime}", runtime=runtime).runtime == runtime
    core.run(session, "open('/mnt/files/chain', 'w').write('python')")
    core.run(f"{session}-node", "const fs = require('fs'); fs.appendFileSync('/mnt/files/chain', ' node')")
    core.run(f"{session}-r", "cat(' r', file = '/mnt/files/chain', append = TRUE)")
    assert core.run(session, "open('/mnt/files/chain').read()").results == "'python node r'"
