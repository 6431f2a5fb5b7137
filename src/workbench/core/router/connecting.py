"""COMPOSIO_MANAGE_CONNECTIONS and COMPOSIO_WAIT_FOR_CONNECTIONS: how the session's user is connected with toolkits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from workbench.core.router.catalogue import Catalogue, is_enabled
from workbench.errors import InvalidRequest, NotConfigured, WorkbenchError
from workbench.model.session import Session
from workbench.model.toolkit import Connection, Json, Toolkit


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolkitState:
    """A toolkit as a session sees it."""

    toolkit: Toolkit
    is_enabled: bool
    connection: Connection


class Connecting:
    """Asks the catalogue, for sessions."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    async def states(self, session: Session) -> list[ToolkitState]:
        """Of every toolkit there is, by slug."""
        return [
            ToolkitState(
                toolkit=one,
                is_enabled=is_enabled(session.spec.config, one),
                connection=await self._catalogue.connection(one.slug, session),
            )
            for one in await self._catalogue.toolkits()
        ]

    async def refuse(self, session: Session, toolkit: str) -> NoReturn:
        """A connection of the user's with a toolkit.

        Raises:
            InvalidRequest: it needs none.
            NotConfigured: there is no such toolkit, or its accounts cannot be connected here.
        """
        found = await self._found(toolkit)
        if found is None:
            raise NotConfigured(await self._catalogue.unknown_toolkit_words(toolkit), {"toolkit": toolkit[:100]})
        if found.no_auth:
            raise InvalidRequest(
                f"the toolkit {found.slug} needs no account, so there is nothing to connect; call its tools",
                {"toolkit": found.slug, "no_auth": "yes"},
            )
        raise NotConfigured(
            f"accounts of {found.slug} cannot be connected on this workbench; {await self._words(session, found)}",
            {"toolkit": found.slug},
        )

    async def manage(self, session: Session, toolkits: Sequence[str]) -> Json:
        """What agents are told."""
        results = {slug: await self._managed(session, slug) for slug in _slugs(toolkits)}
        counts = {
            status: sum(one["status"] == status for one in results.values())
            for status in ("active", "initiated", "failed")
        }
        words = f"{counts['active']} of {len(results)} toolkits can be used now."
        if counts["failed"]:
            words += " The others cannot be connected here; error_message says why. Go on without them, or say so."
        return {
            "message": words,
            "results": results,
            "summary": {
                "total_toolkits": len(results),
                "active_connections": counts["active"],
                "initiated_connections": counts["initiated"],
                "failed_connections": counts["failed"],
            },
        }

    async def wait(self, session: Session, toolkits: Sequence[str]) -> Json:
        """The same for connections that were begun. None can be under way that is not known at once."""
        results: Json = {}
        for slug in _slugs(toolkits):
            told = await self._managed(session, slug)
            status = {"active": "ACTIVE", "failed": "FAILED"}[told["status"]]
            if status == "FAILED" and await self._found(slug) is None:
                status = "NOT_FOUND"
            results[slug] = {**told, "status": status}
        active = sum(one["status"] == "ACTIVE" for one in results.values())
        return {
            "message": f"{active} of {len(results)} toolkits are connected; nothing is under way for the others.",
            "results": results,
        }

    async def _managed(self, session: Session, slug: str) -> Json:
        try:
            connection = await self._catalogue.connection(slug, session)
        except WorkbenchError as problem:
            return _failed(slug, problem.message)
        if not connection.is_active:
            return _failed(slug, connection.words)
        return {"toolkit": slug, "status": "active", "has_active_connection": True, "instruction": connection.words}

    async def _found(self, slug: str) -> Toolkit | None:
        return next((one for one in await self._catalogue.toolkits() if one.slug == slug.strip().lower()), None)

    async def _words(self, session: Session, toolkit: Toolkit) -> str:
        return (await self._catalogue.connection(toolkit.slug, session)).words


def _failed(slug: str, words: str) -> Json:
    return {"toolkit": slug, "status": "failed", "has_active_connection": False, "error_message": words}


def _slugs(toolkits: Sequence[str]) -> list[str]:
    """Each once, in their order."""
    return list(dict.fromkeys(slug.strip().lower() for slug in toolkits))
