"""One request with a good link, and answers to it that REST has no use for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from workbench.core.mount_requests import FileLink, OpenMountFile
from workbench.core.mounts import Mounts
from workbench.errors import WorkbenchError
from workbench.server.door import Door, Note
from workbench.server.files.links import Arrived
from workbench.server.files.transfers import Transfers


class Refused(Exception):
    """With a status or headers that only files have."""

    def __init__(self, error: WorkbenchError, status: int, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(error.message)
        self.error = error
        self.status = status
        self.headers = dict(headers or {})


@dataclass(frozen=True, slots=True, kw_only=True)
class FileVisit:
    """It, and all that is needed to answer."""

    door: Door
    note: Note
    arrived: Arrived
    headers: Headers
    scope: Scope
    receive: Receive
    send: Send
    transfers: Transfers

    @property
    def link(self) -> FileLink:
        """What may be done."""
        return self.arrived.link

    @property
    def mounts(self) -> Mounts:
        """Of the link's project."""
        return self.arrived.workbench.mounts

    @property
    def file(self) -> OpenMountFile:
        """The one that it is about."""
        return OpenMountFile(session=self.link.session, path=self.link.path, mount=self.link.mount)

    async def answer(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:
        """The whole of it."""
        await self.start(status, {**headers, "content-length": str(len(body))} if body or status != 204 else headers)
        await self.send({"type": "http.response.body", "body": body})

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Its head."""
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        await self.send({"type": "http.response.start", "status": status, "headers": raw})
