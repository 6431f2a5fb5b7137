"""Files of a session from outside: listed, read, put there, deleted and linked to, with no need of a sandbox."""

from __future__ import annotations

import contextlib
import datetime
import math
import secrets
from collections.abc import AsyncIterator

from workbench.contracts.clock import Clock
from workbench.contracts.fetching import Fetching
from workbench.contracts.mounts import MayReplace, MountStore, OpenFile, StagedFile
from workbench.contracts.storage import Records
from workbench.core import mount_requests as requests
from workbench.core.links import LinkSigner
from workbench.core.places import Places, usable
from workbench.errors import Denied, InvalidRequest, NotFound
from workbench.model.ids import ProjectId, SessionId
from workbench.model.mounts import (
    MOST_LINK_S,
    MOST_PAGE,
    FilePath,
    FilesFound,
    FilesWanted,
    LinkAction,
    MountFile,
    Quota,
    check_mount,
    entry_path,
    file_path,
    prefix_of,
)
from workbench.model.session import Session

# So much of what is fetched is written at once.
_WRITE_BYTES = 1024 * 1024


class Mounts:
    """The mounts of a project's sessions."""

    def __init__(
        self,
        records: Records,
        mounts: MountStore,
        fetching: Fetching,
        signer: LinkSigner,
        clock: Clock,
        places: Places,
        project: ProjectId,
    ) -> None:
        self._store = records.sessions(project)
        self._mounts = mounts
        self._fetching = fetching
        self._signer = signer
        self._clock = clock
        self._places = places
        self._project = project

    async def list(self, request: requests.ListFiles) -> FilesFound:
        """A page of files."""
        check_mount(request.mount)
        if not 1 <= request.limit <= MOST_PAGE:
            raise InvalidRequest(f"a page has 1 to {MOST_PAGE} files, not {request.limit}")
        wanted = FilesWanted(prefix=prefix_of(request.prefix), after=request.after, limit=request.limit)
        session = await self._there(request.session)
        return await self._mounts.list(session.mount, wanted)

    @contextlib.asynccontextmanager
    async def open(self, request: requests.OpenMountFile) -> AsyncIterator[OpenFile]:
        """A file, for reading."""
        check_mount(request.mount)
        path = file_path(request.path)
        session = await self._there(request.session)
        async with self._mounts.open(session.mount, path) as opened:
            yield opened

    async def describe_file(self, request: requests.OpenMountFile) -> MountFile:
        """That it is there, and how large."""
        async with self.open(request) as opened:
            return opened.file

    @contextlib.asynccontextmanager
    async def stage(self, request: requests.StageFile) -> AsyncIterator[StagedFile]:
        """A file on its way in. One without a name is gone if it was not committed."""
        check_mount(request.mount)
        path = file_path(request.path)
        session = await self._used(request.session)
        # A store can tell by the name that nobody comes back to it.
        name = request.name or f"once-{secrets.token_hex(12)}"
        async with self._mounts.stage(
            session.mount, path, name=name, quota=_quota(session), size=request.size
        ) as staged:
            try:
                yield _Staged(staged, self, session)
            finally:
                if not request.name:
                    await staged.discard()

    async def staged(self, request: requests.StageFile) -> int:
        """How far the upload of that name came."""
        check_mount(request.mount)
        session = await self._there(request.session)
        return await self._mounts.staged(session.mount, name=request.name)

    async def unstage(self, request: requests.StageFile) -> None:
        """Give up the upload of that name."""
        check_mount(request.mount)
        session = await self._there(request.session)
        await self._mounts.unstage(session.mount, name=request.name)

    async def remark(self, request: requests.StageFile, text: str) -> None:
        """Keep a line with the upload of that name, also when it is done."""
        check_mount(request.mount)
        session = await self._there(request.session)
        await self._mounts.remark(session.mount, name=request.name, text=text)

    async def remarked(self, request: requests.StageFile) -> str:
        """That line; empty if there is none."""
        check_mount(request.mount)
        session = await self._there(request.session)
        return await self._mounts.remarked(session.mount, name=request.name)

    async def fetch(self, request: requests.FetchFile) -> MountFile:
        """A file from another server."""
        check_mount(request.mount)
        _path_for(request.path, "name")  # before anybody is asked for anything
        session = await self._used(request.session)
        async with self._fetching.fetch(request.url, most_bytes=_quota(session).bytes) as fetched:
            path = _path_for(request.path, fetched.name)
            wanted = requests.StageFile(session=request.session, path=path, size=fetched.size)
            async with self.stage(wanted) as staged:
                waiting = bytearray()
                async for chunk in fetched.chunks():
                    waiting += chunk
                    if len(waiting) >= _WRITE_BYTES:
                        await staged.write(waiting)
                        waiting = bytearray()
                await staged.write(waiting)
                return await staged.commit()

    async def delete(self, request: requests.DeleteFile) -> requests.DeletedFiles:
        """A file, or a folder with all in it."""
        check_mount(request.mount)
        path = entry_path(request.path)
        session = await self._used(request.session)
        return requests.DeletedFiles(path=path, files=await self._mounts.delete(session.mount, path))

    async def describe(self, request: requests.DescribeMount) -> requests.MountDescription:
        """What is in it, and what may be."""
        check_mount(request.mount)
        session = await self._there(request.session)
        return requests.MountDescription(use=await self._mounts.measure(session.mount), quota=_quota(session))

    async def link(self, request: requests.MakeLink) -> requests.SignedLink:
        """A link. One for downloading is made only to a file that is there."""
        check_mount(request.mount)
        if not 1 <= request.lifetime_s <= MOST_LINK_S:
            raise InvalidRequest(f"a link lives 1 to {MOST_LINK_S} seconds, not {request.lifetime_s}")
        session = await self._there(request.session)
        expires_at = self._clock.after(request.lifetime_s)
        link = requests.FileLink(
            session=request.session,
            project=self._project,
            mount=request.mount,
            path=file_path(request.path),
            action=request.action,
            expires=math.ceil(_moment(expires_at)),
            size=request.size,
            upload=secrets.token_hex(8) if request.action is LinkAction.UPLOAD else "",
        )
        file = None
        if request.action is LinkAction.DOWNLOAD:
            async with self._mounts.open(session.mount, link.path) as opened:
                file = opened.file
        return requests.SignedLink(
            link=link,
            signature=self._signer.signature(link, session.created_at),
            expires_at=_iso(link.expires),
            file=file,
        )

    async def check_link(self, link: requests.FileLink, signature: str) -> None:
        """Raises: Denied if we did not make it, or its time is over."""
        try:
            session = await self._store.get(link.session)
        except NotFound:
            # Whoever has no good link is not told which sessions there are.
            raise _forged() from None
        # BARRIER: sessions of another project are found by their own names; held by tests/unit/core/test_mounts.py.
        if link.project != self._project or not self._signer.accepts(link, session.created_at, signature):
            raise _forged()
        if _moment(self._clock.now_iso()) >= link.expires:
            raise Denied(
                f"this link has expired at {_iso(link.expires)}: ask for another one where it came from",
                {"expired_at": _iso(link.expires)},
            )

    async def check_still_there(self, session: Session) -> None:
        """Around the moment in which a file is put there: who deletes the session then has dropped it with the rest.

        Raises:
            NotFound: the session was deleted.
        """
        with contextlib.suppress(NotFound):
            now = await self._store.get(session.spec.id)
            if now.created_at == session.created_at and not now.ending:
                return
        raise NotFound(f"session {session.spec.id!r} was deleted while the file was sent", {"session": session.spec.id})

    async def _there(self, session: SessionId) -> Session:
        return await self._prepared(usable(await self._store.get(session)))

    async def _used(self, session: SessionId) -> Session:
        return await self._prepared(await self._places.use(session))

    async def _prepared(self, session: Session) -> Session:
        await self._mounts.prepare(session.mount)
        return session


class _Staged:
    """A staged file whose session is looked after when it is put in its place."""

    def __init__(self, staged: StagedFile, mounts: Mounts, session: Session) -> None:
        self._staged = staged
        self._mounts = mounts
        self._session = session
        self.write = staged.write
        self.take = staged.take
        self.discard = staged.discard

    @property
    def offset(self) -> int:
        """As the store's."""
        return self._staged.offset

    async def commit(self, may: MayReplace | None = None) -> MountFile:
        """As the store's."""
        await self._mounts.check_still_there(self._session)
        try:
            return await self._staged.commit(may)
        finally:
            # Also where that failed: a store has removed what was staged, and this is why.
            await self._mounts.check_still_there(self._session)


def _quota(session: Session) -> Quota:
    return Quota(bytes=session.spec.tier.files_bytes, files=session.spec.tier.files_inodes)


def _path_for(asked: str, name: str) -> FilePath:
    if asked and not asked.endswith("/"):
        return file_path(asked)
    return file_path(f"{asked}{name}")


def _forged() -> Denied:
    return Denied("this link is not good: it was cut, changed or never made here; use it as it was given, all of it")


def _moment(iso: str) -> float:
    return datetime.datetime.fromisoformat(iso).timestamp()


def _iso(moment: float) -> str:
    return datetime.datetime.fromtimestamp(moment, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
