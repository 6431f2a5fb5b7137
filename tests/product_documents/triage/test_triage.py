"""The task of the page about the sandbox, from end to end: “Triage my emails, label the urgent ones, and log them to a
Google Sheet.” Tools are searched for, the mails fetched, and one cell classifies, labels and logs them in parallel;
through MCP, and through the official SDKs.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.composio_sdks.told import Told
from tests.helpers.leaks import Search
from tests.host.support import descendants, host_pids, namespace_pids
from tests.mcp.http.talking import OLDER, client_at
from tests.product_documents.triage.google import GMAIL, SHEET, SHEET_NAME, SHEETS, Mail
from tests.product_documents.triage.place import Place, place

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

URGENT = "Label_7"
SEARCH, MANY, CELL = "COMPOSIO_SEARCH_TOOLS", "COMPOSIO_MULTI_EXECUTE_TOOL", "COMPOSIO_REMOTE_WORKBENCH"
# What the search is asked for, and what does that; one of them is to be among the first three.
WANTED = {
    "fetch my unread emails": {"GMAIL_FETCH_EMAILS"},
    "put a label on an email": {"GMAIL_ADD_LABEL_TO_EMAIL"},
    "log rows to a google sheet": {"GOOGLESHEETS_BATCH_UPDATE", "GOOGLESHEETS_SPREADSHEETS_VALUES_APPEND"},
}
CODE = f"""\
from concurrent.futures import ThreadPoolExecutor

found, error = run_composio_tool("GMAIL_FETCH_EMAILS", {{"query": "is:unread", "max_results": 50}})
assert not error, error

def triage(mail):
    asked = "Is this mail urgent? Answer with one word, urgent or later. Mail: "
    answer, error = invoke_llm(asked + mail["subject"] + "\\n\\n" + mail["messageText"])
    assert not error, error
    if answer == "urgent":
        label = {{"message_id": mail["messageId"], "add_label_ids": [{URGENT!r}]}}
        _, error = run_composio_tool("GMAIL_ADD_LABEL_TO_EMAIL", label, print_schema_for_tool=False)
        assert not error, error
    return [mail["sender"], mail["subject"], answer]

with ThreadPoolExecutor(max_workers=8) as pool:
    rows = [row for row in pool.map(triage, found["data"]["messages"]) if row[2] == "urgent"]
log = {{"spreadsheet_id": {SHEET!r}, "sheet_name": {SHEET_NAME!r}, "values": rows}}
logged, error = run_composio_tool("GOOGLESHEETS_BATCH_UPDATE", log)
assert not error, error
print(len(found["data"]["messages"]), "mails,", len(rows), "urgent, in", logged["data"]["updates"]["updatedRange"])
"""
STEPS: dict[str, tuple[str, dict[str, Any]]] = {
    "search": (SEARCH, {"queries": [{"use_case": words} for words in WANTED], "session": {"generate_id": True}}),
    "many": (
        MANY,
        {
            "tools": [
                {"tool_slug": "GMAIL_FETCH_EMAILS", "arguments": {"query": "is:unread", "max_results": 50}},
                {"tool_slug": "GMAIL_LIST_LABELS", "arguments": {"userId": "me"}},
                {"tool_slug": "GOOGLESHEETS_GET_SHEET_NAMES", "arguments": {"spreadsheet_id": SHEET}},
            ],
            "sync_response_to_workbench": False,
        },
    ),
    "cell": (CELL, {"code_to_execute": CODE, "current_step": "CLASSIFYING_EMAILS"}),
}


@pytest.fixture(scope="module", name="place")
def _place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    if os.geteuid() != 0:
        pytest.skip("a network of its own, with names of its own, is root's")
    with place(tmp_path_factory.mktemp("triage")) as made:
        yield made


@pytest.fixture(autouse=True)
def mailbox(place: Place) -> dict[str, Mail]:
    """Twelve mails, every third of them urgent, and one that was read; nothing is labelled or logged yet."""
    calm = ("See you next month.", "Thanks for the photos!")
    hurried = ("The site is down, please call.", "This has to be signed today.")
    mails = {}
    for number in range(13):
        text = hurried[number % 2] if number % 3 == 0 else calm[number % 2]
        labels = {"INBOX"} if number == 12 else {"INBOX", "UNREAD"}
        one = f"m{number}"
        mails[one] = Mail(one, f"sender-{number}@example.com", f"Mail {number}: grüße", text, labels)
    google = place.google
    google.mails, google.labels, google.rows, google.calls = mails, {URGENT: "urgent"}, [], []
    return mails


def by_mcp(place: Place) -> tuple[dict[str, Any], str]:
    """At the address of a session that the official client is given."""
    session = place.new_session()
    return place.network.run(lambda: asyncio.run(_over_mcp(place, session))), session


async def _over_mcp(place: Place, session: str) -> dict[str, Any]:
    url = f"{place.server.url}/tool_router/{session}/mcp"
    found = {}
    async with client_at(url, place.server.key, OLDER) as client:
        for name, (tool, given) in STEPS.items():
            answer = await client.call_tool(tool, given)
            assert not answer.is_error, answer.structured_content
            told = answer.structured_content
            assert isinstance(told, dict)
            found[name] = told["data"]
    return found


def by_python(place: Place) -> tuple[dict[str, Any], str]:
    """`session.search` and `session.execute` of the newest line."""
    done = place.sdks.python("0.30", place.server, "-m", "tests.product_documents.triage.with_sdk", **_steps())
    assert done.code == 0, done.stderr
    return _of_sdk(Told("python 0.30", place.server, done.facts))


def by_typescript(place: Place) -> tuple[dict[str, Any], str]:
    """The same of the other SDK."""
    text = (Path(__file__).parent / "with_sdk.mjs").read_text(encoding="utf-8")
    done = place.sdks.node("0.21", place.server, "with_sdk.mjs", {"with_sdk.mjs": text}, **_steps())
    assert done.code == 0, done.stderr
    return _of_sdk(Told("typescript 0.21", place.server, done.facts))


def _steps() -> dict[str, str]:
    return {"STEPS": json.dumps(STEPS), "USE_CASE": json.dumps(next(iter(WANTED)))}


def _of_sdk(told: Told) -> tuple[dict[str, Any], str]:
    (first,) = told.gave("session.search")["results"]
    assert next(iter(WANTED.values())) & set(first["primary_tool_slugs"][:3])
    return {name: told.done(name) for name in STEPS}, told.gave("session")


Door = Callable[[Place], tuple[dict[str, Any], str]]


@pytest.mark.parametrize("door", [by_mcp, by_python, by_typescript])
def test_mails_are_triaged_labelled_and_logged(place: Place, mailbox: dict[str, Mail], door: Door) -> None:
    # What the mailbox was connected with is over: it is renewed on the way, by many calls at once.
    for token in place.google.world.tokens:
        token.born = 0.0
    before = len(place.google.world.tokens)
    answers, session = door(place)

    _check_search(answers["search"])
    mails, labels, sheets = (one["response"]["data"] for one in answers["many"]["results"])
    assert [one["messageId"] for one in mails["messages"]] == [f"m{number}" for number in range(12)]
    assert {"id": URGENT, "name": "urgent", "type": "user"} in labels["labels"]
    assert sheets == {"sheet_names": [SHEET_NAME]}
    assert answers["cell"]["error"] == ""
    assert answers["cell"]["stdout"].endswith(f"12 mails, 4 urgent, in {SHEET_NAME}!A1:C4\n")

    urgent = ["m0", "m3", "m6", "m9"]
    assert [one.id for one in mailbox.values() if URGENT in one.labels] == urgent
    assert all(one.labels <= {"INBOX", "UNREAD"} for one in mailbox.values() if one.id not in urgent)
    assert place.google.rows == [[mailbox[one].sender, mailbox[one].subject, "urgent"] for one in urgent]
    assert place.most_at_once() > 1
    # Once, whoever noticed first; and neither service has seen the other's token.
    assert len(place.google.world.tokens) == before + 1
    assert {call.token for call in place.google.calls if call.host == SHEETS} == {place.typed_in}
    assert place.typed_in not in {call.token for call in place.google.calls if call.host == GMAIL}
    assert {call.status for call in place.google.calls} == {200, 401}
    _check_secrets(place, session, answers)


def _check_search(told: dict[str, Any]) -> None:
    for result, (words, right) in zip(told["results"], WANTED.items(), strict=True):
        found = right & set(result["primary_tool_slugs"][:3])
        assert found, (words, result)
        assert all(told["tool_schemas"][slug]["hasFullSchema"] for slug in found)
    statuses = {one["toolkit"]: one["has_active_connection"] for one in told["toolkit_connection_statuses"]}
    assert statuses["gmail"]
    assert statuses["googlesheets"]


def _check_secrets(place: Place, session: str, answers: dict[str, Any]) -> None:
    """None is where code of the cell could have had it, nor in anything that anybody was told."""
    search = Search(place.secrets(), place.google.world.mark.encode())
    inside = [
        pid for host in host_pids(place.server.settings) for pid in descendants(host) if len(namespace_pids(pid)) > 1
    ]
    assert inside
    for pid in inside:
        search.process(pid, f"the sandbox's process {pid}")
        if namespace_pids(pid)[1:] == [1]:
            search.root_of(pid, "the sandbox")
    search.text("the answers", json.dumps(answers))
    search.folder(place.server.settings.data_dir, "the data folder")
    search.text("the log", place.server.log.read_bytes())
    for path in (f"/v1/sessions/{session}", f"/v1/sessions/{session}/history", "/v1/audit", "/v1/connections"):
        search.text(path, json.dumps(place.get(path)))
    assert search.found == set()
    assert search.unread == []
