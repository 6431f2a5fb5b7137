"""The suite that every store of keys and of the audit passes, with what concerns all projects at once.

`testing.storage_contract` says how it is used.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from workbench.contracts.storage import Records
from workbench.errors import Conflict, NotFound
from workbench.model.access import Key, Scope, digest_of
from workbench.model.ids import DEFAULT_PROJECT, CellId, KernelId, KeyId, ProjectId, SandboxId, SessionId
from workbench.model.records import AuditEntry, CellRecord
from workbench.testing.cell_contract import a_cell, a_result
from workbench.testing.storage_contract import EARLY, LATE, OTHERS, OpenedRecords, a_session

_BEFORE, _BETWEEN, _AFTER = "2029-12-31T00:00:00.000000Z", "2030-01-01T12:00:00.000000Z", "2030-01-03T00:00:00.000000Z"


def a_key(name: str = "k1", project: ProjectId = DEFAULT_PROJECT) -> Key:
    """With something in every field that a new one has."""
    return Key(
        id=KeyId(name),
        project=project,
        label="für Ålice",
        scopes=frozenset({Scope.SESSIONS, Scope.PROXY}),
        digest=digest_of(name),
        created_at=EARLY,
        expires_at=LATE,
    )


def a_token(name: str = "t1", session: str = "one", expires_at: str = LATE) -> Key:
    """For one session."""
    return replace(a_key(name), session=SessionId(session), expires_at=expires_at)


def an_entry(action: str = "session.create", at: str = EARLY, project: ProjectId = DEFAULT_PROJECT) -> AuditEntry:
    """With something in every field."""
    return AuditEntry(
        at=at,
        project=project,
        key=KeyId("k1"),
        session=SessionId("one"),
        user="alice",
        action=action,
        outcome="ok",
        detail="3 of 4",
    )


class KeyStoreContract(OpenedRecords):
    """Subclass it, with the fixture `open_records`."""

    async def test_a_key_comes_back_as_it_was_kept(self, records: Records, more_records: Records) -> None:
        """A token as well, and one that does not expire."""
        await records.sessions(DEFAULT_PROJECT).add(a_session())
        for key in (a_key(), a_token(), replace(a_key("k2"), expires_at="", scopes=frozenset(), label="")):
            await records.keys.add(key)
            assert await more_records.keys.get(key.id) == key

    async def test_an_unknown_key_is_not_found(self, records: Records) -> None:
        """With the next step in the message."""
        with pytest.raises(NotFound, match="keys list"):
            await records.keys.get(KeyId("none"))
        assert not await records.keys.revoke(KeyId("none"), LATE)
        assert not await records.keys.rotate(KeyId("none"), a_key(), LATE)
        assert await records.keys.list(None) == ()

    async def test_a_name_is_taken_once(self, records: Records) -> None:
        """And the first stays."""
        await records.keys.add(a_key())
        with pytest.raises(Conflict, match="already"):
            await records.keys.add(a_key(project=OTHERS))
        assert await records.keys.get(KeyId("k1")) == a_key()

    async def test_of_many_who_make_the_first_key_one_does(self, records: Records, more_records: Records) -> None:
        """Tokens do not count; a key that is no more good does."""
        await records.sessions(DEFAULT_PROJECT).add(a_session())
        await records.keys.add(a_token())
        made = await asyncio.gather(
            *((records, more_records)[n % 2].keys.add_first(a_key(f"first{n}")) for n in range(8))
        )
        assert made.count(True) == 1
        (kept,) = await records.keys.list(None)
        assert kept.id == f"first{made.index(True)}"
        await records.keys.revoke(kept.id, EARLY)
        assert not await more_records.keys.add_first(a_key("later"))

    async def test_keys_are_listed_oldest_first_without_tokens(self, records: Records) -> None:
        """Of a project, or of all; also those that are no more good."""
        await records.sessions(DEFAULT_PROJECT).add(a_session())
        late, early, theirs = replace(a_key("k1"), created_at=LATE), a_key("k2"), a_key("k3", project=OTHERS)
        for key in (late, early, theirs, a_token()):
            await records.keys.add(key)
        assert await records.keys.revoke(early.id, EARLY)
        revoked = replace(early, revoked_at=EARLY)
        assert await records.keys.list(DEFAULT_PROJECT) == (revoked, late)
        assert await records.keys.list(OTHERS) == (theirs,)
        assert await records.keys.list(None) == (revoked, theirs, late)

    async def test_a_key_is_revoked_once(self, records: Records, more_records: Records) -> None:
        """One that has expired is no good anyway."""
        await records.keys.add(a_key())
        assert await records.keys.revoke(KeyId("k1"), _BETWEEN)
        assert not await more_records.keys.revoke(KeyId("k1"), LATE)
        assert (await more_records.keys.get(KeyId("k1"))).revoked_at == _BETWEEN
        await records.keys.add(a_key("k2"))
        assert not await records.keys.revoke(KeyId("k2"), LATE)

    async def test_a_key_that_is_rotated_goes_on_for_a_while(self, records: Records, more_records: Records) -> None:
        """And not longer than it would have anyway."""
        await records.keys.add(replace(a_key("endless"), expires_at=""))
        await records.keys.add(a_key("short"))
        for old, until, end in (("endless", _AFTER, _AFTER), ("short", _AFTER, LATE)):
            new = a_key(f"{old}2")
            assert await records.keys.rotate(KeyId(old), new, until)
            now = await more_records.keys.get(KeyId(old))
            assert (now.replaced_by, now.expires_at, now.revoked_at) == (new.id, end, "")
            assert await more_records.keys.get(new.id) == new

    async def test_a_key_that_is_no_more_good_is_not_rotated(self, records: Records) -> None:
        """And the new one is not kept."""
        await records.keys.add(a_key())
        await records.keys.revoke(KeyId("k1"), EARLY)
        assert not await records.keys.rotate(KeyId("k1"), a_key("k2"), LATE)
        with pytest.raises(NotFound):
            await records.keys.get(KeyId("k2"))

    async def test_of_many_who_rotate_a_key_at_once_one_does(self, records: Records, more_records: Records) -> None:
        """The new keys of the others are not kept."""
        await records.keys.add(a_key("old"))
        new = [a_key(f"new{n}") for n in range(8)]
        done = await asyncio.gather(
            *((records, more_records)[n % 2].keys.rotate(KeyId("old"), key, LATE) for n, key in enumerate(new))
        )
        assert done.count(True) == 1
        kept = {key.id for key in await records.keys.list(None)}
        assert kept == {"old", new[done.index(True)].id}

    async def test_a_rotation_whose_new_name_is_taken_changes_nothing(self, records: Records) -> None:
        """One step, or none."""
        await records.keys.add(a_key("old"))
        await records.keys.add(a_key("new"))
        with pytest.raises(Conflict):
            await records.keys.rotate(KeyId("old"), a_key("new"), EARLY)
        assert await records.keys.get(KeyId("old")) == a_key("old")

    async def test_tokens_go_with_their_session(self, records: Records) -> None:
        """And none is made for one that is gone; keys stay."""
        sessions = records.sessions(DEFAULT_PROJECT)
        await sessions.add(a_session())
        await records.keys.add(a_token())
        await records.keys.add(a_key())
        await sessions.remove(a_session())
        with pytest.raises(NotFound):
            await records.keys.get(KeyId("t1"))
        with pytest.raises(NotFound, match="no session 'one'"):
            await records.keys.add(a_token())
        assert await records.keys.get(KeyId("k1"))

    async def test_expired_tokens_are_removed_and_keys_are_not(self, records: Records) -> None:
        """Those are in the history of their project."""
        await records.sessions(DEFAULT_PROJECT).add(a_session())
        for key in (a_key(), a_token("t1", expires_at=EARLY), a_token("t2"), a_token("t3", expires_at="")):
            await records.keys.add(key)
        assert await records.keys.remove_tokens_expired_before(_BETWEEN) == 1
        for name in ("k1", "t2", "t3"):
            assert await records.keys.get(KeyId(name))
        assert await records.keys.remove_tokens_expired_before(_AFTER) == 1


class HousekeepingContract(OpenedRecords):
    """Of the audit, and of what concerns all projects at once. Subclass it, with the fixture `open_records`."""

    async def test_the_audit_is_listed_newest_first(self, records: Records, more_records: Records) -> None:
        """Of one project; those of the same time in the order they came; on from an earlier time."""
        own = replace(an_entry("d", LATE), key=None, session=None, user="", detail="")
        entries = [an_entry("a", _BETWEEN), an_entry("b", EARLY), an_entry("c", EARLY), own]
        for entry in (*entries, an_entry("e", _AFTER, OTHERS)):
            await records.audit.add(entry)
        assert await more_records.audit.list(DEFAULT_PROJECT) == (own, entries[0], entries[2], entries[1])
        assert [entry.action for entry in await records.audit.list(DEFAULT_PROJECT, limit=2)] == ["d", "a"]
        assert [entry.action for entry in await records.audit.list(DEFAULT_PROJECT, before=LATE)] == ["a", "c", "b"]
        assert await records.audit.list(DEFAULT_PROJECT, before=EARLY) == ()
        assert await records.audit.list(DEFAULT_PROJECT, session=entries[0].session, limit=2) == (
            entries[0],
            entries[2],
        )
        assert await records.audit.list(DEFAULT_PROJECT, session=SessionId("none")) == ()

    async def test_an_entry_about_a_session_names_its_user(self, records: Records) -> None:
        """Whoever noted it without; of the same project, and only if it is there."""
        await records.sessions(DEFAULT_PROJECT).add(a_session(user="bob"))
        nameless = replace(an_entry("a"), user="")
        for entry in (
            nameless,
            an_entry("b"),
            replace(nameless, session=SessionId("none")),
            replace(nameless, session=None),
            replace(nameless, project=OTHERS),
        ):
            await records.audit.add(entry)
        users = [entry.user for entry in await records.audit.list(DEFAULT_PROJECT)]
        assert users == ["", "", "alice", "bob"]
        assert [entry.user for entry in await records.audit.list(OTHERS)] == [""]

    async def test_sessions_left_over_are_listed_for_all_projects(self, records: Records) -> None:
        """Those that are being deleted or made, if they were not used since."""
        made = {
            "a": replace(a_session("a"), begun=True),
            "b": replace(a_session("b"), begun=True, ending=True),
            "c": replace(a_session("c"), unfinished=True),
            "d": replace(a_session("d"), ending=True, used_at=LATE),
        }
        for one in made.values():
            await records.sessions(DEFAULT_PROJECT).add(one)
        theirs = replace(a_session("e", project=OTHERS), ending=True)
        await records.sessions(OTHERS).add(theirs)
        assert await records.house.left_over(_BETWEEN, None, 2) == (made["b"], made["c"])
        assert await records.house.left_over(_BETWEEN, SessionId("c"), 10) == (theirs,)
        assert await records.house.left_over(_BEFORE, None, 10) == ()

    async def test_sessions_that_have_not_begun_are_listed_for_all_projects(self, records: Records) -> None:
        """If they were used since, and are neither being deleted nor made."""
        cold, late = a_session("c"), replace(a_session("d"), used_at=LATE)
        for one in (
            replace(a_session("a"), begun=True),
            replace(a_session("b"), ending=True),
            replace(a_session("f"), unfinished=True),
            cold,
            late,
        ):
            await records.sessions(DEFAULT_PROJECT).add(one)
        theirs = a_session("e", project=OTHERS)
        await records.sessions(OTHERS).add(theirs)
        assert await records.house.unbegun("", None, 2) == (cold, late)
        assert await records.house.unbegun("", SessionId("d"), 10) == (theirs,)
        assert await records.house.unbegun(_BETWEEN, None, 10) == (late,)

    async def test_sessions_that_have_begun_are_listed_for_all_projects(self, records: Records) -> None:
        """By name, in pages, without those that are being deleted."""
        begun = {name: replace(a_session(name), begun=True) for name in ("d", "a", "b")}
        for one in (*begun.values(), a_session("cold"), replace(a_session("c"), begun=True, ending=True)):
            await records.sessions(DEFAULT_PROJECT).add(one)
        theirs = replace(a_session("e", project=OTHERS), begun=True)
        await records.sessions(OTHERS).add(theirs)
        assert await records.house.begun(None, 2) == (begun["a"], begun["b"])
        assert await records.house.begun(SessionId("b"), 10) == (begun["d"], theirs)

    async def test_sessions_are_found_by_their_sandbox(self, records: Records) -> None:
        """Of any project, with their branches, and none of another sandbox."""
        theirs = a_session("b", project=OTHERS)
        branch = replace(theirs, spec=replace(theirs.spec, id=SessionId("a")), kernel=KernelId("twig"))
        await records.sessions(OTHERS).add(theirs)
        assert await records.sessions(OTHERS).add_branch(branch, theirs)
        await records.sessions(DEFAULT_PROJECT).add(a_session("c"))
        assert await records.house.in_sandbox(theirs.sandbox) == (branch, theirs)
        assert await records.house.in_sandbox(SandboxId("sb-none")) == ()

    async def test_pending_cells_are_listed_for_all_projects(self, records: Records) -> None:
        """In pages, none of which ends between cells of the same id."""
        projects = {"one": DEFAULT_PROJECT, "two": DEFAULT_PROJECT, "three": OTHERS}
        for name, project in projects.items():
            await records.sessions(project).add(a_session(name, project=project))
            for cell in ("c-1", "c-2", "c-3"):
                await records.cells(project).add(a_cell(cell, name))
        await records.cells(OTHERS).finish(SessionId("three"), CellId("c-3"), LATE, a_result("c-3"))
        found: list[tuple[ProjectId, CellRecord]] = []
        after = None
        while page := await records.house.pending(after, 2):
            found += page
            after = page[-1][1].id
        wanted = [
            (projects[session], a_cell(cell, session))
            for cell in ("c-1", "c-2", "c-3")
            for session in ("one", "three", "two")
            if (cell, session) != ("c-3", "three")
        ]
        assert found == wanted

    async def test_old_cells_are_dropped_and_pending_ones_are_not(self, records: Records) -> None:
        """However long they have been at it."""
        cells = records.cells(DEFAULT_PROJECT)
        await records.sessions(DEFAULT_PROJECT).add(a_session())
        for name, at in (("c-1", EARLY), ("c-2", LATE), ("c-3", "")):
            await cells.add(a_cell(name, at=_BEFORE))
            if at:
                await cells.finish(SessionId("one"), CellId(name), at, a_result(name))
        assert await records.house.drop_cells_ended_before(_BETWEEN) == 1
        with pytest.raises(NotFound, match="older than what is kept"):
            await cells.get(SessionId("one"), CellId("c-1"))
        assert await records.house.drop_cells_ended_before(_AFTER) == 1
        assert await cells.get(SessionId("one"), CellId("c-3"))

    async def test_old_entries_of_the_audit_are_dropped(self, records: Records) -> None:
        """Of all projects."""
        for entry in (an_entry("a"), an_entry("b", project=OTHERS), an_entry("c", LATE)):
            await records.audit.add(entry)
        assert await records.house.drop_audit_before(_BETWEEN) == 2
        assert [entry.action for entry in await records.audit.list(DEFAULT_PROJECT)] == ["c"]

    async def test_of_a_user_who_is_forgotten_nothing_is_left(self, records: Records) -> None:
        """Nor of what was noted about their sessions without their name; others and other projects keep theirs."""
        for name, user, project in (("one", "alice", DEFAULT_PROJECT), ("two", "bob", DEFAULT_PROJECT),
                                    ("three", "alice", OTHERS)):  # fmt: skip
            await records.sessions(project).add(a_session(name, user, project))
            await records.cells(project).add(a_cell(session=name))
            await records.keys.add(replace(a_token(f"t-{name}", name), project=project))
            await records.audit.add(replace(an_entry(name, project=project), session=SessionId(name), user=user))
            await records.audit.add(replace(an_entry("token", project=project), session=SessionId(name), user=""))
        await records.audit.add(replace(an_entry("key.create"), session=None, user=""))
        await records.house.forget_user(DEFAULT_PROJECT, "alice")
        await records.house.forget_user(DEFAULT_PROJECT, "nobody")
        with pytest.raises(NotFound):
            await records.keys.get(KeyId("t-one"))
        with pytest.raises(NotFound):
            await records.cells(DEFAULT_PROJECT).get(SessionId("one"), CellId("c-1"))
        entries = await records.audit.list(DEFAULT_PROJECT)
        assert [entry.action for entry in entries] == ["key.create", "token", "two"]
        assert len(await records.audit.list(OTHERS)) == 2
        assert await records.keys.get(KeyId("t-two"))
        assert await records.cells(OTHERS).get(SessionId("three"), CellId("c-1"))
