"""Calendar, Drive and Docs of Google by the names that people know."""

from __future__ import annotations

import datetime
import uuid
from typing import Any

from workbench.errors import InvalidRequest
from workbench.model.toolkit import Json, ToolResult
from workbench.toolkits.shipped.adapted.adaptation import (
    READS,
    REMOVES,
    REPLACES,
    Adaptation,
    Given,
    Step,
    a_file,
    adapted,
    flag,
    number,
    passed,
    text,
    texts,
)

_CALENDAR = text("Which calendar; `primary` for the account's own.", default="primary")
_FILE = text("Id of the file.")
_DOCUMENT = text("Id of the document: the part of its address between `/d/` and the next `/`.")
_EDITS = ("updateHint", "openWorldHint")
_FOLDER = "application/vnd.google-apps.folder"
# What documents of Google's own become when they are downloaded.
_EXPORTS = {
    "application/vnd.google-apps.document": "application/pdf",
    "application/vnd.google-apps.spreadsheet": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/vnd.google-apps.presentation": "application/pdf",
    "application/vnd.google-apps.drawing": "image/png",
}
_FOUND = "nextPageToken,files(id,name,mimeType,modifiedTime,size,webViewLink)"


async def _new_event(step: Step, given: Given) -> ToolResult:
    asked: Json = {"calendarId": given.text("calendar_id") or "primary", **_event(given)}
    if "start" not in asked:
        raise InvalidRequest("`start_datetime` is missing", {"argument": "start_datetime"})
    if given.flag("create_meeting_room"):
        request = {"requestId": uuid.uuid4().hex}
        asked["conferenceData"] = {"createRequest": request}
        asked["conferenceDataVersion"] = 1
    return await step("GOOGLECALENDAR_EVENTS_INSERT", asked)


async def _changed_event(step: Step, given: Given) -> ToolResult:
    asked = {"calendarId": given.text("calendar_id") or "primary", "eventId": given.needed("event_id")}
    return await step("GOOGLECALENDAR_PATCH_EVENT", {**asked, **_event(given)})


def _event(given: Given) -> Json:
    found: dict[str, Any] = {
        name: given.text(name) for name in ("summary", "description", "location") if given.text(name)
    }
    zone = given.text("timezone")
    if start := given.text("start_datetime"):
        begins = _moment("start_datetime", start)
        minutes = 60 * given.number("event_duration_hour", 0, 0, 24 * 30) + given.number(
            "event_duration_minutes", 0, 0, 24 * 60 * 30
        )
        ends = begins + datetime.timedelta(minutes=minutes or 30)
        if end := given.text("end_datetime"):
            ends = _moment("end_datetime", end)
        for name, when in (("start", begins), ("end", ends)):
            found[name] = {"dateTime": when.isoformat(), **({"timeZone": zone} if zone else {})}
        if not zone and begins.tzinfo is None:
            found["start"]["timeZone"] = found["end"]["timeZone"] = "UTC"
    if people := given.texts("attendees"):
        found["attendees"] = [{"email": one} for one in people]
    if rules := given.texts("recurrence"):
        found["recurrence"] = rules
    if who := given.text("send_updates"):
        found["sendUpdates"] = who
    return found


def _moment(name: str, value: str) -> datetime.datetime:
    try:
        return datetime.datetime.fromisoformat(value)
    except ValueError:
        raise InvalidRequest(f"`{name}` has to be a time such as 2026-05-01T09:30:00", {"argument": name}) from None


async def _free(step: Step, given: Given) -> ToolResult:
    asked = {
        "timeMin": given.needed("time_min"),
        "timeMax": given.needed("time_max"),
        "timeZone": given.text("timezone") or "UTC",
        "items": [{"id": one} for one in given.texts("items") or ["primary"]],
    }
    return await step("GOOGLECALENDAR_FREEBUSY_QUERY", asked)


async def _upload(step: Step, given: Given) -> ToolResult:
    value = given.arguments.get("file_to_upload")
    described = given.file("file_to_upload")
    if described is None:
        raise InvalidRequest("`file_to_upload` is missing", {"argument": "file_to_upload"})
    asked: Json = {"name": described[0], "mimeType": described[1], "file_to_upload": value}
    if folder := given.text("folder_to_upload_to"):
        asked["parents"] = [folder]
    return await step("GOOGLEDRIVE_FILES_CREATE", asked)


async def _from_text(step: Step, given: Given) -> ToolResult:
    kind = given.text("mime_type") or "text/plain"
    name = given.needed("file_name")
    asked: Json = {
        "name": name,
        "mimeType": kind,
        "file_to_upload": {"name": name, "mimetype": "text/plain", "s3key": "text"},
    }
    if folder := given.text("parent_id"):
        asked["parents"] = [folder]
    return await step("GOOGLEDRIVE_FILES_CREATE", asked, {"text": given.text("text_content").encode()})


async def _folder(step: Step, given: Given) -> ToolResult:
    name = given.text("name") or given.text("folder_name")
    if not name:
        raise InvalidRequest("`name` is missing", {"argument": "name"})
    asked: Json = {"name": name, "mimeType": _FOLDER}
    if parent := given.text("parent_id"):
        asked["parents"] = [parent]
    return await step("GOOGLEDRIVE_FILES_CREATE", asked)


async def _download(step: Step, given: Given) -> ToolResult:
    """Documents of Google's own have no content as they are: they become something else first."""
    file = given.needed("file_id")
    wanted = given.text("mime_type")
    known = await step("GOOGLEDRIVE_GET_FILE_METADATA", {"fileId": file, "fields": "name,mimeType"})
    if known.error:
        return known
    kind = str(known.data.get("mimeType", ""))
    if kind in _EXPORTS:
        return await step("GOOGLEDRIVE_EXPORT_FILE", {"fileId": file, "mimeType": wanted or _EXPORTS[kind]})
    return await step("GOOGLEDRIVE_GET_FILE_METADATA", {"fileId": file, "alt": "media"})


async def _find_folder(step: Step, given: Given) -> ToolResult:
    rules = [f"mimeType = '{_FOLDER}'", "trashed = false"]
    if name := given.text("name_exact"):
        rules.append(f"name = '{_escaped(name)}'")
    if part := given.text("name_contains"):
        rules.append(f"name contains '{_escaped(part)}'")
    if parent := given.text("parent_folder_id"):
        rules.append(f"'{_escaped(parent)}' in parents")
    asked = {"q": " and ".join(rules), "fields": _FOUND, "pageSize": given.number("page_size", 100, 1, 1000)}
    return await step("GOOGLEDRIVE_LIST_FILES", asked)


def _escaped(value: str) -> str:
    """As Drive wants texts in a query."""
    return value.replace("\\", "\\\\").replace("'", "\\'")


async def _overwrite(step: Step, given: Given) -> ToolResult:
    kind = given.text("mime_type") or "text/plain"
    asked: Json = {
        "fileId": given.needed("file_id"),
        "file_to_upload": {"name": "content", "mimetype": kind, "s3key": "text"},
    }
    return await step("GOOGLEDRIVE_FILES_UPDATE", asked, {"text": given.text("content").encode()})


async def _insert_text(step: Step, given: Given) -> ToolResult:
    place = {"location": {"index": given.number("insertion_index", 1, 1, 2**31)}}
    if given.flag("append_to_end"):
        place = {"endOfSegmentLocation": {}}
    request = {"insertText": {**place, "text": given.needed("text_to_insert")}}
    return await _change_document(step, given, request)


async def _replace_text(step: Step, given: Given) -> ToolResult:
    found = {"text": given.needed("find_text"), "matchCase": given.flag("match_case")}
    request = {"replaceAllText": {"containsText": found, "replaceText": given.text("replace_text")}}
    return await _change_document(step, given, request)


async def _change_document(step: Step, given: Given, request: Json) -> ToolResult:
    asked = {"documentId": given.needed("document_id"), "requests": [request]}
    return await step("GOOGLEDOCS_UPDATE_EXISTING_DOCUMENT", asked)


async def _new_document(step: Step, given: Given) -> ToolResult:
    made = await step("GOOGLEDOCS_DOCUMENTS_CREATE", {"title": given.needed("title")})
    words = given.text("text")
    if made.error or not words:
        return made
    identity = str(made.data.get("documentId", ""))
    request = {"insertText": {"location": {"index": 1}, "text": words}}
    written = await step("GOOGLEDOCS_UPDATE_EXISTING_DOCUMENT", {"documentId": identity, "requests": [request]})
    if written.error:
        data = {**written.data, "documentId": identity}
        told = f"the document {identity} was made, but its text was not written: {written.error}"
        return ToolResult(data=data, error=told, http_status=written.http_status)
    return made


_TIMES: dict[str, Json] = {
    "summary": text("What the event is called."),
    "start_datetime": text("When it begins: `2026-05-01T09:30:00`, in `timezone`, or with an offset of its own."),
    "end_datetime": text("When it ends; without it, the duration counts."),
    "event_duration_hour": number("How many hours it takes.", default=0, minimum=0),
    "event_duration_minutes": number("And how many minutes; half an hour if nothing is said.", default=0, minimum=0),
    "timezone": text("Of both: `Europe/Berlin`. UTC without, unless the times say theirs."),
    "attendees": texts("E-mail addresses of those who are invited."),
    "description": text("More about it."),
    "location": text("Where it is."),
    "recurrence": texts("Rules by which it repeats: `RRULE:FREQ=WEEKLY;COUNT=5`."),
    "send_updates": text("Who is told.", enum=["all", "externalOnly", "none"]),
    "calendar_id": _CALENDAR,
}

GOOGLE_SERVICES: tuple[Adaptation, ...] = (
    adapted(
        "GOOGLECALENDAR_CREATE_EVENT",
        "Create an event in a calendar, with people invited to it and, if wanted, a video meeting.",
        {**_TIMES, "create_meeting_room": flag("Whether it gets a video meeting.")},
        _new_event,
        required=("start_datetime",),
    ),
    adapted(
        "GOOGLECALENDAR_UPDATE_EVENT",
        "Change an event; what is not said stays as it is.",
        {"event_id": text("Of the event."), **_TIMES},
        _changed_event,
        required=("event_id",),
        tags=REPLACES,
    ),
    adapted(
        "GOOGLECALENDAR_FIND_EVENT",
        "Find events of a calendar by words and times.",
        {
            "query": text("Words of the event."),
            "timeMin": text("Those that end after: `2026-05-01T00:00:00Z`."),
            "timeMax": text("Those that begin before."),
            "calendar_id": _CALENDAR,
            "max_results": number("How many.", default=10, minimum=1, maximum=2500),
            "single_events": flag("Whether each of an event that repeats is told.", default=True),
            "order_by": text("By what.", enum=["startTime", "updated"]),
            "page_token": text("`nextPageToken` of the answer before."),
        },
        passed(
            "GOOGLECALENDAR_EVENTS_LIST",
            {
                "query": "q", "timeMin": "timeMin", "timeMax": "timeMax", "calendar_id": "calendarId",
                "max_results": "maxResults", "single_events": "singleEvents", "order_by": "orderBy",
                "page_token": "pageToken",
            },
            calendarId="primary", maxResults=10, singleEvents=True,
        ),
        tags=READS,
    ),
    adapted(
        "GOOGLECALENDAR_DELETE_EVENT",
        "Delete an event.",
        {"event_id": text("Of the event."), "calendar_id": _CALENDAR},
        passed(
            "GOOGLECALENDAR_EVENTS_DELETE",
            {"event_id": "eventId", "calendar_id": "calendarId"},
            calendarId="primary",
        ),
        required=("event_id",),
        tags=REMOVES,
    ),
    adapted(
        "GOOGLECALENDAR_FIND_FREE_SLOTS",
        "When calendars are busy within a time, so that a free slot can be found.",
        {
            "time_min": text("From: `2026-05-01T08:00:00Z`."),
            "time_max": text("Until."),
            "timezone": text("In which the answer is told.", default="UTC"),
            "items": texts("Ids of the calendars; `primary` for the account's own."),
        },
        _free,
        required=("time_min", "time_max"),
        tags=READS,
    ),
    adapted(
        "GOOGLEDRIVE_FIND_FILE",
        "Find files and folders by a query: `name contains 'report' and trashed = false`.",
        {
            "q": text("The query, in Drive's own words."),
            "page_size": number("How many.", default=100, minimum=1, maximum=1000),
            "page_token": text("`nextPageToken` of the answer before."),
            "order_by": text("By what: `modifiedTime desc`."),
            "fields": text("Which fields.", default=_FOUND),
        },
        passed(
            "GOOGLEDRIVE_LIST_FILES",
            {"q": "q", "page_size": "pageSize", "page_token": "pageToken", "order_by": "orderBy", "fields": "fields"},
            fields=_FOUND,
        ),
        tags=READS,
    ),
    adapted(
        "GOOGLEDRIVE_UPLOAD_FILE",
        "Upload a file of the session's mount.",
        {
            "file_to_upload": a_file("The file."),
            "folder_to_upload_to": text("Id of the folder that it goes into; the root without."),
        },
        _upload,
        required=("file_to_upload",),
    ),
    adapted(
        "GOOGLEDRIVE_CREATE_FILE_FROM_TEXT",
        "Create a file with a text in it.",
        {
            "file_name": text("What it is called."),
            "text_content": text("What is in it."),
            "parent_id": text("Id of the folder that it goes into; the root without."),
            "mime_type": text("What it becomes; `application/vnd.google-apps.document` for a document to edit there.",
                              default="text/plain"),
        },
        _from_text,
        required=("file_name", "text_content"),
    ),
    adapted(
        "GOOGLEDRIVE_CREATE_FOLDER",
        "Create a folder.",
        {
            "name": text("What it is called."),
            "folder_name": text("The same by its other name."),
            "parent_id": text("Id of the folder that it goes into; the root without."),
        },
        _folder,
    ),
    adapted(
        "GOOGLEDRIVE_DOWNLOAD_FILE",
        "Download the content of a file; documents, sheets and slides of Google's own are exported.",
        {"file_id": _FILE, "mime_type": text("What an exported one becomes: `text/plain`, `application/pdf`.")},
        _download,
        required=("file_id",),
        tags=READS,
    ),
    adapted(
        "GOOGLEDRIVE_ADD_FILE_SHARING_PREFERENCE",
        "Share a file or a folder: with a person, a group, a domain, or everybody who has the link.",
        {
            "file_id": _FILE,
            "role": text("What they may.", enum=["reader", "commenter", "writer", "organizer", "owner"]),
            "type": text("Who.", enum=["user", "group", "domain", "anyone"]),
            "email_address": text("Of a user or a group."),
            "domain": text("Of a domain."),
        },
        passed(
            "GOOGLEDRIVE_PERMISSIONS_CREATE",
            {"file_id": "fileId", "role": "role", "type": "type", "email_address": "emailAddress", "domain": "domain"},
        ),
        required=("file_id", "role", "type"),
    ),
    adapted(
        "GOOGLEDRIVE_MOVE_FILE",
        "Move a file to another folder.",
        {
            "file_id": _FILE,
            "add_parents": text("Id of the folder that it goes into."),
            "remove_parents": text("Id of the folder that it leaves."),
        },
        passed(
            "GOOGLEDRIVE_FILES_UPDATE",
            {"file_id": "fileId", "add_parents": "addParents", "remove_parents": "removeParents"},
        ),
        required=("file_id", "add_parents"),
        tags=REPLACES,
    ),
    adapted(
        "GOOGLEDOCS_CREATE_DOCUMENT",
        "Create a document with a title and a text.",
        {"title": text("What it is called."), "text": text("What is in it; empty without.")},
        _new_document,
        required=("title",),
    ),
    adapted(
        "GOOGLEDOCS_INSERT_TEXT_ACTION",
        "Insert a text into a document, at its beginning, at an index or at its end.",
        {
            "document_id": _DOCUMENT,
            "text_to_insert": text("What is inserted."),
            "insertion_index": number("Where; 1 is the beginning.", default=1, minimum=1),
            "append_to_end": flag("Whether it goes to the end instead."),
        },
        _insert_text,
        required=("document_id", "text_to_insert"),
        tags=_EDITS,
    ),
    adapted(
        "GOOGLEDOCS_REPLACE_ALL_TEXT",
        "Replace a text wherever it is in a document.",
        {
            "document_id": _DOCUMENT,
            "find_text": text("What is replaced."),
            "replace_text": text("By what; it is taken out without."),
            "match_case": flag("Whether capital and small letters differ."),
        },
        _replace_text,
        required=("document_id", "find_text"),
        tags=REPLACES,
    ),
    adapted(
        "GOOGLEDRIVE_FIND_FOLDER",
        "Find folders by their names.",
        {
            "name_exact": text("The whole name."),
            "name_contains": text("How the name, or a word of it, begins."),
            "parent_folder_id": text("Only those in this folder."),
            "page_size": number("How many.", default=100, minimum=1, maximum=1000),
        },
        _find_folder,
        tags=READS,
    ),
    adapted(
        "GOOGLEDRIVE_EDIT_FILE",
        "Write a text over the content of a file.",
        {
            "file_id": _FILE,
            "content": text("What is in it from now on."),
            "mime_type": text("Of what kind that is.", default="text/plain"),
        },
        _overwrite,
        required=("file_id", "content"),
        tags=REPLACES,
    ),
    adapted(
        "GOOGLEDRIVE_RENAME_FILE",
        "Give a file or folder another name.",
        {"file_id": _FILE, "new_name": text("What it is called from now on.")},
        passed("GOOGLEDRIVE_FILES_UPDATE", {"file_id": "fileId", "new_name": "name"}),
        required=("file_id", "new_name"),
        tags=REPLACES,
    ),
    adapted(
        "GOOGLEDRIVE_GOOGLE_DRIVE_DELETE_FOLDER_OR_FILE_ACTION",
        "Delete a file, or a folder with all that is in it, for good.",
        {"file_id": text("Id of the file or folder.")},
        passed("GOOGLEDRIVE_DELETE_FILE", {"file_id": "fileId"}),
        required=("file_id",),
        tags=REMOVES,
    ),
)  # fmt: skip
