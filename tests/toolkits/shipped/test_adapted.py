"""Tools by the names that people know: what reaches the services."""

from __future__ import annotations

import email
import email.policy
import json
import urllib.parse
from typing import Any

import jsonschema_rs
import pytest
from tests.toolkits.service import Asked
from tests.toolkits.shipped.world import VALUES, answering, shipped

from workbench.errors import InvalidRequest
from workbench.toolkits.shipped.source import ADAPTATIONS

_SHEETS, _CALENDAR, _DRIVE = "/googlesheets/v4/spreadsheets", "/googlecalendar/calendar/v3", "/googledrive/drive/v3"
_START = {"dateTime": "2026-05-01T09:30:00", "timeZone": "Europe/Berlin"}

_PAGE = "59833787-2cf9-4fdf-8782-e53db20768a5"


def _said(words: str) -> dict[str, Any]:
    return {"type": "text", "text": {"content": words}}


def _paragraph(*said: dict[str, Any]) -> dict[str, Any]:
    return {"object": "block", "type": "paragraph", "paragraph": {"rich_text": list(said)}}


CALLS: list[tuple[str, dict[str, Any], str, str, dict[str, str], Any]] = [
    ("GOOGLESHEETS_BATCH_GET", {"spreadsheet_id": "s", "ranges": ["A1:B2"]},
     "GET", f"{_SHEETS}/s/values:batchGet", {"ranges": "A1:B2"}, None),
    ("GOOGLESHEETS_BATCH_UPDATE", {"spreadsheet_id": "s", "sheet_name": "Ann's", "values": [["a", 1]],
                                   "first_cell_location": "B2"},
     "PUT", f"{_SHEETS}/s/values/'Ann''s'!B2", {"valueInputOption": "USER_ENTERED"}, {"values": [["a", 1]]}),
    ("GOOGLESHEETS_BATCH_UPDATE", {"spreadsheet_id": "s", "sheet_name": "Log", "values": [["a"]],
                                   "value_input_option": "RAW"},
     "POST", f"{_SHEETS}/s/values/'Log':append", {"valueInputOption": "RAW"}, {"values": [["a"]]}),
    ("GOOGLESHEETS_CREATE_GOOGLE_SHEET1", {"title": "Log"}, "POST", _SHEETS, {}, {"properties": {"title": "Log"}}),
    ("GOOGLESHEETS_GET_SPREADSHEET_INFO", {"spreadsheet_id": "s"}, "GET", f"{_SHEETS}/s", {}, None),
    ("GOOGLESHEETS_GET_SHEET_NAMES", {"spreadsheet_id": "s"}, "GET", f"{_SHEETS}/s",
     {"fields": "sheets.properties.title"}, None),
    ("GOOGLESHEETS_ADD_SHEET", {"spreadsheet_id": "s", "title": "New"}, "POST", f"{_SHEETS}/s:batchUpdate", {},
     {"requests": [{"addSheet": {"properties": {"title": "New"}}}]}),
    ("GOOGLESHEETS_CLEAR_VALUES", {"spreadsheet_id": "s", "range": "A1:B"}, "POST", f"{_SHEETS}/s/values/A1:B:clear",
     {}, {}),
    ("GOOGLECALENDAR_CREATE_EVENT", {"summary": "Lunch", "start_datetime": "2026-05-01T09:30:00",
                                     "timezone": "Europe/Berlin", "event_duration_minutes": 45,
                                     "attendees": ["ada@example.com"], "send_updates": "all"},
     "POST", f"{_CALENDAR}/calendars/primary/events", {"sendUpdates": "all"},
     {"summary": "Lunch", "start": _START, "end": {**_START, "dateTime": "2026-05-01T10:15:00"},
      "attendees": [{"email": "ada@example.com"}]}),
    ("GOOGLECALENDAR_UPDATE_EVENT", {"event_id": "e", "location": "Here", "calendar_id": "c@example.com"},
     "PATCH", f"{_CALENDAR}/calendars/c@example.com/events/e", {}, {"location": "Here"}),
    ("GOOGLECALENDAR_FIND_EVENT", {"query": "lunch", "timeMin": "2026-05-01T00:00:00Z"},
     "GET", f"{_CALENDAR}/calendars/primary/events",
     {"q": "lunch", "timeMin": "2026-05-01T00:00:00Z", "maxResults": "10", "singleEvents": "true"}, None),
    ("GOOGLECALENDAR_DELETE_EVENT", {"event_id": "e"}, "DELETE", f"{_CALENDAR}/calendars/primary/events/e", {}, None),
    ("GOOGLECALENDAR_FIND_FREE_SLOTS", {"time_min": "2026-05-01T08:00:00Z", "time_max": "2026-05-01T18:00:00Z"},
     "POST", f"{_CALENDAR}/freeBusy", {},
     {"timeMin": "2026-05-01T08:00:00Z", "timeMax": "2026-05-01T18:00:00Z", "timeZone": "UTC",
      "items": [{"id": "primary"}]}),
    ("GOOGLEDRIVE_FIND_FILE", {"q": "trashed = false", "page_size": 5}, "GET", f"{_DRIVE}/files",
     {"q": "trashed = false", "pageSize": "5",
      "fields": "nextPageToken,files(id,name,mimeType,modifiedTime,size,webViewLink)"}, None),
    ("GOOGLEDRIVE_CREATE_FOLDER", {"name": "Plans", "parent_id": "p"}, "POST", f"{_DRIVE}/files", {},
     {"name": "Plans", "mimeType": "application/vnd.google-apps.folder", "parents": ["p"]}),
    ("GOOGLEDRIVE_ADD_FILE_SHARING_PREFERENCE", {"file_id": "f", "role": "reader", "type": "anyone"},
     "POST", f"{_DRIVE}/files/f/permissions", {}, {"role": "reader", "type": "anyone"}),
    ("GOOGLEDRIVE_MOVE_FILE", {"file_id": "f", "add_parents": "a", "remove_parents": "b"},
     "PATCH", f"{_DRIVE}/files/f", {"addParents": "a", "removeParents": "b"}, {}),
    ("JIRA_CREATE_ISSUE", {"project_key": "ABC", "summary": "Broken", "description": "It\n\nis", "issue_type": "Bug"},
     "POST", "/jira/rest/api/3/issue", {},
     {"fields": {"project": {"key": "ABC"}, "summary": "Broken", "issuetype": {"name": "Bug"},
                 "description": {"type": "doc", "version": 1, "content": [
                     {"type": "paragraph", "content": [{"type": "text", "text": "It"}]},
                     {"type": "paragraph", "content": []},
                     {"type": "paragraph", "content": [{"type": "text", "text": "is"}]}]}}}),
    ("JIRA_ADD_COMMENT", {"issue_id_or_key": "ABC-1", "comment": "Yes"}, "POST", "/jira/rest/api/3/issue/ABC-1/comment",
     {}, {"body": {"type": "doc", "version": 1, "content": [
         {"type": "paragraph", "content": [{"type": "text", "text": "Yes"}]}]}}),
    ("NOTION_SEARCH_NOTION_PAGE", {"query": "plans"}, "POST", "/notion/v1/search", {}, {"query": "plans"}),
    ("NOTION_CREATE_NOTION_PAGE", {"parent_id": _PAGE, "title": "Plans", "content": "One\n\nTwo"},
     "POST", "/notion/v1/pages", {},
     {"parent": {"page_id": _PAGE}, "properties": {"title": {"title": [_said("Plans")]}},
      "children": [_paragraph(_said("One")), _paragraph(), _paragraph(_said("Two"))]}),
    ("NOTION_ADD_PAGE_CONTENT", {"parent_block_id": _PAGE, "content": "More"},
     "PATCH", f"/notion/v1/blocks/{_PAGE}/children", {}, {"children": [_paragraph(_said("More"))]}),
    ("NOTION_FETCH_DATABASE", {"database_id": "d"}, "GET", "/notion/v1/databases/d", {}, None),
    ("NOTION_FETCH_BLOCK_CONTENTS", {"block_id": "b", "page_size": 5}, "GET", "/notion/v1/blocks/b/children",
     {"page_size": "5"}, None),
    ("NOTION_LIST_USERS", {"start_cursor": "c"}, "GET", "/notion/v1/users", {"start_cursor": "c"}, None),
    ("GOOGLESHEETS_VALUES_GET", {"spreadsheet_id": "s", "range": "A1:B2"}, "GET", f"{_SHEETS}/s/values/A1:B2", {},
     None),
    ("GOOGLESHEETS_VALUES_UPDATE", {"spreadsheet_id": "s", "range": "Log!A1", "values": [["a", 1]]},
     "PUT", f"{_SHEETS}/s/values/Log!A1", {"valueInputOption": "USER_ENTERED"}, {"values": [["a", 1]]}),
    ("GOOGLESHEETS_VALUES_APPEND", {"spreadsheet_id": "s", "range": "Log", "values": [["a"]],
                                    "value_input_option": "RAW"},
     "POST", f"{_SHEETS}/s/values/Log:append", {"valueInputOption": "RAW"}, {"values": [["a"]]}),
    ("GOOGLESHEETS_BATCH_UPDATE", {"spreadsheet_id": "s", "sheet_name": "Log", "values": [["a"]],
                                   "valueInputOption": "RAW"},
     "POST", f"{_SHEETS}/s/values/'Log':append", {"valueInputOption": "RAW"}, {"values": [["a"]]}),
    ("GOOGLEDRIVE_FIND_FOLDER", {"name_exact": "Ann's", "parent_folder_id": "p"}, "GET", f"{_DRIVE}/files",
     {"q": "mimeType = 'application/vnd.google-apps.folder' and trashed = false and name = 'Ann\\'s' "
           "and 'p' in parents",
      "pageSize": "100", "fields": "nextPageToken,files(id,name,mimeType,modifiedTime,size,webViewLink)"}, None),
    ("GOOGLEDRIVE_RENAME_FILE", {"file_id": "f", "new_name": "New"}, "PATCH", f"{_DRIVE}/files/f", {}, {"name": "New"}),
    ("GOOGLEDRIVE_GOOGLE_DRIVE_DELETE_FOLDER_OR_FILE_ACTION", {"file_id": "f"}, "DELETE", f"{_DRIVE}/files/f", {},
     None),
    ("GOOGLEDOCS_INSERT_TEXT_ACTION", {"document_id": "d", "text_to_insert": "Hi", "append_to_end": True},
     "POST", "/googledocs/v1/documents/d:batchUpdate", {},
     {"requests": [{"insertText": {"endOfSegmentLocation": {}, "text": "Hi"}}]}),
    ("GOOGLEDOCS_INSERT_TEXT_ACTION", {"document_id": "d", "text_to_insert": "Hi", "insertion_index": 7},
     "POST", "/googledocs/v1/documents/d:batchUpdate", {},
     {"requests": [{"insertText": {"location": {"index": 7}, "text": "Hi"}}]}),
    ("GOOGLEDOCS_REPLACE_ALL_TEXT", {"document_id": "d", "find_text": "a", "replace_text": "b"},
     "POST", "/googledocs/v1/documents/d:batchUpdate", {},
     {"requests": [{"replaceAllText": {"containsText": {"text": "a", "matchCase": False}, "replaceText": "b"}}]}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("slug", "arguments", "method", "path", "query", "body"),
    CALLS,
    ids=[f"{one[0]}-{number}" for number, one in enumerate(CALLS)],
)
async def test_plain_arguments_become_the_call(
    slug: str, arguments: dict[str, Any], method: str, path: str, query: dict[str, str], body: Any
) -> None:
    jsonschema_rs.validate(ADAPTATIONS[slug].tool.input_schema, arguments)
    async with shipped(answering({"sheets": [{"properties": {"title": "One"}}]})) as world:
        result = await world.run(slug, arguments)
        [asked] = world.service.seen
    assert (result.error, asked.method, asked.path) == ("", method, path)
    assert dict(asked.query) == query
    assert (json.loads(asked.body) if asked.body else None) == body or (body == {} and not asked.body)


async def test_a_message_is_said_in_slack_and_a_refusal_is_told() -> None:
    """Slack says no with the status of a success."""
    answers = answering({"ok": True, "ts": "1.2"}, {"ok": False, "error": "channel_not_found"})
    async with shipped(answers) as world:
        good = await world.run("SLACK_SEND_MESSAGE", {"channel": "#general", "text": "Hi *all*"})
        bad = await world.run("SLACK_SEND_MESSAGE", {"channel": "nowhere", "markdown_text": "Hi"})
        first = world.service.seen[0]
        with pytest.raises(InvalidRequest, match="text"):
            await world.run("SLACK_SEND_MESSAGE", {"channel": "#general"})
    assert (good.error, good.data["ts"]) == ("", "1.2")
    assert "channel_not_found" in bad.error
    assert first.path == "/slack/chat.postMessage"
    assert dict(_form(first)) == {"channel": "#general", "text": "Hi *all*"}


async def test_channels_and_people_are_found_by_a_part_of_their_names() -> None:
    channels = {"ok": True, "channels": [{"id": "C1", "name": "general"}, {"id": "C2", "name": "sales-eu"}],
                "response_metadata": {"next_cursor": "more"}}  # fmt: skip
    people = {"ok": True, "members": [{"id": "U1", "name": "ann", "profile": {"email": "ann@example.com"}},
                                      {"id": "U2", "name": "bob", "profile": None}]}  # fmt: skip
    async with shipped(answering(channels, people)) as world:
        found = await world.run("SLACK_FIND_CHANNELS", {"search_query": "#Sales"})
        who = await world.run("SLACK_FIND_USERS", {"search_query": "ANN@"})
        first, second = world.service.seen
    assert ([one["id"] for one in found.data["channels"]], found.data["looked_through"]) == (["C2"], 2)
    assert "page by page" in found.data["note"]
    assert ([one["id"] for one in who.data["members"]], "note" in who.data) == (["U1"], False)
    assert (first.path, second.path) == ("/slack/conversations.list", "/slack/users.list")
    assert dict(first.query)["exclude_archived"] == "true"


async def test_a_subscription_is_cancelled() -> None:
    async with shipped(answering({"id": "sub_1"})) as world:
        result = await world.run("STRIPE_CANCEL_SUBSCRIPTION", {"subscription_id": "sub_1", "prorate": True})
        asked = world.last
    assert (result.error, asked.method, asked.path) == ("", "DELETE", "/stripe/v1/subscriptions/sub_1")
    assert dict(_form(asked)) == {"prorate": "true"}


@pytest.mark.parametrize(("query", "is_exact", "row"), [
    ("ada", False, ["Ada", 36]), ("ada", True, None), ("36", True, ["Ada", 36]), ("Ad", False, None),
])  # fmt: skip
async def test_a_row_is_found_by_one_of_its_cells(query: str, is_exact: bool, row: list[Any] | None) -> None:
    names = {"sheets": [{"properties": {"title": "Ann's"}}]}
    async with shipped(answering(names, {"range": "x", "values": [["Name", "Age"], ["Ada", 36]]})) as world:
        asked = {"spreadsheet_id": "s", "query": query, "case_sensitive": is_exact}
        found = await world.run("GOOGLESHEETS_LOOKUP_SPREADSHEET_ROW", asked)
        path = world.last.path
    assert path == f"{_SHEETS}/s/values/'Ann''s'"
    assert (found.data["found"], found.data.get("row_data")) == (row is not None, row)


async def test_a_database_of_notion_is_queried_by_its_first_source() -> None:
    database = {"data_sources": [{"id": "s1"}, {"id": "s2"}]}
    async with shipped(answering(database, {"results": [{"id": "r"}]})) as world:
        found = await world.run("NOTION_QUERY_DATABASE", {"database_id": "d", "page_size": 5})
        first, second = world.service.seen
    assert (first.path, second.path) == ("/notion/v1/databases/d", "/notion/v1/data_sources/s1/query")
    assert json.loads(second.body) == {"page_size": 5}
    assert "s2" in found.data["note"]
    async with shipped(answering({"data_sources": []})) as world:
        assert "no data source" in (await world.run("NOTION_QUERY_DATABASE", {"database_id": "d"})).error


async def test_a_text_is_written_over_a_file_of_the_drive() -> None:
    async with shipped(answering({"id": "f"})) as world:
        await world.run("GOOGLEDRIVE_EDIT_FILE", {"file_id": "f", "content": "Hällo"})
        asked = world.last
    assert (asked.method, asked.path) == ("PATCH", "/googledrive/upload/drive/v3/files/f")
    assert "Hällo".encode() in asked.body


async def test_a_file_of_the_mount_goes_into_the_drive() -> None:
    async with shipped(answering({"id": "f1"})) as world:
        file = {"name": "a.csv", "mimetype": "text/csv", "s3key": "mount-1/a.csv"}
        arguments = {"file_to_upload": file, "folder_to_upload_to": "p"}
        await world.run("GOOGLEDRIVE_UPLOAD_FILE", arguments, files={"mount-1/a.csv": b"a,b\n\xff"})
        asked = world.last
    assert (asked.method, asked.path) == ("POST", "/googledrive/upload/drive/v3/files")
    about, content = _parts(asked)
    assert json.loads(about) == {"name": "a.csv", "mimeType": "text/csv", "parents": ["p"]}
    assert content == b"a,b\n\xff"


async def test_a_text_becomes_a_file_of_the_drive() -> None:
    async with shipped(answering({"id": "f1"})) as world:
        await world.run("GOOGLEDRIVE_CREATE_FILE_FROM_TEXT", {"file_name": "ä.txt", "text_content": "Hällo"})
        about, content = _parts(world.last)
    assert json.loads(about) == {"name": "ä.txt", "mimeType": "text/plain"}
    assert content == "Hällo".encode()


@pytest.mark.parametrize(("kind", "path", "query"), [
    ("text/csv", "/files/f", {"alt": "media"}),
    ("application/vnd.google-apps.document", "/files/f/export", {"mimeType": "application/pdf"}),
])  # fmt: skip
async def test_a_file_of_the_drive_comes_back_as_a_file(kind: str, path: str, query: dict[str, str]) -> None:
    async def drive(asked: Asked) -> None:
        if dict(asked.query) == {"fields": "name,mimeType"}:
            await asked.json(json.dumps({"name": "a", "mimeType": kind}))
        else:
            await asked.answer(200, b"%PDF\x00", {"Content-Type": "application/pdf"})

    async with shipped(drive) as world:
        result = await world.run("GOOGLEDRIVE_DOWNLOAD_FILE", {"file_id": "f"})
        asked = world.last
    assert (asked.path, dict(asked.query)) == (f"{_DRIVE}{path}", query)
    assert result.file is not None
    assert result.file.content == b"%PDF\x00"


async def test_a_document_is_made_and_written() -> None:
    async with shipped(answering({"documentId": "d1"}, {"replies": []})) as world:
        result = await world.run("GOOGLEDOCS_CREATE_DOCUMENT", {"title": "Plans", "text": "Hi"})
        made, written = world.service.seen
    assert result.data == {"documentId": "d1"}
    assert json.loads(made.body) == {"title": "Plans"}
    assert written.path == "/googledocs/v1/documents/d1:batchUpdate"
    request = {"insertText": {"location": {"index": 1}, "text": "Hi"}}
    assert json.loads(written.body) == {"requests": [request]}


async def test_a_document_whose_text_was_not_written_is_told_with_its_id() -> None:
    """It is there: whoever asks again would have two."""

    async def docs(asked: Asked) -> None:
        if asked.path.endswith("/documents"):
            await asked.json('{"documentId": "d1"}')
        else:
            await asked.json('{"error": {"message": "no"}}', 500)

    async with shipped(docs) as world:
        result = await world.run("GOOGLEDOCS_CREATE_DOCUMENT", {"title": "Plans", "text": "Hi"})
    assert "d1" in result.error
    assert result.data["documentId"] == "d1"


@pytest.mark.parametrize(("slug", "arguments", "name"), [
    ("GOOGLECALENDAR_CREATE_EVENT", {"start_datetime": "tomorrow"}, "start_datetime"),
    ("GOOGLECALENDAR_CREATE_EVENT", {"summary": "Lunch"}, "start_datetime"),
    ("GOOGLESHEETS_BATCH_UPDATE", {"spreadsheet_id": "s", "sheet_name": "x", "values": ["a"]}, "values"),
    ("GOOGLEDRIVE_UPLOAD_FILE", {"file_to_upload": {"name": "a"}}, "file_to_upload"),
    ("GOOGLEDRIVE_DOWNLOAD_FILE", {"file_id": ""}, "file_id"),
    ("GMAIL_FETCH_EMAILS", {"max_results": 1000}, "max_results"),
    ("NOTION_ADD_PAGE_CONTENT", {"parent_block_id": "b", "content": "x" * 2001}, "content"),
    ("JIRA_CREATE_ISSUE", {"summary": "x"}, "project_key"),
])  # fmt: skip
async def test_an_argument_that_cannot_be_is_named(slug: str, arguments: dict[str, Any], name: str) -> None:
    async with shipped(answering({})) as world:
        with pytest.raises(InvalidRequest, match=name):
            await world.run(slug, arguments)
        assert not world.service.seen


async def test_the_account_says_what_the_caller_does_not() -> None:
    """Whose account it is at Twilio is in the address, and known from the credential."""
    async with shipped(answering({})) as world:
        await world.run("TWILIO_SEND_MESSAGE", {"To": "+1", "Body": "Hi"})
        await world.run("TWILIO_SEND_MESSAGE", {"To": "+1", "Body": "Hi", "AccountSid": "AC1"})
        own, other = (one.path for one in world.service.seen)
    assert own == f"/twilio/2010-04-01/Accounts/{VALUES['username']}/Messages.json"
    assert other == "/twilio/2010-04-01/Accounts/AC1/Messages.json"


def _form(asked: Asked) -> list[tuple[str, str]]:
    return urllib.parse.parse_qsl(asked.body.decode())


def _parts(asked: Asked) -> tuple[bytes, bytes]:
    whole = email.message_from_bytes(
        f"Content-Type: {asked.header('content-type')}\r\n\r\n".encode() + asked.body, policy=email.policy.HTTP
    )
    first, second = (part.get_payload(decode=True) for part in whole.iter_parts())
    assert isinstance(first, bytes)
    assert isinstance(second, bytes)
    return first, second
