"""Toolkits: which ones were added to this workbench, by whom, and how they are. Who runs them is left to the house."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace

from workbench.contracts.added import KeptToolkit, Standing, ToolkitHouse
from workbench.contracts.clock import Clock
from workbench.contracts.connections import AccountsRequest, Vault
from workbench.contracts.storage import Records
from workbench.core.router.catalogue import Catalogue
from workbench.core.toolkit_requests import AddedToolkits, AddToolkit, ListToolkits, OwnToolkit, ToolkitName
from workbench.errors import Conflict, Denied, InvalidRequest, NotFound, StoreUnavailable, WorkbenchError
from workbench.model.access import Caller, Scope
from workbench.model.added import AddedKind, AddedToolkit, added_toolkit
from workbench.model.connection import Secret
from workbench.model.ids import ProjectId
from workbench.model.records import AuditEntry
from workbench.model.toolkit import endpoints_of

_MOST_OF_A_PROJECT = 100


class AddedRecords:
    """What is kept of toolkits that were added, with its secrets opened."""

    def __init__(self, records: Records, vault: Vault) -> None:
        self._store = records.added
        self._vault = vault

    async def add(self, added: AddedToolkit) -> None:
        """Raises: Conflict: there is one of that name."""
        held = json.dumps({name: one.reveal() for name, one in added.secrets.items()})
        sealed = self._vault.seal(_context(added.project, added.slug), held.encode()) if added.secrets else b""
        await self._store.add(
            KeptToolkit(
                slug=added.slug,
                kind=added.kind,
                project=added.project,
                options=added.options,
                sealed=sealed,
                added_at=added.added_at,
            )
        )

    async def all(self) -> tuple[AddedToolkit, ...]:
        """Of all projects. One whose secrets cannot be opened has none, and says so when it is used."""
        return tuple(self._opened(one) for one in await self._store.list())

    async def remove(self, project: ProjectId | None, slug: str) -> bool:
        """False if it is gone."""
        return await self._store.remove(project, slug)

    def _opened(self, kept: KeptToolkit) -> AddedToolkit:
        secrets: dict[str, Secret] = {}
        if kept.sealed:
            with contextlib.suppress(StoreUnavailable):
                held = json.loads(self._vault.unseal(_context(kept.project, kept.slug), kept.sealed))
                secrets = {name: Secret(one) for name, one in held.items()}
        return AddedToolkit(
            slug=kept.slug,
            kind=kept.kind,
            project=kept.project,
            options=kept.options,
            secrets=secrets,
            added_at=kept.added_at,
        )


class Toolkits:
    """Of all projects. Every method may raise `StoreUnavailable`, and `Denied` for a caller who is no admin."""

    def __init__(
        self,
        *,
        records: Records,
        kept: AddedRecords,
        house: ToolkitHouse,
        clock: Clock,
        own: Catalogue,
    ) -> None:
        self._audit = records.audit
        self._memory = records.tools
        self._accounts = records.connections
        self._kept = kept
        self._house = house
        self._clock = clock
        self._own = own
        """what this workbench has by itself"""

    async def add(self, request: AddToolkit) -> Standing:
        """Keep it, and have it there for the next call, without a restart.

        Raises:
            InvalidRequest: it is not what a toolkit is added with, with the name of the option.
            Denied: it is one that only who runs this workbench adds.
            Conflict: there is one of that name.
            any other error of the tree: it was tried, and its tools cannot be listed; nothing is kept.
        """
        async with self._noted(request.by, "toolkit.add", request.slug):
            _check_admin(request.by)
            project = None if request.for_all else request.by.project
            added = added_toolkit(request.slug, request.given, project=project, added_at=self._clock.now_iso())
            _check_may_add(request.by, added)
            await self._check_free(added)
            standing = await self._house.tried(added) if request.try_first else Standing(added=added)
            standing = replace(standing, added=_held_to(standing))
            await self._kept.add(standing.added)
            self._house.changed()
        return standing

    async def list(self, request: ListToolkits) -> AddedToolkits:
        """With how each of them is; those for all projects as well."""
        _check_admin(request.by)
        problem = await self._house.problem() if request.by.key is None else ""
        # BARRIER: a key of one project would see what others added; held by tests/toolkits/test_admin.py.
        project = None if request.everywhere and request.by.key is None else request.by.project
        return AddedToolkits(items=await self._house.standing(project), file_problem=problem)

    async def own(self, request: ListToolkits) -> tuple[OwnToolkit, ...]:
        """Those that this workbench has by itself, by slug, with their tools."""
        _check_admin(request.by)
        entries = (await self._own.entries()).values()
        return tuple(
            OwnToolkit(toolkit=one, tools=tuple(entry.tool for entry in entries if entry.tool.toolkit == one.slug))
            for one in await self._own.toolkits()
        )

    async def show(self, request: ToolkitName) -> Standing:
        """One of them, with its tools. Raises: NotFound."""
        _check_admin(request.by)
        return await self._found(request)

    async def test(self, request: ToolkitName) -> Standing:
        """Begin it by itself, list its tools, and end it.

        Raises:
            NotFound: there is none of that name.
            any error of the tree: it cannot be used; the message says why.
        """
        _check_admin(request.by)
        return await self._house.tried((await self._found(request)).added)

    async def remove(self, request: ToolkitName) -> None:
        """It is gone for the next call; what runs of it is ended.

        Raises:
            NotFound: there is none of that name.
            Denied: it is for all projects, or from the settings file.

        Accounts that were connected with it in its project go with it.
        """
        async with self._noted(request.by, "toolkit.remove", request.slug):
            _check_admin(request.by)
            found = await self._found(request)
            added = found.added
            if added.from_file:
                raise Denied(
                    f"{added.slug} is in the settings file of this workbench; take it out there",
                    {"toolkit": added.slug},
                )
            # BARRIER: a key of one project would take away what all have; held by tests/toolkits/test_admin.py.
            if added.project is None and request.by.key is not None:
                raise Denied(f"{added.slug} is for all projects, and only who runs this workbench removes it")
            if not await self._kept.remove(added.project, added.slug):
                raise _unknown(request.slug)
            self._house.changed()
            for slug in {added.slug, *(one.slug for one in found.toolkits)}:
                # Another one of that name has other tools.
                await self._memory.forget_shapes(added.project, slug)
            await self._forget_accounts(added)

    async def _forget_accounts(self, added: AddedToolkit) -> None:
        """BARRIER: accounts that people connected with it would go to whatever is added by the same name, wherever that
        is; held by tests/unit/core/test_toolkits.py.
        """
        if added.kind is not AddedKind.OPENAPI or added.project is None:
            return
        of_it = AccountsRequest(project=added.project, toolkit=added.slug)
        while found := await self._accounts.list(of_it):
            for account in found:
                await self._accounts.remove(account.project, account.id)

    async def _found(self, request: ToolkitName) -> Standing:
        named = [one for one in await self._house.standing(request.by.project) if one.added.slug == request.slug]
        wanted = [one for one in named if (one.added.project is None) == request.for_all] or named
        if not wanted and request.slug in await self._own.toolkit_slugs():
            raise NotFound(
                f"the toolkit {request.slug!r} comes with this workbench, and was not added; "
                "WORKBENCH_TOOLKITS_SHIPPED says which of those there are",
                {"toolkit": request.slug},
            )
        if not wanted:
            raise _unknown(request.slug)
        return wanted[0]

    async def _check_free(self, added: AddedToolkit) -> None:
        # Composio's are named by Composio; what they are added under is a name for the record.
        if added.kind is not AddedKind.COMPOSIO and added.slug in await self._own.toolkit_slugs():
            raise Conflict(
                f"this workbench has a toolkit {added.slug!r} by itself; take another name", {"toolkit": added.slug}
            )
        there = await self._kept.all()
        # BARRIER: accounts that were connected with the one for all would go to this one; held by
        # tests/unit/core/test_toolkits.py.
        of_all = [one for one in there if one.project is None and one.slug == added.slug]
        if added.kind is AddedKind.OPENAPI and any(one.kind is AddedKind.OPENAPI for one in of_all):
            raise Conflict(
                f"all projects have a toolkit {added.slug!r}, with accounts of its own; take another name",
                {"toolkit": added.slug},
            )
        if any((one.project, one.slug) == (added.project, added.slug) for one in there):
            raise Conflict(
                f"there is a toolkit {added.slug!r} already; remove it first, or take another name",
                {"toolkit": added.slug},
            )
        if sum(one.project == added.project for one in there) >= _MOST_OF_A_PROJECT:
            raise InvalidRequest(f"a project may add {_MOST_OF_A_PROJECT} toolkits; remove one first")

    @contextlib.asynccontextmanager
    async def _noted(self, by: Caller, action: str, slug: str) -> AsyncIterator[None]:
        outcome = "internal_error"
        try:
            yield
            outcome = "ok"
        except WorkbenchError as problem:
            outcome = problem.code
            raise
        finally:
            entry = AuditEntry(
                at=self._clock.now_iso(),
                project=by.project,
                key=by.key,
                session=None,
                user="",
                action=action,
                outcome=outcome,
                detail=slug[:100],
            )
            with contextlib.suppress(WorkbenchError):
                await self._audit.add(entry)


def _held_to(standing: Standing) -> AddedToolkit:
    """With where a description leads now: it is somebody's file, which may say something else tomorrow."""
    added = standing.added
    if added.kind is not AddedKind.OPENAPI or added.is_local or not standing.toolkits:
        return added
    (toolkit,) = standing.toolkits
    told = {"hosts": list(toolkit.hosts), "endpoints": list(endpoints_of(toolkit))}
    return replace(added, options={**added.options, **told})


def _check_admin(by: Caller) -> None:
    if by.session is not None or not by.may(Scope.ADMIN):
        raise Denied("this needs a key with the scope `admin`", {"scope": Scope.ADMIN.value})


def _check_may_add(by: Caller, added: AddedToolkit) -> None:
    if by.key is None:
        return
    # BARRIER: an admin of one project would run programs as the server's user, and read its files; held by
    # tests/toolkits/test_admin.py.
    if added.is_local:
        raise Denied(
            f"a toolkit with `{added.kind}` runs or reads what lies on the server's machine, and only who runs this "
            "workbench adds it: by `workbench toolkits add` there, or in the settings file",
            {"option": added.kind.value},
        )
    if added.project is None:
        raise Denied("only who runs this workbench adds toolkits for all projects; leave `for_all` out")


def _unknown(slug: str) -> NotFound:
    return NotFound(
        f"no toolkit {slug[:60]!r} was added here; `workbench toolkits list` lists those there are",
        {"toolkit": slug[:60]},
    )


def _context(project: ProjectId | None, slug: str) -> str:
    return f"toolkit/{project or ''}/{slug}"
