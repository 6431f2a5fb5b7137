"""import_files and export_files: files into a session's sandbox, and out of it by an address to fetch them from."""

from __future__ import annotations

import base64
import binascii
import posixpath
import shlex
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar

import mcp_types as types
from pydantic import BaseModel, ConfigDict, Field, model_validator

from workbench.core import requests
from workbench.errors import Conflict, InvalidRequest, NotFound, QuotaExceeded, WorkbenchError
from workbench.mcp import guide, making_room
from workbench.mcp.answers import Answer, Link, Next
from workbench.mcp.choosing import choose
from workbench.mcp.families import Family
from workbench.mcp.resources import FileAddress, file_address, is_uri
from workbench.mcp.tool import Arguments, Call, Tool
from workbench.mcp.tools.sandbox_answers import OPTIONAL_STRING, SESSION_ID, answered, refused, words
from workbench.mcp.tools.sandbox_links import DownloadLink, download_link, fetched
from workbench.mcp.tools.sandbox_pace import Pace
from workbench.mcp.tools.shapes import STRING, YES_OR_NO, closed, told
from workbench.model.ids import SessionId
from workbench.model.mounts import INSIDE, is_web_address

_HOME = "/home/user"
_MOST_FILES = 100
# Of a name that is told back.
_MOST_SHOWN = 200


class _File(BaseModel):
    """What is null is absent."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, given: Any) -> Any:
        return {key: one for key, one in given.items() if one is not None} if isinstance(given, dict) else given


class ImportedFile(_File):
    """Either a name with a content, or where it comes from."""

    file_name: str = Field(
        default="", description="Name of a new file, with `file_content`; in /home/user unless it has a path."
    )
    file_content: str | None = Field(default=None, description="What is in it.")
    encoding: Literal["text", "base64"] = Field(default="text", description="How `file_content` is written.")
    source: str = Field(
        default="",
        description="Instead of a content: a file that export_files gave, by its `uri`, also of another session; or an "
        "http(s) URL that the server fetches, to a `destination` under /mnt/files. No paths of other machines.",
    )
    destination: str = Field(
        default="",
        description="Path inside for it, or a folder that ends with `/`; by default its name in /home/user, or for a "
        "URL in /mnt/files.",
    )


class ExportedFile(_File):
    """One that is wanted."""

    source: str = Field(description="Path inside the sandbox; a relative one begins at /home/user.")
    destination: str = Field(
        default="",
        description="Copy it to this path inside first, for instance /mnt/files/report.csv, and export that.",
    )


class ImportArguments(Arguments):
    """Of import_files."""

    session_id: str = SESSION_ID
    files: list[ImportedFile] = Field(
        min_length=1,
        max_length=_MOST_FILES,
        description="Each either {file_name, file_content, encoding} or {source}; {destination} with both.",
    )


class ExportArguments(Arguments):
    """Of export_files."""

    examples: ClassVar[dict[str, Any]] = {"files": [{"source": "/etc/hostname"}]}
    session_id: str = SESSION_ID
    files: list[ExportedFile] = Field(min_length=1, max_length=_MOST_FILES, description="Each {source, destination?}.")


@dataclass(frozen=True, slots=True)
class _Row:
    """What became of one file."""

    source: str
    destination: str
    size: int | None = None
    uri: str | None = None
    download: DownloadLink | None = None
    problem: WorkbenchError | None = None
    link: Link | None = None

    def shown(self) -> dict[str, Any]:
        # What is there is told whole, as it may be asked for again.
        most = None if self.problem is None else _MOST_SHOWN
        row = {
            "source": self.source[:_MOST_SHOWN],
            "destination": self.destination[:most],
            "success": self.problem is None,
            "size": self.size,
            "error": None if self.problem is None else words(self.problem),
        }
        if self.uri is not None:
            row["uri"] = self.uri
        if self.download is not None:
            row |= {"download_url": self.download.url, "expires_at": self.download.expires_at}
        return row


F = TypeVar("F", ImportedFile, ExportedFile)


async def _each(
    call: Call[Any],
    files: list[F],
    work: Callable[[Pace, SessionId, F], Awaitable[_Row]],
    names: Callable[[F], tuple[str, str]],
) -> Answer:
    session, pace = choose(call.visit, call.arguments.session_id).id, Pace(call.visit, len(files))
    rows: list[_Row] = []
    for number, one in enumerate(files, 1):
        try:
            pace.next_file(number, names(one)[0])
            rows.append(await work(pace, session, one))
        except WorkbenchError as problem:
            if not rows and _is_about_the_session(problem, session):
                raise
            rows.append(_Row(*names(one), problem=problem))
    return _answer(call, session, rows)


async def _import(call: Call[ImportArguments]) -> Answer:
    async def work(pace: Pace, session: SessionId, one: ImportedFile) -> _Row:
        return await _imported(call, pace, session, one)

    def names(one: ImportedFile) -> tuple[str, str]:
        default = f"{INSIDE}/" if is_web_address(one.source) else one.file_name
        return one.source or one.file_name, one.destination or default

    return await _each(call, call.arguments.files, work, names)


async def _imported(call: Call[ImportArguments], pace: Pace, session: SessionId, one: ImportedFile) -> _Row:
    if bool(one.source) == bool(one.file_name):
        raise InvalidRequest("a file has either `file_name` with `file_content`, or `source` with `destination`")
    bench = call.visit.bench
    if one.source:
        if one.file_content is not None:
            raise InvalidRequest(
                "`source` is a file that there is already, so that it has no `file_content`: leave one of them out"
            )
        if is_web_address(one.source):
            work = fetched(call.visit, session, one.source, one.destination)
            got = await pace.done(work, "fetching a file")
            return _Row(one.source, f"{INSIDE}/{got.path}", size=got.size)
        at = _exported(call, one.source)
        read = requests.ReadFile(session=at.session, path=at.path)
        name, data = posixpath.basename(at.path), (await pace.done(bench.read_file(read), "reading a file")).data
    else:
        name, data = one.file_name, _content(one)
    path = one.destination or name
    if one.destination.endswith("/"):
        path = one.destination + posixpath.basename(name)
    write = requests.WriteFile(session=session, path=path, data=data)
    written = await pace.done(bench.write_file(write), "writing a file")
    return _Row(one.source or one.file_name, written.path, size=written.size)


def _exported(call: Call[ImportArguments], source: str) -> FileAddress:
    # BARRIER: a path of the server's machine would be read for whoever asks; held by tests/mcp/test_files.py.
    if not is_uri(source):
        raise InvalidRequest(
            f"{source[:_MOST_SHOWN]!r} is no exported file: a server reads no paths of its own machine for a caller. "
            "Give the `uri` that export_files answers or an http(s) URL, or send the content as `file_content`"
        )
    return file_address(call.visit, source)


def _content(one: ImportedFile) -> bytes:
    if one.file_content is None:
        raise InvalidRequest(f"`file_content` of {one.file_name[:_MOST_SHOWN]!r} is missing")
    if one.encoding == "base64":
        try:
            return base64.b64decode("".join(one.file_content.split()), validate=True)
        except (binascii.Error, ValueError):
            raise InvalidRequest(
                f"`file_content` of {one.file_name[:_MOST_SHOWN]!r} is not base64; with encoding `text` it is taken "
                "as it is"
            ) from None
    try:
        return one.file_content.encode()
    except UnicodeEncodeError:
        raise InvalidRequest(
            f"`file_content` of {one.file_name[:_MOST_SHOWN]!r} is not text in UTF-8; send base64"
        ) from None


async def _export(call: Call[ExportArguments]) -> Answer:
    async def work(pace: Pace, session: SessionId, one: ExportedFile) -> _Row:
        return await _exported_row(call, pace, session, one)

    def names(one: ExportedFile) -> tuple[str, str]:
        return one.source, one.destination

    return await _each(call, call.arguments.files, work, names)


async def _exported_row(call: Call[ExportArguments], pace: Pace, session: SessionId, one: ExportedFile) -> _Row:
    bench = call.visit.bench
    if one.destination:
        copy = requests.CopyFile(session=session, source=one.source, destination=one.destination)
        state = await pace.done(bench.copy_file(copy), "copying a file")
    else:
        describe = requests.DescribeFile(session=session, path=one.source)
        state = await pace.done(bench.describe_file(describe), "looking at a file")
    at = FileAddress(session, state.path)
    download = await pace.done(download_link(call.visit, session, state.path), "making a link")
    return _Row(one.source, state.path, size=state.size, uri=at.uri, download=download, link=at.link(state.size))


def _is_about_the_session(problem: WorkbenchError, session: SessionId) -> bool:
    """And not about the file, or about another session that it would come from."""
    about = isinstance(problem, NotFound | Conflict) and "path" not in problem.context
    return about and problem.context.get("session") == session


def _answer(call: Call[Any], session: SessionId, rows: list[_Row]) -> Answer:
    failed = [row for row in rows if row.problem is not None]
    structured: dict[str, Any] = {"success": not failed, "files": [row.shown() for row in rows]}
    if failed:
        structured["error"] = f"{len(failed)} of {len(rows)} files failed: {failed[0].shown()['error']}"
    return Answer(
        structured=structured,
        next=_step(call, session, failed[0]) if failed else None,
        never_began=len(failed) == len(rows),
        links=tuple(row.link for row in rows if row.link is not None),
    )


def _step(call: Call[Any], session: SessionId, row: _Row) -> Next:
    """Look where it should be; or at what is in the way."""
    problem = row.problem
    assert problem is not None
    if isinstance(problem, QuotaExceeded):
        fills = making_room.WHAT_FILLS_FILES if row.destination.startswith("/mnt/files") else making_room.MAKE_ROOM
        return guide.shell(call.visit, call.tool, session, fills)
    where = problem.context.get("session", session) if "path" in problem.context else session
    folder = shlex.quote(posixpath.dirname(problem.context.get("path", "")) or _HOME)
    # The folder may be missing as well.
    return guide.shell(call.visit, call.tool, where, f"ls -la {folder} || ls -la {_HOME} /mnt/files")


def _rows(more: dict[str, Any]) -> dict[str, Any]:
    row = {
        "source": told(STRING, "As it was asked for."),
        "destination": told(STRING, "Where it is inside now."),
        "success": YES_OR_NO,
        "size": told({"type": ["integer", "null"]}, "Bytes."),
        "error": told(OPTIONAL_STRING, "Why not."),
        **more,
    }
    required = ["source", "destination", "success", "size", "error"]
    return {"files": told({"type": "array", "items": closed(row, required)}, "A row for each file, in order.")}


IMPORT = Tool(
    name="import_files",
    family=Family.SANDBOX,
    title="Import files",
    description=(
        "Put files into a session's sandbox: contents that you send, files exported from another session, or what a "
        "URL leads to.\n"
        "Use it for data and scripts that you have. Not for what the sandbox can make itself by execute_code, nor to "
        "read files of the server's machine: that is refused.\n"
        "- Names without a path go to /home/user, which ends with the sandbox; under /mnt/files they outlive it. "
        "Folders are made, what is there is replaced, and nobody sees half a file.\n"
        "- At most 100 files, 8 MiB each, 120 s in all; over HTTP a whole call has at most 8 MiB, and base64 adds a "
        "third. What a URL leads to may be as large as /mnt/files has room.\n"
        "- Each row says how it went; `next` looks where the first failed one should be."
    ),
    arguments=ImportArguments,
    output_schema=answered(_rows({})),
    annotations=types.ToolAnnotations(
        destructive_hint=True, open_world_hint=True, read_only_hint=False, idempotent_hint=True
    ),
    run=_import,
    refused=refused,
)
EXPORT = Tool(
    name="export_files",
    family=Family.SANDBOX,
    title="Export files",
    description=(
        "Give out files of a session's sandbox: each gets a `uri`, which this server reads as a resource "
        "(resources/read), and which import_files takes in another session.\n"
        "Use it for results that leave the sandbox. Not to look into a file: execute_code or execute_terminal print "
        "it.\n"
        "- The uri names the file, not a copy: it is good as long as the session and the file are there. `destination` "
        "under /mnt/files keeps a copy that outlives the sandbox.\n"
        "- Over HTTP files up to 600 KB can be read as resources, over standard input up to 6 MB; import_files takes "
        "up to 8 MiB. A file under /mnt/files of any size also gets a `download_url`, which anyone can open for an "
        "hour without a key: for the user, or for curl. Pack folders with tar.\n"
        "- A row that failed says why (missing, a folder, not readable); `next` lists the folder."
    ),
    arguments=ExportArguments,
    output_schema=answered(
        _rows(
            {
                "uri": told(STRING, "Where to read it as a resource."),
                "download_url": told(STRING, "Where anyone can download it; only of files under /mnt/files."),
                "expires_at": told(STRING, "Until when."),
            }
        )
    ),
    annotations=types.ToolAnnotations(
        destructive_hint=False, open_world_hint=False, read_only_hint=False, idempotent_hint=True
    ),
    run=_export,
    refused=refused,
)
