"""One call of a tool of every shipped toolkit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Sample:
    """A call, and the path of the description that it is."""

    slug: str
    arguments: dict[str, Any]
    path: str
    """as the provider writes it: of OpenAPI the path, of Google's the method's id"""
    of: int = 0
    """which of the ways in of the toolkit"""

    @property
    def id(self) -> str:
        return self.slug


_MAIL = {
    "personalizations": [{"to": [{"email": "ada@example.com"}]}],
    "from": {"email": "me@example.com"},
    "subject": "Hello",
    "content": [{"type": "text/plain", "value": "Hi Ada"}],
}
_WHEN = {"dateTime": "2026-05-01T09:30:00", "timeZone": "Europe/Berlin"}

GOOGLE: dict[str, Sample] = {
    "gmail": Sample(
        "GMAIL_USERS_MESSAGES_LIST",
        {"q": "from:ada@example.com is:unread", "labelIds": ["INBOX", "UNREAD"], "maxResults": 5},
        "gmail.users.messages.list",
    ),
    "googlesheets": Sample(
        "GOOGLESHEETS_SPREADSHEETS_VALUES_APPEND",
        {
            "spreadsheetId": "s1",
            "range": "'My sheet'!A1:B2",
            "valueInputOption": "RAW",
            "values": [["a", 1], [None, "ü"]],
        },
        "sheets.spreadsheets.values.append",
    ),
    "googledrive": Sample(
        "GOOGLEDRIVE_LIST_FILES",
        {"q": "name contains 'a & b'", "pageSize": 3, "fields": "files(id,name)"},
        "drive.files.list",
    ),
    "googlecalendar": Sample(
        "GOOGLECALENDAR_EVENTS_INSERT",
        {"calendarId": "team@example.com", "summary": "Lunch", "start": _WHEN, "end": _WHEN, "sendUpdates": "all"},
        "calendar.events.insert",
    ),
    "googledocs": Sample("GOOGLEDOCS_GET_DOCUMENT_BY_ID", {"documentId": "d1"}, "docs.documents.get"),
    "googleslides": Sample("GOOGLESLIDES_PRESENTATIONS_GET", {"presentationId": "p1"}, "slides.presentations.get"),
    "googletasks": Sample("GOOGLETASKS_INSERT_TASK", {"tasklist": "@default", "title": "milk"}, "tasks.tasks.insert"),
    "googlecontacts": Sample(
        "GOOGLECONTACTS_PEOPLE_GET", {"resourceName": "people/me", "personFields": "names"}, "people.people.get"
    ),
    "googleforms": Sample("GOOGLEFORMS_FORMS_GET", {"formId": "f1"}, "forms.forms.get"),
    "googlemeet": Sample("GOOGLEMEET_SPACES_GET", {"name": "spaces/abc-defg"}, "meet.spaces.get"),
    "googlechat": Sample(
        "GOOGLECHAT_SPACES_MESSAGES_CREATE", {"parent": "spaces/s1", "text": "hi"}, "chat.spaces.messages.create"
    ),
    "googlebigquery": Sample(
        "GOOGLEBIGQUERY_JOBS_QUERY",
        {"projectId": "p-1", "query": "select 1", "useLegacySql": False},
        "bigquery.jobs.query",
    ),
    "google_classroom": Sample(
        "GOOGLE_CLASSROOM_COURSES_LIST", {"pageSize": 2, "courseStates": ["ACTIVE"]}, "classroom.courses.list"
    ),
    "google_search_console": Sample(
        "GOOGLE_SEARCH_CONSOLE_SEARCHANALYTICS_QUERY",
        {
            "siteUrl": "https://example.com/",
            "startDate": "2026-01-01",
            "endDate": "2026-01-31",
            "dimensions": ["QUERY"],
        },
        "webmasters.searchanalytics.query",
    ),
    "google_admin": Sample("GOOGLE_ADMIN_USERS_GET", {"userKey": "ada@example.com"}, "directory.users.get"),
    "youtube": Sample(
        "YOUTUBE_SEARCH_LIST", {"part": ["snippet"], "q": "cats", "maxResults": 3}, "youtube.search.list"
    ),
}

OTHERS: dict[str, Sample] = {
    "github": Sample(
        "GITHUB_CREATE_AN_ISSUE",
        {"owner": "octo", "repo": "hello.world", "title": "It is broken", "labels": ["bug"]},
        "/repos/{owner}/{repo}/issues",
    ),
    "slack": Sample(
        "SLACK_CHAT_POST_MESSAGE", {"channel": "C1", "text": "Hi & bye", "unfurl_links": False}, "/chat.postMessage"
    ),
    "stripe": Sample("STRIPE_CREATE_CUSTOMER", {"email": "ada@example.com", "name": "Ada Lovelace"}, "/v1/customers"),
    "jira": Sample(
        "JIRA_GET_ISSUE",
        {"issueIdOrKey": "ABC-1", "fields": ["summary", "status"], "expand": "names"},
        "/rest/api/3/issue/{issueIdOrKey}",
    ),
    "asana": Sample("ASANA_CREATE_A_TASK", {"data": {"name": "Write", "projects": ["12345"]}}, "/tasks"),
    "trello": Sample("TRELLO_ADD_CARDS", {"name": "Milk", "idList": "l1"}, "/cards"),
    "zoom": Sample("ZOOM_CREATE_A_MEETING", {"userId": "me", "topic": "Plans", "type": 2}, "/users/{userId}/meetings"),
    "sendgrid": Sample("SENDGRID_SEND_EMAIL", _MAIL, "/mail/send"),
    "twilio": Sample(
        "TWILIO_SEND_MESSAGE",
        {"To": "+15551234567", "From": "+15557654321", "Body": "Hi"},
        "/2010-04-01/Accounts/{AccountSid}/Messages.json",
    ),
    "bitbucket": Sample(
        "BITBUCKET_LIST_PULL_REQUESTS",
        {"workspace": "acme", "repo_slug": "app", "state": "OPEN"},
        "/repositories/{workspace}/{repo_slug}/pullrequests",
    ),
    "notion": Sample("NOTION_SEARCH_BY_TITLE", {"query": "plans", "page_size": 5}, "/v1/search"),
    "spotify": Sample(
        "SPOTIFY_SEARCH_FOR_ITEM", {"q": "remaster track:Doxy", "type": ["album", "track"], "limit": 2}, "/search"
    ),
    "digital_ocean": Sample("DIGITAL_OCEAN_LIST_ALL_DROPLETS", {"per_page": 2, "tag_name": "web"}, "/v2/droplets"),
    "box": Sample("BOX_CREATE_FOLDER", {"name": "Plans", "parent": {"id": "0"}}, "/folders"),
    "figma": Sample("FIGMA_GET_COMMENTS_IN_A_FILE", {"file_key": "k1", "as_md": True}, "/v1/files/{file_key}/comments"),
    "square": Sample(
        "SQUARE_CREATE_CUSTOMER", {"given_name": "Ada", "email_address": "ada@example.com"}, "/v2/customers"
    ),
    "xero": Sample(
        "XERO_GET_INVOICES",
        {"xero-tenant-id": "t1", "Statuses": ["DRAFT", "PAID"], "page": 1},
        "/Invoices",
    ),
}
