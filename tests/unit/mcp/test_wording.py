"""An agent is never sent to a command line of the host's."""

from __future__ import annotations

import pytest

from workbench.errors import HostUnavailable, NotFound
from workbench.mcp.wording import for_agents, without_commands
from workbench.model.ids import SessionId
from workbench.storage import wording

SAID = {
    "a clause": (
        "no session 'x': it was never made, or is deleted; `workbench sessions ls` lists those there are",
        "no session 'x': it was never made, or is deleted",
    ),
    "a short clause": ("the host does not answer; see `workbench host status`", "the host does not answer"),
    "a sentence": (
        "It does not answer, so nothing is known. `workbench host status` tells how the host is.",
        "It does not answer, so nothing is known.",
    ),
    "an aside": (
        "delete them first (`workbench sessions ls` lists them), or choose another name",
        "delete them first, or choose another name",
    ),
    "nothing": ("a time limit must be above 0; use `limit`", "a time limit must be above 0; use `limit`"),
}


@pytest.mark.parametrize(("text", "expected"), SAID.values(), ids=SAID)
def test_what_only_a_person_on_the_host_can_do_is_left_out(text: str, expected: str) -> None:
    assert without_commands(text) == expected


def test_the_stores_own_words_keep_their_sense() -> None:
    assert for_agents(NotFound(wording.no_such_session(SessionId("gate")))) == (
        "no session 'gate': it was never made, or is deleted"
    )
    assert "`workbench" not in without_commands(wording.files_in_use(SessionId("gate")))


def test_what_an_agent_cannot_mend_is_said_to_be_the_owners() -> None:
    words = for_agents(HostUnavailable("the host does not answer; see `workbench host status`"))
    assert words == "the host does not answer. If this stays so, it is for whoever runs this server."
