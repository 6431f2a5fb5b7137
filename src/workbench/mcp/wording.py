"""Errors of the core in words for an agent, who has tools and no command line of the host's."""

from __future__ import annotations

import re

from workbench.contracts.host import answer_lost
from workbench.errors import (
    HostError,
    InternalError,
    SandboxError,
    ServerUnavailable,
    StoreUnavailable,
    WorkbenchError,
)

# A clause, a sentence or an aside that sends its reader to a command of ours.
_COMMAND = r"[^;.()`]*`workbench [^`]*`[^;.()]*"
_ASIDE = re.compile(rf"\s*\({_COMMAND}\)")
_CLAUSE = re.compile(rf";\s*{_COMMAND}")
_SENTENCE = re.compile(rf"(?<=\.)\s+{_COMMAND}\.")
_LONGER = re.compile(r", or ask for a longer limit \(up to [^()]*\)")
_OWNER = "If this stays so, it is for whoever runs this server."


def without_commands(text: str) -> str:
    """The same, without what only a person on the host could do."""
    for kind in (_ASIDE, _CLAUSE, _SENTENCE):
        text = kind.sub("", text)
    return text


def explained(text: str, most_s: float = 0) -> str:
    """Why something was ended. Only who can ask for a longer limit, of up to `most_s`, is told to."""
    longer = f", or ask for a longer limit (up to {most_s:g} s)" if most_s else ""
    return _LONGER.sub(longer, without_commands(text))


def for_agents(problem: WorkbenchError) -> str:
    """What is wrong, and whose it is to mend if not the agent's."""
    said = without_commands(problem.message)
    if isinstance(problem, SandboxError | HostError | StoreUnavailable):
        return f"{said.rstrip('.')}. {_OWNER}"
    return said


def may_have_begun(problem: WorkbenchError) -> bool:
    """Whether it may run, or have run: then nobody says that nothing did, and nobody proposes it again."""
    return isinstance(problem, ServerUnavailable | InternalError) or answer_lost(problem)


def goes_on(problem: WorkbenchError) -> str:
    """The id of the cell that began, or waits for its turn, and whose end nobody could wait for; or nothing."""
    return problem.context.get("cell", "") if isinstance(problem, ServerUnavailable) else ""
