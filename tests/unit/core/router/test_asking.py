"""What a task asks for is told from the names, numbers and letters in it."""

from __future__ import annotations

import time

import pytest

from workbench.core.router.asking import asked_for, wanted
from workbench.core.router.wording import Intent

READING = frozenset({Intent.READ, Intent.LIST})


@pytest.mark.parametrize(
    ("task", "asked"),
    [
        ("email ann@example.com saying dinner is ready", "email ann@example.com saying dinner is ready"),
        ("send an email to ann@example.com saying dinner is ready", "send an email to"),
        ("make a folder called Tax Papers in my drive", "make a folder in my drive"),
        ('post "hello all" in #general', "post in channel"),
        ("close the ticket OPS-12", "close the ticket"),
        ("rename notes.txt", "rename file"),
        ("comment on the card that we are late", "comment on the card"),
        ("create a task: buy milk", "create a task"),
        ("read cells B2 to C9 of the sheet", "read cells of the sheet"),
        ("invite Ann Smith to the board", "invite a person to the board"),
        ("send it to Slack on Monday", "send it to Slack on Monday"),
        ("move the meeting to Monday", "move the meeting to Monday"),
    ],
)
def test_names_numbers_and_what_is_to_be_said_are_left_out(task: str, asked: str) -> None:
    assert asked_for(task, frozenset({"slack"})) == asked


@pytest.mark.parametrize("task", ["", "12", '"quoted"', "call +1 555 123 4567"])
def test_something_is_always_left(task: str) -> None:
    assert asked_for(task).strip() or not task


@pytest.mark.parametrize(
    ("task", "intents"),
    [
        ("which files are there", READING),
        ("is the server on?", READING),
        ("can you delete the file?", {Intent.DELETE}),
        ("get rid of the old label", {Intent.DELETE}),
        ("take the new person off the guest list", {Intent.DELETE}),
        ("kick off the build", {Intent.CREATE, Intent.CHANGE}),
        ("set up a meeting", {Intent.CREATE}),
        ("open a new account", {Intent.CREATE}),
        ("please list my files", {Intent.LIST}),
        ("the guest list", set()),
        ("", set()),
    ],
)
def test_the_first_verb_tells_what_is_to_become_of_things(task: str, intents: set[Intent]) -> None:
    assert wanted(task) == intents


@pytest.mark.parametrize(
    "piece", ["A1 to ", "called A ", "x' '", "to Ann ", "take a ", '"', "that ", "a@b.", "12:", "#a "]
)
def test_a_task_of_the_longest_length_is_read_at_once(piece: str) -> None:
    task = (piece * 1024)[:1024]
    began = time.process_time()
    asked_for(task)
    wanted(task)
    assert time.process_time() - began < 0.2
