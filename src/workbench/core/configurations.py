"""Configurations of sessions: looked at, changed version by version, and what a change does to a living sandbox."""

from __future__ import annotations

from dataclasses import replace

from workbench.contracts.clock import Clock
from workbench.contracts.storage import SessionStore
from workbench.core.places import SWITCHED_OFF, Places, usable
from workbench.core.requests import ChangeConfiguration, ChangeTier, ConfigurationPage, ListConfigurations
from workbench.core.sessions import Sessions
from workbench.errors import Conflict, HostUnavailable, InvalidRequest, NotFound
from workbench.model.configuration import MOST_VERSIONS, ConfigurationRecord, SessionConfig
from workbench.model.ids import SessionId
from workbench.model.session import Session

_MOST_PAGE = 100


class Configurations:
    """One project's."""

    def __init__(self, store: SessionStore, clock: Clock, places: Places, sessions: Sessions) -> None:
        self._store = store
        self._clock = clock
        self._places = places
        self._sessions = sessions

    async def get(self, session: SessionId) -> Session:
        """The record, with its configuration.

        Raises:
            NotFound: there is none.
            Conflict: it is being deleted, or made.
        """
        return usable(await self._store.get(session))

    async def change(self, request: ChangeConfiguration) -> Session:
        """Write the next version; the record as it then is. Another tier is given first, memory and all: if that is
        refused nothing changes.

        Raises:
            NotFound: there is no such session.
            Conflict: it is not the expected version any more (`config_version` in the context has the present one), or
                its sandbox, which it shares, would be switched off. If it was the expected one until the tier had been
                given, the tier stays.
            QuotaExceeded: more is in use than the tier allows.
            InvalidRequest: what comes of it cannot be kept.
        """
        # What is kept of a version is the size that it had, and not the one that is given for the next.
        tiers: dict[int, str] = {}
        while True:
            session = await self.get(request.session)
            before = tiers.setdefault(session.config_version, session.spec.tier.name)
            _check_version(session, request.expected_version)
            config = request.change(session.spec.config).checked()
            if not config.sandbox.enable:
                await self._check_alone(session)
            if request.tier is not None and request.tier != session.spec.tier:
                await self._sessions.change_tier(ChangeTier(session=request.session, tier=request.tier))
                # The record is another one now, and somebody else may have changed more of it.
                continue
            changed = replace(
                session,
                spec=replace(session.spec, config=config),
                config_version=session.config_version + 1,
                configured_at=self._clock.now_iso(),
            )
            if await self._store.replace(session, changed, tier_before=before):
                for one in await self._store.family(session.mount):
                    if one.context_of == session.spec.id:
                        await self._follow(one, config)
                return await self._switched(changed)

    async def _follow(self, context: Session, config: SessionConfig) -> None:
        """What a session may reach is what its contexts may: code in them asks by their own records."""
        while True:
            changed = replace(
                context,
                spec=replace(context.spec, config=config),
                config_version=context.config_version + 1,
                configured_at=self._clock.now_iso(),
            )
            if await self._store.replace(context, changed):
                return
            try:
                context = await self._store.get(context.spec.id)
            except NotFound:
                return

    async def _check_alone(self, session: Session) -> None:
        others = [one.spec.id for one in await self._store.family(session.mount) if one.spec.id != session.spec.id]
        if others:
            raise Conflict(
                f"session {session.spec.id!r} shares its sandbox with {', '.join(others)}, so it cannot be switched "
                "off: delete those first",
                {"session": session.spec.id},
            )

    async def _switched(self, session: Session) -> Session:
        """Nothing of a sandbox that was switched off goes on; files in /mnt/files stay."""
        if session.spec.config.sandbox.enable or not session.begun:
            return session
        # Now, and not before: nobody branches from what is off, so that those who did are all there are.
        if len(await self._store.family(session.mount)) > 1:
            return await self._places.end_kernel(session, SWITCHED_OFF)
        try:
            return await self._places.lost(session, SWITCHED_OFF, host_needed=True)
        except HostUnavailable:
            # It may live, and its record says where: the caretaker ends it.
            return session

    async def history(self, request: ListConfigurations) -> ConfigurationPage:
        """A page of versions, the present one first.

        Raises:
            NotFound: there is no such session.
            InvalidRequest: a page that cannot be.
        """
        if not 1 <= request.limit <= _MOST_PAGE:
            raise InvalidRequest(f"a page has 1 to {_MOST_PAGE} versions, not {request.limit}")
        session = await self.get(request.session)
        before = session.config_version + 1 if request.before is None else request.before
        present = (_present(session),) if session.config_version < before else ()
        # Not that one again, should it be of the past by now.
        before = min(before, session.config_version)
        past = await self._store.past_configurations(request.session, before, request.limit + 1 - len(present))
        found = (*present, *past)
        shown = found[: request.limit]
        return ConfigurationPage(
            items=shown,
            next_before=shown[-1].version if len(found) > len(shown) else None,
            total=min(session.config_version, MOST_VERSIONS),
        )


def _check_version(session: Session, expected: int | None) -> None:
    if expected is not None and expected != session.config_version:
        raise Conflict(
            f"the configuration of session {session.spec.id!r} was changed: it is version {session.config_version} "
            f"now, and not {expected}; look at it, then ask again with that version",
            {"session": session.spec.id, "config_version": str(session.config_version)},
        )


def _present(session: Session) -> ConfigurationRecord:
    return ConfigurationRecord(
        version=session.config_version,
        at=session.configured_at or session.created_at,
        tier=session.spec.tier.name,
        config=session.spec.config,
    )
