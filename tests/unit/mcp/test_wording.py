"""An agent is never sent to a command line of the host's."""

from __future__ import annotations

import pytest

from workbench.errors import HostUnavailable, NotFound
from workbench.host.cells.words import Place, command_explanation, explanation
from workbench.mcp.wording import explained, for_agents, without_commands
from workbench.model.execution import Outcome
from workbench.model.ids import SessionId
from workbench.model.process import ProcessExit
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


def test_only_who_can_ask_for_a_longer_limit_is_told_to() -> None:
    place = Place(files_kept=True, has_start_up=False, most_s=3600)
    ended = ProcessExit(code=124, signal=None)
    for words in (
        explanation(Outcome.TIMED_OUT, 30, "", place, None),
        command_explanation(Outcome.TIMED_OUT, 30, ended, place),
    ):
        assert "(up to 3600 s)" in words
        assert explained(words).endswith(" Do it in smaller steps or in the background.")
        assert explained(words, 300).endswith(" in the background, or ask for a longer limit (up to 300 s).")


def test_the_stores_own_words_keep_their_sense() -> None:
    assert for_agents(NotFound(wording.no_such_session(SessionId("gate")))) == (
        "no session 'gate': it was never made, or is deleted"
    )
    assert "`workbench" not in without_commands(wording.files_in_use(SessionId("gate")))


def test_what_an_agent_cannot_mend_is_said_to_be_the_owners() -> None:
    words = for_agents(HostUnavailable("the host does not answer; see `workbench host status`"))
    assert words == "the host does not answer. If this stays so, it is for whoever runs this server."
