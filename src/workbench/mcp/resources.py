"""Files of sessions as resources: workbench://sessions/{session}/files/{path inside}."""

from __future__ import annotations

import base64
import mimetypes
import posixpath
import re
from dataclasses import dataclass
from urllib.parse import quote, unquote

import mcp_types as types
from mcp.shared.exceptions import MCPError

from workbench.core import requests
from workbench.errors import CallerError, InvalidRequest, NotFound, WorkbenchError
from workbench.mcp.answers import Link
from workbench.mcp.visit import Visit
from workbench.mcp.wording import for_agents
from workbench.model.ids import SessionId, session_id

_SCHEME = "workbench://"
_URI = re.compile(r"workbench://sessions/([^/?#]+)/files(/[^?#]+)")
_MOST_SHOWN = 200
# Of a message, beside what is in the file.
_MOST_AROUND = 1000
# "Resource not found" has a code of its own up to this protocol, and is an invalid parameter in those that follow.
_LAST_WITH_ITS_OWN_CODE, _OWN_CODE = "2025-11-25", -32002

TEMPLATES = types.ListResourceTemplatesResult(
    resource_templates=[
        types.ResourceTemplate(
            name="session-file",
            title="File of a session",
            uri_template="workbench://sessions/{session_id}/files{+path}",
            description="A file inside a session's sandbox, by its absolute path there; over HTTP up to 600 KB "
            "(text: 900 KB), over standard input up to 6 MB (text: 8 MB).",
        )
    ]
)


@dataclass(frozen=True, slots=True)
class FileAddress:
    """Which file of which session."""

    session: SessionId
    path: str

    @property
    def uri(self) -> str:
        """Where it can be read."""
        return f"workbench://sessions/{self.session}/files{quote(self.path, safe='/')}"

    def link(self, size: int) -> Link:
        """For an answer."""
        name = posixpath.basename(self.path)
        return Link(uri=self.uri, name=name, mime_type=mimetypes.guess_type(name)[0] or "", size=size)


def file_address(visit: Visit, uri: str) -> FileAddress:
    """What a URI names, if this caller may reach it.

    Raises:
        InvalidRequest: no such URI can be.
        NotFound: a session that is not there for this caller.
    """
    found = _URI.fullmatch(uri)
    if found is None:
        raise InvalidRequest(
            f"not a file of a session: {uri[:_MOST_SHOWN]!r}; one looks like "
            f"workbench://sessions/SESSION/files/home/user/NAME, as export_files gives it"
        )
    try:
        name, path = session_id(found[1]), unquote(found[2], errors="strict")
    except (InvalidRequest, UnicodeDecodeError):
        raise NotFound(f"no file of a session: {uri[:_MOST_SHOWN]!r}") from None
    # BARRIER: whoever was given one session would read the files of others of the project by their names; held by
    # tests/mcp/test_files.py.
    if visit.own_session not in (None, name):
        raise NotFound(f"no session {name!r} here", {"session": name})
    return FileAddress(name, path)


def is_uri(text: str) -> bool:
    """Whether it is meant as one of ours."""
    return text.startswith(_SCHEME)


async def read_resource(visit: Visit, uri: str, protocol: str) -> types.ReadResourceResult:
    """Text as text, anything else as a blob.

    Raises:
        MCPError: there is no such file, or it cannot be read.
    """
    try:
        at = file_address(visit, uri)
        content = await visit.bench.read_file(requests.ReadFile(session=at.session, path=at.path))
        one = _contents(uri, at.path, content.data)
        _check_size(visit, at.path, len(content.data), one)
    except WorkbenchError as problem:
        raise MCPError(code=_code(problem, protocol), message=for_agents(problem), data={"uri": uri}) from None
    return types.ReadResourceResult(contents=[one])


def _contents(uri: str, path: str, data: bytes) -> types.TextResourceContents | types.BlobResourceContents:
    guessed = mimetypes.guess_type(path)[0]
    if (text := _text(data)) is not None:
        return types.TextResourceContents(uri=uri, mime_type=guessed or "text/plain", text=text)
    blob = base64.b64encode(data).decode()
    return types.BlobResourceContents(uri=uri, mime_type=guessed or "application/octet-stream", blob=blob)


def _check_size(
    visit: Visit, path: str, size: int, one: types.TextResourceContents | types.BlobResourceContents
) -> None:
    """Raises: InvalidRequest if it is too large a message for the client at the other end, which would hang up."""
    sent = len(one.model_dump_json(by_alias=True)) + _MOST_AROUND
    if sent > visit.most_answer_bytes:
        raise InvalidRequest(
            f"{path[:_MOST_SHOWN]} has {size:,} bytes, which are {sent:,} as they are sent, and one answer has at most "
            f"{visit.most_answer_bytes:,} here: compress it, or split it (`split -b 600K`) and read the parts",
            {"path": path},
        )


def _text(data: bytes) -> str | None:
    if b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _code(problem: WorkbenchError, protocol: str) -> int:
    if isinstance(problem, NotFound) and protocol <= _LAST_WITH_ITS_OWN_CODE:
        return _OWN_CODE
    return types.INVALID_PARAMS if isinstance(problem, CallerError) else types.INTERNAL_ERROR
