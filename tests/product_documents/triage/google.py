"""Google as far as its documentation says: the sign-in, Gmail and Sheets at their own names by TLS, in a network of the
test's own. It checks what it is sent, keeps what it is told to, and takes tokens that it has given out and no others.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
import secrets
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.composio_sdks.own_network import PUBLIC_LOOKING, OwnNetwork
from tests.connections.authorisation import Handler, Server, World

GMAIL, SHEETS = "gmail.googleapis.com", "sheets.googleapis.com"
SIGN_IN, TOKENS = "accounts.google.com", "oauth2.googleapis.com"
HOSTS = (GMAIL, SHEETS, SIGN_IN, TOKENS)
SHEET, SHEET_NAME = "1triage-sheet", "Log"
_SCOPE = "https://www.googleapis.com/auth/"
_SCOPES = {GMAIL: f"{_SCOPE}gmail.modify", SHEETS: f"{_SCOPE}spreadsheets"}
# Where the authorisation server has them.
_MOVED = {"/o/oauth2/v2/auth": "/authorize", "/device/code": "/device"}
_MOST_LISTED = 500
_CELLS = re.compile(r"'?([^'!]+)'?(![A-Z]+[0-9]+(:[A-Z]+[0-9]+)?)?")

Json = dict[str, Any]


@dataclass
class Mail:
    """One of the mailbox."""

    id: str
    sender: str
    subject: str
    text: str
    labels: set[str]


@dataclass(frozen=True)
class Call:
    """One that a tool made."""

    host: str
    method: str
    path: str
    token: str
    status: int


@dataclass
class Google:
    """What it has, for a test to look at."""

    world: World
    handed_out: dict[str, str] = field(default_factory=dict)
    """tokens that somebody made by hand, with the host that takes them"""
    mails: dict[str, Mail] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    """names by id, of those that the user made"""
    rows: list[list[Any]] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def takes(self, host: str, token: str) -> bool:
        """Whether it is a token for what is at that host."""
        living = {one.access_token for one in self.world.living() if _SCOPES[host] in one.scope.split()}
        return token in living or self.handed_out.get(token) == host


class Refused(Exception):
    """As Google says no."""

    def __init__(self, code: int, status: str, message: str) -> None:
        super().__init__(message)
        self.code, self.status = code, status


@dataclass(frozen=True)
class Asked:
    """One request to an API."""

    parts: tuple[str, ...]
    """of the path, where the pattern leaves them open"""
    query: dict[str, list[str]]
    body: Json

    def only(self, query: set[str] = frozenset(), body: set[str] = frozenset()) -> None:  # type: ignore[assignment]
        """What else there is nobody has described."""
        for name in self.query.keys() - query - {"alt"}:
            raise Refused(400, "INVALID_ARGUMENT", f'Invalid JSON payload received. Unknown name "{name}"')
        for name in self.body.keys() - body:
            raise Refused(400, "INVALID_ARGUMENT", f'Invalid JSON payload received. Unknown name "{name}"')

    def one(self, name: str, default: str = "") -> str:
        """A parameter that is not repeated."""
        values = self.query.get(name, [default])
        if len(values) != 1:
            raise Refused(400, "INVALID_ARGUMENT", f"{name} is repeated")
        return values[0]


def _list(google: Google, asked: Asked) -> Json:
    asked.only({"q", "maxResults", "pageToken", "labelIds", "includeSpamTrash"})
    wanted = set(asked.query.get("labelIds", []))
    for term in asked.one("q").split():
        if term not in ("is:unread", "in:inbox"):
            raise Refused(400, "INVALID_ARGUMENT", f"this mailbox is not searched by {term!r}")
        wanted.add(term.partition(":")[2].upper())
    most, begin = int(asked.one("maxResults", "100")), int(asked.one("pageToken", "0"))
    if not 0 < most <= _MOST_LISTED:
        raise Refused(400, "INVALID_ARGUMENT", "Invalid maxResults")
    found = [mail for mail in google.mails.values() if wanted <= mail.labels]
    told: Json = {"resultSizeEstimate": len(found)}
    if page := found[begin : begin + most]:
        told["messages"] = [{"id": one.id, "threadId": f"t-{one.id}"} for one in page]
    if begin + most < len(found):
        told["nextPageToken"] = str(begin + most)
    return told


def _get(google: Google, asked: Asked) -> Json:
    asked.only({"format", "metadataHeaders"})
    mail = _mail(google, asked.parts[0])
    if asked.one("format", "full") != "full":
        raise Refused(400, "INVALID_ARGUMENT", "this mailbox tells messages in full")
    headers = {"From": mail.sender, "To": "me@example.com", "Subject": mail.subject}
    content = mail.text.encode()
    return {
        **_short(mail),
        "snippet": mail.text[:30],
        "internalDate": "1794873600000",
        "sizeEstimate": len(content),
        "payload": {
            "partId": "",
            "mimeType": "text/plain",
            "filename": "",
            "headers": [{"name": name, "value": value} for name, value in headers.items()],
            "body": {"size": len(content), "data": base64.urlsafe_b64encode(content).decode()},
        },
    }


def _modify(google: Google, asked: Asked) -> Json:
    asked.only(body={"addLabelIds", "removeLabelIds"})
    mail = _mail(google, asked.parts[0])
    added, removed = (set(asked.body.get(name, ())) for name in ("addLabelIds", "removeLabelIds"))
    for label in added | removed:
        if label not in google.labels and label not in ("INBOX", "UNREAD", "IMPORTANT"):
            raise Refused(400, "INVALID_ARGUMENT", f"Invalid label: {label}")
    mail.labels = (mail.labels | added) - removed
    return _short(mail)


def _labels(google: Google, asked: Asked) -> Json:
    asked.only()
    system = [{"id": one, "name": one, "type": "system"} for one in ("INBOX", "UNREAD", "IMPORTANT")]
    return {"labels": system + [{"id": one, "name": name, "type": "user"} for one, name in google.labels.items()]}


def _profile(google: Google, asked: Asked) -> Json:
    asked.only()
    return {"emailAddress": "me@example.com", "messagesTotal": len(google.mails), "threadsTotal": 1, "historyId": "1"}


def _spreadsheet(google: Google, asked: Asked) -> Json:
    asked.only({"includeGridData", "ranges", "fields"})
    _check_sheet(asked.parts[0])
    properties = {"sheetId": 0, "title": SHEET_NAME, "index": 0, "gridProperties": {"rowCount": 1000}}
    return {"spreadsheetId": SHEET, "properties": {"title": "Triage"}, "sheets": [{"properties": properties}]}


def _append(google: Google, asked: Asked) -> Json:
    asked.only({"valueInputOption", "insertDataOption"}, {"range", "majorDimension", "values"})
    sheet, where = asked.parts
    _check_sheet(sheet)
    place = _CELLS.fullmatch(where)
    if place is None or place[1] != SHEET_NAME:
        raise Refused(400, "INVALID_ARGUMENT", f"Unable to parse range: {where}")
    if asked.one("valueInputOption") not in ("RAW", "USER_ENTERED"):
        raise Refused(400, "INVALID_ARGUMENT", "'valueInputOption' is required but not specified")
    rows = asked.body.get("values")
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise Refused(400, "INVALID_ARGUMENT", "Invalid values")
    first = len(google.rows) + 1
    google.rows += rows
    width = max(map(len, rows), default=0)
    return {
        "spreadsheetId": SHEET,
        "updates": {
            "spreadsheetId": SHEET,
            "updatedRange": f"{SHEET_NAME}!A{first}:{chr(64 + width)}{len(google.rows)}",
            "updatedRows": len(rows),
            "updatedColumns": width,
            "updatedCells": sum(map(len, rows)),
        },
    }


def _mail(google: Google, name: str) -> Mail:
    if name not in google.mails:
        raise Refused(404, "NOT_FOUND", "Requested entity was not found.")
    return google.mails[name]


def _short(mail: Mail) -> Json:
    return {"id": mail.id, "threadId": f"t-{mail.id}", "labelIds": sorted(mail.labels)}


def _check_sheet(sheet: str) -> None:
    if sheet != SHEET:
        raise Refused(404, "NOT_FOUND", "Requested entity was not found.")


_USER = "/gmail/v1/users/me"
_APIS: tuple[tuple[str, str, str, Callable[[Google, Asked], Json]], ...] = (
    (GMAIL, "GET", f"{_USER}/messages", _list),
    (GMAIL, "GET", f"{_USER}/messages/([^/]+)", _get),
    (GMAIL, "POST", f"{_USER}/messages/([^/]+)/modify", _modify),
    (GMAIL, "GET", f"{_USER}/labels", _labels),
    (GMAIL, "GET", f"{_USER}/profile", _profile),
    (SHEETS, "GET", "/v4/spreadsheets/([^/:]+)", _spreadsheet),
    (SHEETS, "POST", "/v4/spreadsheets/([^/:]+)/values/([^/]+):append", _append),
)


class _Google(Handler):
    """The sign-in is the authorisation server's; the rest is here."""

    google: Google

    def do_GET(self) -> None:  # noqa: N802 - the library's own name
        self._come("GET")

    def do_POST(self) -> None:  # noqa: N802 - the library's own name
        self._come("POST")

    def _come(self, method: str) -> None:
        host = self.headers.get("host", "")
        if host in _SCOPES:
            self._called(host, method)
        elif host in (SIGN_IN, TOKENS):
            path, mark, query = self.path.partition("?")
            self.path = f"{_MOVED.get(path, path)}{mark}{query}"
            super().do_GET() if method == "GET" else super().do_POST()
        else:
            self._answer(404, {"error": f"nobody is called {host!r} here"}, {})

    def _called(self, host: str, method: str) -> None:
        token = self.headers.get("authorization", "").removeprefix("Bearer ")
        sent = self.rfile.read(int(self.headers.get("content-length") or 0))
        parts = urlsplit(self.path)
        with self.google.lock:
            try:
                told, status = self._done(host, method, token, sent), 200
            except Refused as no:
                told, status = {"error": {"code": no.code, "status": no.status, "message": str(no)}}, no.code
            self.google.calls.append(Call(host, method, parts.path, token, status))
        self._answer(status, told, {"content-type": "application/json; charset=UTF-8"})

    def _done(self, host: str, method: str, token: str, sent: bytes) -> Json:
        if not self.google.takes(host, token):
            raise Refused(401, "UNAUTHENTICATED", "Request had invalid authentication credentials.")
        parts = urlsplit(self.path)
        for at, by, pattern, api in _APIS:
            found = re.fullmatch(pattern, parts.path)
            if (at, by) == (host, method) and found:
                if sent and not self.headers.get("content-type", "").startswith("application/json"):
                    raise Refused(400, "INVALID_ARGUMENT", "a body is JSON, and says so")
                query = parse_qs(parts.query, keep_blank_values=True)
                return api(self.google, Asked(tuple(map(unquote, found.groups())), query, json.loads(sent or b"{}")))
        raise Refused(404, "NOT_FOUND", f"{method} {parts.path} is not described")


def certificate(folder: Path) -> tuple[Path, Path]:
    """Of all of its names, signed by itself; and its key."""
    cert, key = folder / "google.pem", folder / "google.key"
    names = ",".join(f"DNS:{host}" for host in HOSTS)
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=Google of a test", "-addext", f"subjectAltName={names}", "-keyout", str(key), "-out", str(cert)],
        check=True, capture_output=True,
    )  # fmt: skip
    return cert, key


@contextlib.contextmanager
def google_in(network: OwnNetwork, files: tuple[Path, Path]) -> Iterator[Google]:
    """At an address of that network that looks public, until the end."""
    scopes = ("gmail.modify", "gmail.settings.basic", "spreadsheets", "drive.file")
    mark = secrets.token_hex(12)
    world = World(scopes=" ".join(f"{_SCOPE}{one}" for one in scopes), mark=mark, client_secret=f"{mark}-client")
    google = Google(world)
    handler = type("Handler", (_Google,), {"world": google.world, "google": google})
    handler.server_of = Server(google.world, f"https://{SIGN_IN}")  # type: ignore[attr-defined]
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*files)
    server = ThreadingHTTPServer((PUBLIC_LOOKING, 443), handler, bind_and_activate=False)
    server.socket.close()
    listening = network.run(lambda: socket.create_server((PUBLIC_LOOKING, 443)))
    # Whoever connects is greeted in a thread of their own.
    server.socket = tls.wrap_socket(listening, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield google
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
