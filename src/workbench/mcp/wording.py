"""Errors of the core in words for an agent, who has tools and no command line of the host's."""

from __future__ import annotations

import re

from workbench.errors import HostError, SandboxError, StoreUnavailable, WorkbenchError

# A clause, a sentence or an aside that sends its reader to a command of ours.
_COMMAND = r"[^;.()`]*`workbench [^`]*`[^;.()]*"
_ASIDE = re.compile(rf"\s*\({_COMMAND}\)")
_CLAUSE = re.compile(rf";\s*{_COMMAND}")
_SENTENCE = re.compile(rf"(?<=\.)\s+{_COMMAND}\.")
_OWNER = "If this stays so, it is for whoever runs this server."


def without_commands(text: str) -> str:
    """The same, without what only a person on the host could do."""
    for kind in (_ASIDE, _CLAUSE, _SENTENCE):
        text = kind.sub("", text)
    return text


def for_agents(problem: WorkbenchError) -> str:
    """What is wrong, and whose it is to mend if not the agent's."""
    said = without_commands(problem.message)
    if isinstance(problem, SandboxError | HostError | StoreUnavailable):
        return f"{said.rstrip('.')}. {_OWNER}"
    return said
