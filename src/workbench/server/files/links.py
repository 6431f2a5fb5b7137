"""Links as they come in: taken apart, and good or not before anything else is looked at."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, replace

from starlette.types import Scope

from workbench.core.mount_requests import FileLink
from workbench.core.workbench import Workbench
from workbench.errors import Denied
from workbench.model.ids import DEFAULT_PROJECT, ProjectId, SessionId
from workbench.model.mounts import FilePath, LinkAction
from workbench.server.door import Door

PREFIX = "/files/"
ADDRESS = "/files/{session}/{mount}/{path:path}"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_NUMBER = re.compile(r"[0-9]{1,16}")
_UPLOAD = re.compile(r"[0-9a-f]{1,32}")
_SIGNATURE = re.compile(r"[A-Za-z0-9_-]{43}")
_ACTIONS = {
    "GET": (LinkAction.DOWNLOAD,),
    "HEAD": (LinkAction.DOWNLOAD, LinkAction.UPLOAD),
    "PUT": (LinkAction.UPLOAD,),
    "PATCH": (LinkAction.UPLOAD,),
    "DELETE": (LinkAction.UPLOAD,),
}
METHODS = tuple(_ACTIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    """A good link."""

    link: FileLink
    signature: str
    workbench: Workbench


async def arrived(door: Door, scope: Scope) -> Arrived:
    """Who comes with a link.

    Raises:
        Denied: it was not made here, or for something else, or its time is over.
    """
    link, said = _taken_apart(scope)
    workbench = door.service.workbench(link.project)
    *others, last = _ACTIONS[scope["method"]]
    # BARRIER: a link to read one file would write it, or read another; held by tests/server/test_files_links.py.
    for action in others:
        try:
            return await _checked(workbench, replace(link, action=action), said)
        except Denied as problem:
            if problem.context:
                raise  # ours, but too late
    return await _checked(workbench, replace(link, action=last), said)


async def _checked(workbench: Workbench, link: FileLink, said: Mapping[str, str]) -> Arrived:
    await workbench.mounts.check_link(link, said["sig"])
    return Arrived(link=link, signature=said["sig"], workbench=workbench)


def _taken_apart(scope: Scope) -> tuple[FileLink, dict[str, str]]:
    """From the address as it was sent: what the framework makes of it has lost what is no text."""
    try:
        session, mount, path = scope["raw_path"].decode("ascii").removeprefix(PREFIX).split("/", 2)
        pairs = urllib.parse.parse_qsl(
            scope["query_string"].decode("ascii"), keep_blank_values=True, strict_parsing=True, max_num_fields=8
        )
        names = [urllib.parse.unquote(name, errors="strict") for name in (session, mount, path)]
    except ValueError:
        raise not_good() from None
    said = dict(pairs)
    if len(said) != len(pairs) or not _is_like_ours(names[0], said):
        raise not_good()
    link = FileLink(
        session=SessionId(names[0]),
        project=ProjectId(said.get("project", DEFAULT_PROJECT)),
        mount=names[1],
        path=FilePath(names[2]),
        action=LinkAction.DOWNLOAD,
        expires=int(said["exp"]),
        size=int(said["size"]) if "size" in said else None,
        upload=said.get("upload", ""),
    )
    return link, said


def _is_like_ours(session: str, said: Mapping[str, str]) -> bool:
    """Whether the store can be asked at all. A project is named only if it is not the usual one."""
    return (
        {"exp", "sig"} <= said.keys() <= {"exp", "sig", "project", "size", "upload"}
        and bool(_NAME.fullmatch(session))
        and bool(_NUMBER.fullmatch(said["exp"]))
        and bool(_SIGNATURE.fullmatch(said["sig"]))
        and bool(_NUMBER.fullmatch(said.get("size", "0")))
        and bool(_UPLOAD.fullmatch(said.get("upload", "0")))
        and ("project" not in said or (said["project"] != DEFAULT_PROJECT and bool(_NAME.fullmatch(said["project"]))))
    )


def not_good() -> Denied:
    """As the core says it of one that was forged."""
    return Denied("this link is not good: it was cut, changed or never made here; use it as it was given, all of it")
