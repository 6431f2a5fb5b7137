"""Keys and tokens: who gets in, who may make what for whom, and what is noted about it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.core.standins import World

from workbench.core import requests
from workbench.core.access import Access
from workbench.errors import Conflict, Denied, InvalidRequest, NotFound, Unauthenticated, WorkbenchError
from workbench.model.access import Caller, NewKey, Scope, digest_of
from workbench.model.configuration import SandboxSwitches, SessionConfig
from workbench.model.ids import DEFAULT_PROJECT, KeyId, ProjectId, SessionId

ONE = SessionId("one")
OTHER = ProjectId("other")
OWNER = Caller()
EVERYTHING = frozenset(Scope)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def access(world: World) -> Access:
    return Access(records=world.records, clock=world.clock)


async def made(
    access: Access, *scopes: Scope, project: ProjectId = DEFAULT_PROJECT, lifetime_s: int | None = None
) -> NewKey:
    given = frozenset(scopes) or frozenset({Scope.SESSIONS})
    request = requests.CreateKey(by=OWNER, project=project, scopes=given, lifetime_s=lifetime_s)
    return await access.create_key(request)


async def as_caller(access: Access, *scopes: Scope, project: ProjectId = DEFAULT_PROJECT) -> Caller:
    return await access.authenticate((await made(access, *scopes, project=project)).presented)


async def with_token(world: World, access: Access, **more: int) -> NewKey:
    await world.bench().create_session(requests.CreateSession(session=ONE))
    return await access.create_token(requests.CreateToken(by=OWNER, session=ONE, **more))


# Coming in


async def test_a_caller_is_good_until_its_key_is_revoked_or_expires(world: World, access: Access) -> None:
    assert await access.still_good(OWNER)
    new = await made(access)
    caller = await access.authenticate(new.presented)
    assert await access.still_good(caller)
    await access.revoke_key(requests.RevokeKey(by=OWNER, key=new.key.id))
    assert not await access.still_good(caller)
    assert not await access.still_good(replace(caller, key=KeyId("nobody")))
    short = await made(access, lifetime_s=60)
    caller = await access.authenticate(short.presented)
    assert await access.still_good(caller)
    world.clock.seconds += 100
    assert not await access.still_good(caller)


async def test_a_key_lets_its_project_in_with_its_scopes(access: Access) -> None:
    new = await made(access, Scope.SESSIONS, Scope.PROXY, project=OTHER)
    caller = await access.authenticate(new.presented)
    assert caller == Caller(
        project=OTHER, key=new.key.id, scopes=frozenset({Scope.SESSIONS, Scope.PROXY}), session=None
    )
    assert new.presented.startswith(f"wbk_{new.key.id}_")


async def test_only_a_digest_of_the_secret_is_kept(world: World, access: Access) -> None:
    new = await made(access)
    secret = new.presented.split("_", 2)[2]
    kept = await world.records.keys.get(new.key.id)
    assert (secret in repr(kept), kept.digest) == (False, digest_of(secret))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda sent: sent[:-1] + ("A" if sent[-1] != "A" else "B"),
        lambda sent: sent + "x",
        lambda sent: sent.replace("wbk_", "wbt_"),
        lambda sent: "wbk_000000000000_" + sent.split("_", 2)[2],
        lambda sent: sent.rsplit("_", 1)[0] + "_",
        lambda sent: "Bearer " + sent,
        lambda _: "",
        lambda _: "wbk_ä_ö",
    ],
)
async def test_what_is_not_exactly_a_key_is_refused(access: Access, spoil: object) -> None:
    new = await made(access)
    with pytest.raises(Unauthenticated):
        await access.authenticate(spoil(new.presented))  # type: ignore[operator]


async def test_a_wrong_name_and_a_wrong_secret_are_told_the_same(access: Access) -> None:
    new = await made(access)
    told = set()
    for sent in (new.presented + "x", "wbk_000000000000_x"):
        with pytest.raises(Unauthenticated) as refused:
            await access.authenticate(sent)
        told.add((refused.value.message, str(refused.value.context)))
    assert len(told) == 1


async def test_an_expired_key_is_refused_with_the_next_step(world: World, access: Access) -> None:
    new = await made(access, lifetime_s=100)
    await access.authenticate(new.presented)
    world.clock.seconds += 100
    with pytest.raises(Unauthenticated, match="has expired; make a new one"):
        await access.authenticate(new.presented)


async def test_a_revoked_key_is_refused_from_that_moment_on(access: Access) -> None:
    new = await made(access)
    revoked = await access.revoke_key(requests.RevokeKey(by=OWNER, key=new.key.id))
    assert revoked.revoked_at
    with pytest.raises(Unauthenticated, match="was revoked"):
        await access.authenticate(new.presented)
    # Once more is no error.
    assert await access.revoke_key(requests.RevokeKey(by=OWNER, key=new.key.id)) == revoked


# Making keys


async def test_only_admins_make_list_and_rotate_keys(access: Access) -> None:
    caller = await as_caller(access, Scope.SESSIONS, Scope.PROXY)
    assert caller.key is not None
    for refused in (
        access.create_key(requests.CreateKey(by=caller)),
        access.list_keys(requests.ListKeys(by=caller)),
        access.revoke_key(requests.RevokeKey(by=caller, key=caller.key)),
        access.rotate_key(requests.RotateKey(by=caller, key=caller.key)),
        access.list_audit(requests.ListAudit(by=caller)),
    ):
        with pytest.raises(Denied, match="scope admin"):
            await refused


async def test_an_admin_makes_keys_of_its_own_project_only(access: Access) -> None:
    admin = await as_caller(access, Scope.ADMIN, project=OTHER)
    new = await access.create_key(requests.CreateKey(by=admin, project=OTHER, label="for the agent"))
    assert (new.key.project, new.key.label) == (OTHER, "for the agent")
    with pytest.raises(Denied, match="of that project only"):
        await access.create_key(requests.CreateKey(by=admin, project=DEFAULT_PROJECT))


async def test_nobody_gives_a_scope_that_they_have_not(access: Access) -> None:
    narrow = Caller(key=KeyId("k"), scopes=frozenset({Scope.SESSIONS}))
    with pytest.raises(Denied):
        await access.create_key(requests.CreateKey(by=narrow, scopes=EVERYTHING))
    admin = await as_caller(access, Scope.ADMIN)
    assert (await access.create_key(requests.CreateKey(by=admin, scopes=EVERYTHING))).key.scopes == EVERYTHING


async def test_the_keys_of_another_project_do_not_exist(access: Access) -> None:
    mine = await made(access)
    admin = await as_caller(access, Scope.ADMIN, project=OTHER)
    for asking in (
        access.revoke_key(requests.RevokeKey(by=admin, key=mine.key.id)),
        access.rotate_key(requests.RotateKey(by=admin, key=mine.key.id)),
        access.revoke_key(requests.RevokeKey(by=admin, key=KeyId("none"))),
    ):
        with pytest.raises(NotFound):
            await asking
    assert {key.project for key in (await access.list_keys(requests.ListKeys(by=admin))).keys} == {OTHER}
    assert len((await access.list_keys(requests.ListKeys(by=OWNER))).keys) == 2
    await access.authenticate(mine.presented)


@pytest.mark.parametrize(
    "request_",
    [
        requests.CreateKey(by=OWNER, scopes=frozenset()),
        requests.CreateKey(by=OWNER, label="x" * 201),
        requests.CreateKey(by=OWNER, label="two\nlines"),
        requests.CreateKey(by=OWNER, lifetime_s=0),
        requests.CreateKey(by=OWNER, lifetime_s=10**12),
        requests.CreateKey(by=OWNER, project=ProjectId("Not/One")),
    ],
)
async def test_a_key_that_cannot_be_is_not_made(access: Access, request_: requests.CreateKey) -> None:
    with pytest.raises(InvalidRequest):
        await access.create_key(request_)
    assert (await access.list_keys(requests.ListKeys(by=OWNER))).keys == ()


async def test_the_first_key_is_made_once_and_is_good_for_everything(access: Access) -> None:
    first = await access.first_key()
    assert first is not None
    caller = await access.authenticate(first.presented)
    assert (caller.scopes, caller.project) == (EVERYTHING, DEFAULT_PROJECT)
    await access.revoke_key(requests.RevokeKey(by=OWNER, key=first.key.id))
    # One that was revoked is no reason to make another behind its owner's back.
    assert await access.first_key() is None


# Rotating


async def test_a_rotated_key_stays_good_for_the_overlap(world: World, access: Access) -> None:
    old = await made(access, Scope.SESSIONS, Scope.PROXY, project=OTHER)
    new = await access.rotate_key(requests.RotateKey(by=OWNER, key=old.key.id, overlap_s=100))
    assert (new.key.project, new.key.scopes, new.key.expires_at) == (OTHER, old.key.scopes, "")
    both = [await access.authenticate(one.presented) for one in (old, new)]
    assert {caller.project for caller in both} == {OTHER}
    world.clock.seconds += 100
    await access.authenticate(new.presented)
    with pytest.raises(Unauthenticated, match=f"was rotated: use {new.key.id}"):
        await access.authenticate(old.presented)


async def test_a_key_that_expires_is_rotated_to_one_that_lives_as_long(world: World, access: Access) -> None:
    old = await made(access, lifetime_s=1000)
    world.clock.seconds += 900
    new = await access.rotate_key(requests.RotateKey(by=OWNER, key=old.key.id, overlap_s=5000))
    world.clock.seconds += 900
    await access.authenticate(new.presented)
    with pytest.raises(Unauthenticated):
        await access.authenticate(old.presented)


async def test_a_key_is_rotated_once(access: Access) -> None:
    old = await made(access)
    new = await access.rotate_key(requests.RotateKey(by=OWNER, key=old.key.id))
    with pytest.raises(Conflict, match=f"rotated to {new.key.id}"):
        await access.rotate_key(requests.RotateKey(by=OWNER, key=old.key.id))
    await access.revoke_key(requests.RevokeKey(by=OWNER, key=new.key.id))
    with pytest.raises(Conflict, match="revoked"):
        await access.rotate_key(requests.RotateKey(by=OWNER, key=new.key.id))
    with pytest.raises(InvalidRequest):
        await access.rotate_key(requests.RotateKey(by=OWNER, key=old.key.id, overlap_s=-1))


# Tokens


async def test_a_token_is_good_for_one_session_and_for_a_while(world: World, access: Access) -> None:
    token = await with_token(world, access, lifetime_s=60)
    caller = await access.authenticate(token.presented)
    assert (caller.session, caller.scopes) == (ONE, frozenset({Scope.SESSIONS, Scope.PROXY}))
    assert token.presented.startswith("wbt_")
    world.clock.seconds += 60
    with pytest.raises(Unauthenticated, match=r"token .* has expired"):
        await access.authenticate(token.presented)


@pytest.mark.parametrize("scopes", [{Scope.SESSIONS}, {Scope.SESSIONS, Scope.PROXY}])
async def test_a_token_is_for_raw_calls_only_if_its_key_is(world: World, access: Access, scopes: set[Scope]) -> None:
    await with_token(world, access)
    by = Caller(key=KeyId("k"), scopes=frozenset(scopes))
    token = await access.create_token(requests.CreateToken(by=by, session=ONE))
    assert token.key.scopes == scopes


async def test_a_token_makes_no_tokens_and_no_keys(world: World, access: Access) -> None:
    caller = await access.authenticate((await with_token(world, access)).presented)
    for refused in (
        access.create_token(requests.CreateToken(by=caller, session=ONE)),
        access.create_key(requests.CreateKey(by=caller)),
    ):
        with pytest.raises(Denied):
            await refused


async def test_a_token_needs_a_session_of_the_callers_project(world: World, access: Access) -> None:
    await world.bench().create_session(requests.CreateSession(session=ONE))
    stranger = await as_caller(access, Scope.SESSIONS, project=OTHER)
    for session in (ONE, SessionId("none")):
        with pytest.raises(NotFound):
            await access.create_token(requests.CreateToken(by=stranger, session=session))
    proxy = await as_caller(access, Scope.PROXY)
    with pytest.raises(Denied, match="scope sessions"):
        await access.create_token(requests.CreateToken(by=proxy, session=ONE))
    mine = await as_caller(access, Scope.SESSIONS)
    with pytest.raises(InvalidRequest):
        await access.create_token(requests.CreateToken(by=mine, session=ONE, lifetime_s=0))
    assert (await access.create_token(requests.CreateToken(by=mine, session=ONE))).key.session == ONE


async def with_local_session(world: World) -> None:
    config = SessionConfig(sandbox=SandboxSwitches(enable=False))
    await world.bench().create_session(requests.CreateSession(session=ONE, config=config))


async def test_a_box_of_ones_own_gets_a_token_of_the_session_for_a_while(world: World, access: Access) -> None:
    await with_local_session(world)
    made = await access.create_local_sandbox(requests.CreateLocalSandbox(by=OWNER, session=ONE))
    caller = await access.authenticate(made.token.presented)
    assert (caller.session, caller.project) == (ONE, DEFAULT_PROJECT)
    assert not caller.may(Scope.ADMIN)
    assert made.mount == (await world.bench().configurations.get(ONE)).mount
    world.clock.seconds += 24 * 3600 + 1
    with pytest.raises(Unauthenticated, match="has expired"):
        await access.authenticate(made.token.presented)


@pytest.mark.parametrize("scopes", [{Scope.SESSIONS}, {Scope.SESSIONS, Scope.PROXY}])
async def test_a_box_may_call_services_only_if_who_asked_may(world: World, access: Access, scopes: set[Scope]) -> None:
    await with_local_session(world)
    by = await as_caller(access, *scopes)
    made = await access.create_local_sandbox(requests.CreateLocalSandbox(by=by, session=ONE))
    assert made.token.key.scopes == scopes


async def test_a_session_with_a_sandbox_gets_no_box(world: World, access: Access) -> None:
    await world.bench().create_session(requests.CreateSession(session=ONE))
    with pytest.raises(Conflict, match='"enable": false'):
        await access.create_local_sandbox(requests.CreateLocalSandbox(by=OWNER, session=ONE))


async def test_nobody_gets_a_box_who_may_not_make_tokens(world: World, access: Access) -> None:
    await with_local_session(world)
    token = await access.create_token(requests.CreateToken(by=OWNER, session=ONE))
    for by in (await access.authenticate(token.presented), await as_caller(access, Scope.PROXY)):
        with pytest.raises(Denied):
            await access.create_local_sandbox(requests.CreateLocalSandbox(by=by, session=ONE))
    entries = await access.list_audit(requests.ListAudit(by=OWNER, session=ONE))
    assert [one.outcome for one in entries if one.action == "local_sandbox.create"] == ["denied", "denied"]
    stranger = await as_caller(access, project=OTHER)
    with pytest.raises(NotFound):
        await access.create_local_sandbox(requests.CreateLocalSandbox(by=stranger, session=ONE))
    for seconds in (0, 30 * 86_400 + 1):
        wanted = requests.CreateLocalSandbox(by=OWNER, session=ONE, lifetime_s=seconds)
        with pytest.raises(InvalidRequest, match="lifetime"):
            await access.create_local_sandbox(wanted)


async def test_a_token_goes_with_its_session(world: World, access: Access) -> None:
    token = await with_token(world, access)
    await world.bench().delete_session(requests.DeleteSession(session=ONE))
    await world.bench().create_session(requests.CreateSession(session=ONE))
    with pytest.raises(Unauthenticated):
        await access.authenticate(token.presented)


async def test_a_token_for_a_session_that_is_made_anew_meanwhile_is_not_given_out(
    world: World, access: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.bench().create_session(requests.CreateSession(session=ONE))
    real = world.records.keys.add

    async def add(key: object) -> None:
        await world.bench().delete_session(requests.DeleteSession(session=ONE))
        await world.bench().create_session(requests.CreateSession(session=ONE))
        await real(key)  # type: ignore[arg-type]

    monkeypatch.setattr(world.records.keys, "add", add)
    with pytest.raises(NotFound, match="deleted meanwhile"):
        await access.create_token(requests.CreateToken(by=OWNER, session=ONE))


async def test_who_may_use_sessions_may_revoke_their_tokens_and_a_token_itself(world: World, access: Access) -> None:
    tokens = [await with_token(world, access)]
    tokens += [await access.create_token(requests.CreateToken(by=OWNER, session=ONE)) for _ in range(2)]
    caller = await as_caller(access, Scope.SESSIONS)
    itself = await access.authenticate(tokens[1].presented)
    with pytest.raises(Denied):
        await access.revoke_key(requests.RevokeKey(by=itself, key=tokens[2].key.id))
    for by, token in ((caller, tokens[0]), (itself, tokens[1])):
        await access.revoke_key(requests.RevokeKey(by=by, key=token.key.id))
        with pytest.raises(Unauthenticated):
            await access.authenticate(token.presented)
    with pytest.raises(InvalidRequest, match="make a new one"):
        await access.rotate_key(requests.RotateKey(by=OWNER, key=tokens[2].key.id))


# Who did what


async def test_what_is_done_with_keys_is_noted_and_what_was_refused_as_well(world: World, access: Access) -> None:
    admin = await as_caller(access, Scope.ADMIN)
    new = await access.create_key(requests.CreateKey(by=admin))
    await access.rotate_key(requests.RotateKey(by=admin, key=new.key.id))
    with pytest.raises(WorkbenchError):
        await access.create_token(requests.CreateToken(by=replace(admin, scopes=frozenset()), session=ONE))
    await access.note(admin, "session.create", session=ONE, user="me")
    found = await access.list_audit(requests.ListAudit(by=admin))
    assert [(one.action, one.outcome, one.key) for one in found] == [
        ("session.create", "ok", admin.key),
        ("token.create", "denied", admin.key),
        ("key.rotate", "ok", admin.key),
        ("key.create", "ok", admin.key),
        ("key.create", "ok", None),
    ]
    assert found[0].user == "me"
    assert new.key.id in found[2].detail
    assert not any(new.presented.split("_", 2)[2] in one.detail for one in found)
    older = await access.list_audit(requests.ListAudit(by=admin, before=found[2].at, limit=1))
    assert older == (found[3],)


async def test_what_the_owner_does_in_a_project_is_noted_there(access: Access) -> None:
    await made(access, project=OTHER)
    admin = Caller(project=OTHER)
    assert [one.action for one in await access.list_audit(requests.ListAudit(by=admin))] == ["key.create"]
    assert await access.list_audit(requests.ListAudit(by=OWNER)) == ()
    with pytest.raises(InvalidRequest):
        await access.list_audit(requests.ListAudit(by=admin, limit=0))
