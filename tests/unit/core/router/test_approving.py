"""Approvals: who is asked about what, which answers hold, and that code asks nobody."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.core.router.sources import tool
from tests.unit.core.router.world import World

from workbench.core.router.approving import Answers, Approvals, Considered, policy_for
from workbench.errors import Denied, InvalidRequest
from workbench.model.approval import DefaultPolicy, InputRequired, Permissions, Policy
from workbench.model.configuration import Choice, SessionConfig, ToolChoice
from workbench.model.session import Session
from workbench.model.toolkit import Json, ToolCall, ToolResult

WRITE = replace(tool("APP_WRITE", "app"), tags=("destructiveHint",))
LOOK = replace(tool("APP_LOOK", "app"), tags=("readOnlyHint",))
ASKING = SessionConfig(toolkits=Choice(require_approval=("app",)))


def yes(asked: InputRequired, decision: str = "allow_once") -> Answers:
    content = {"decision": decision}
    return Answers(state=asked.state, responses={"approval": {"action": "accept", "content": content}})


def permissions(default: DefaultPolicy = DefaultPolicy.ALLOW_ALL, **overrides: Policy) -> SessionConfig:
    return SessionConfig(permissions=Permissions(default=default, overrides=overrides))


async def asked(world: World, session: Session, slug: str = "APP_DO", **arguments: object) -> InputRequired:
    told = await world.outcome(session, slug, arguments=arguments)
    assert isinstance(told, InputRequired)
    return told


@pytest.mark.parametrize(
    ("config", "writes", "looks"),
    [
        (SessionConfig(), Policy.ALWAYS_ALLOW, Policy.ALWAYS_ALLOW),
        (permissions(DefaultPolicy.ASK_ALWAYS), Policy.ASK_ALWAYS, Policy.ALWAYS_ALLOW),
        (permissions(DefaultPolicy.ASK_ONCE), Policy.ASK_ONCE, Policy.ALWAYS_ALLOW),
        (ASKING, Policy.ASK_ALWAYS, Policy.ASK_ALWAYS),
        (SessionConfig(tags=Choice(require_approval=("destructiveHint",))), Policy.ASK_ALWAYS, Policy.ALWAYS_ALLOW),
        (
            SessionConfig(tools={"app": ToolChoice(tools=Choice(require_approval=("APP_LOOK",)))}),
            Policy.ALWAYS_ALLOW,
            Policy.ASK_ALWAYS,
        ),
        (
            SessionConfig(tools={"app": ToolChoice(tags=Choice(require_approval=("destructiveHint",)))}),
            Policy.ASK_ALWAYS,
            Policy.ALWAYS_ALLOW,
        ),
        (permissions(DefaultPolicy.ASK_ONCE, APP_WRITE=Policy.ALWAYS_ALLOW), Policy.ALWAYS_ALLOW, Policy.ALWAYS_ALLOW),
        (permissions(APP_LOOK=Policy.ALWAYS_DENY), Policy.ALWAYS_ALLOW, Policy.ALWAYS_DENY),
        (replace(ASKING, permissions=Permissions(overrides={"APP_LOOK": Policy.ALWAYS_ALLOW})), Policy.ASK_ALWAYS,
         Policy.ALWAYS_ALLOW),
        (
            SessionConfig(
                tools={"app": ToolChoice(tools=Choice(require_approval=("APP_WRITE",)))},
                permissions=Permissions(overrides={"APP_WRITE": Policy.ALWAYS_ALLOW}),
            ),
            Policy.ASK_ALWAYS,
            Policy.ALWAYS_ALLOW,
        ),
    ],
)  # fmt: skip
def test_what_is_asked_about_is_what_was_named_and_nothing_that_only_reads(
    config: SessionConfig, writes: Policy, looks: Policy
) -> None:
    assert policy_for(config, WRITE, "") is writes
    assert policy_for(config, LOOK, "") is looks


def test_an_override_for_an_account_is_for_that_account() -> None:
    overrides = {"*:ca_1": Policy.ALWAYS_DENY, "APP_WRITE:ca_1": Policy.ASK_ONCE, "*:__none__": Policy.ASK_ALWAYS}
    config = SessionConfig(permissions=Permissions(overrides=overrides))
    told = [policy_for(config, WRITE, "ca_1"), policy_for(config, LOOK, "ca_1")]
    assert told == [Policy.ASK_ONCE, Policy.ALWAYS_DENY]
    assert [policy_for(config, WRITE, one) for one in ("", "ca_2")] == [Policy.ASK_ALWAYS, Policy.ALWAYS_ALLOW]


@pytest.mark.parametrize(
    "config",
    [
        SessionConfig(toolkits=Choice(require_approval=(" App",))),
        SessionConfig(tools={"APP": ToolChoice(tools=Choice(require_approval=("app_write",)))}),
        SessionConfig(
            tools={"app": ToolChoice(), "App": ToolChoice(tags=Choice(require_approval=("destructiveHint",)))}
        ),
        SessionConfig(permissions=Permissions(overrides={"app_write": Policy.ASK_ALWAYS})),
        SessionConfig(
            permissions=Permissions(overrides={"APP_WRITE": Policy.ALWAYS_ALLOW, "app_write": Policy.ASK_ALWAYS})
        ),
    ],
)
def test_what_is_named_in_capitals_or_in_small_letters_is_asked_about(config: SessionConfig) -> None:
    assert policy_for(config, WRITE, "") is Policy.ASK_ALWAYS


async def test_what_is_denied_for_an_account_is_so_by_its_alias_and_by_naming_none(world: World) -> None:
    first = await world.session()
    account = await world.connect(first, "k-1", "work")
    denied = Permissions(overrides={f"*:{account.id}": Policy.ALWAYS_DENY})
    session = await world.session(SessionConfig(permissions=denied), "two")
    for named in (account.id, "work", ""):
        told = await world.execute(session, "MAIL_READ", account=named)
        assert "never run" in told.error
    assert world.source.calls == []
    other = await world.connect(session, "k-2", "home")
    for named in (other.id, "home", ""):
        assert (await world.execute(session, "MAIL_READ", account=named)).error == ""


async def test_nothing_is_called_until_somebody_said_yes_and_then_once(world: World) -> None:
    session = await world.session(ASKING)
    question = await asked(world, session, a=1)
    assert world.source.calls == []
    assert 'APP_DO: {"a": 1}' in question.message
    told = await world.execute(session, "APP_DO", arguments={"a": 1}, answers=yes(question))
    assert told.data == {"did": {"a": 1}}
    with pytest.raises(InvalidRequest, match="used already"):
        await world.execute(session, "APP_DO", arguments={"a": 1}, answers=yes(question))
    await asked(world, session, a=1)
    assert len(world.source.calls) == 1


async def test_a_no_is_told_as_one(world: World) -> None:
    session = await world.session(ASKING)
    for response in (
        {"action": "decline"},
        {"action": "cancel"},
        {"action": "accept", "content": {"decision": "deny"}},
    ):
        question = await asked(world, session)
        answers = Answers(state=question.state, responses={"approval": response})
        told = await world.execute(session, "APP_DO", answers=answers)
        assert "did not allow it" in told.error
    assert world.source.calls == []


async def test_an_answer_is_for_these_calls_in_this_session_for_a_while(world: World) -> None:
    session, other = await world.session(ASKING), await world.session(ASKING, "two")
    question = await asked(world, session, a=1)
    for arguments, account in (({"a": 2}, ""), ({"a": 1}, "ca_2")):
        with pytest.raises(InvalidRequest, match="not those that were asked about"):
            await world.execute(session, "APP_DO", arguments=arguments, account=account, answers=yes(question))
    with pytest.raises(InvalidRequest, match="not what this session was given"):
        await world.execute(other, "APP_DO", arguments={"a": 1}, answers=yes(question))
    reborn = replace(session, created_at="2031-01-01T00:00:00.000000Z")
    with pytest.raises(InvalidRequest, match="not what this session was given"):
        await world.execute(reborn, "APP_DO", arguments={"a": 1}, answers=yes(question))
    body, _, signature = question.state.partition(".")
    for state in ("", "x", "é.é", body, f"{body}x.{signature}", f"{body}.{signature[:-1]}", "." * 5000):
        answers = Answers(state=state, responses=yes(question).responses)
        with pytest.raises(InvalidRequest, match="not what this session was given"):
            await world.execute(session, "APP_DO", arguments={"a": 1}, answers=answers)
    world.clock.seconds += 601
    with pytest.raises(InvalidRequest, match="too long ago"):
        await world.execute(session, "APP_DO", arguments={"a": 1}, answers=yes(question))
    assert world.source.calls == []


@pytest.mark.parametrize(
    "responses",
    [
        {},
        {"other": {"action": "accept"}},
        {"approval": {"action": "sure"}},
        {"approval": {}},
        {"approval": {"action": "accept", "content": {"decision": "yes"}}},
        {"approval": {"action": "accept", "content": {"decision": ["allow_once"]}}},
    ],
)
async def test_what_is_no_answer_is_named_and_uses_none_up(world: World, responses: dict[str, Json]) -> None:
    session = await world.session(ASKING)
    question = await asked(world, session)
    with pytest.raises(InvalidRequest, match="nothing was run"):
        await world.execute(session, "APP_DO", answers=Answers(state=question.state, responses=responses))
    assert (await world.execute(session, "APP_DO", answers=yes(question))).error == ""


async def test_what_is_asked_once_is_not_asked_again_until_the_session_ends(world: World) -> None:
    session = await world.session(permissions(DefaultPolicy.ASK_ONCE))
    question = await asked(world, session, a=1)
    await world.execute(session, "APP_DO", arguments={"a": 1}, answers=yes(question))
    assert (await world.execute(session, "APP_DO", arguments={"a": 2})).error == ""
    other = await world.session(permissions(DefaultPolicy.ASK_ONCE), "two")
    await asked(world, other, a=2)
    # Another way of calling it counts too.
    call = ToolCall(slug="APP_DO", arguments={"a": 3}, session=session)
    assert (await world.router().run_inside(call)).error == ""


async def test_what_is_asked_always_is_asked_again_whatever_was_said(world: World) -> None:
    session = await world.session(ASKING)
    question = await asked(world, session)
    assert (await world.execute(session, "APP_DO", answers=yes(question, "allow_session"))).error == ""
    await asked(world, session)


async def test_one_question_is_for_all_calls_that_need_it(world: World) -> None:
    session = await world.session(SessionConfig(tags=Choice(require_approval=("destructiveHint",))))
    await world.connect(session)
    calls: list[tuple[str, Json]] = [("MAIL_SEND", {"to": f"{n}@x.test"}) for n in range(49)]
    calls.append(("APP_DO", {"a": 1}))
    question = await world.many(session, *calls)
    assert isinstance(question, InputRequired)
    assert "Run these 49 tools?" in question.message
    assert all(f'"{n}@x.test"' in question.message for n in range(49))
    assert "APP_DO" not in question.message
    assert world.source.calls == []
    told = await world.many(session, *calls, answers=yes(question))
    assert isinstance(told, ToolResult)
    assert told.data["success_count"] == 50
    question = await world.many(session, *calls)
    assert isinstance(question, InputRequired)
    with pytest.raises(InvalidRequest, match="not those that were asked about"):
        await world.many(session, *calls[1:], ("MAIL_SEND", {"to": "eve@x.test"}), answers=yes(question))


async def test_of_many_those_that_are_refused_stop_no_other_and_wrong_ones_are_not_asked_about(world: World) -> None:
    config = permissions(APP_DO=Policy.ALWAYS_DENY, MAIL_SEND=Policy.ASK_ALWAYS)
    session = await world.session(config)
    await world.connect(session)
    calls: list[tuple[str, Json]] = [("APP_DO", {}), ("MAIL_READ", {}), ("MAIL_SEND", {"to": 1}), ("NONE", {})]
    told = await world.many(session, *calls)
    assert isinstance(told, ToolResult)
    errors = [one["error"] for one in told.data["results"]]
    assert "always_deny" in errors[0]
    assert errors[1] is None
    assert "`to` has to be a text" in errors[2]
    assert "no tool 'NONE'" in errors[3]
    # A no to some of them.
    question = await world.many(session, ("MAIL_SEND", {"to": "x"}), ("MAIL_READ", {}))
    assert isinstance(question, InputRequired)
    no = Answers(state=question.state, responses={"approval": {"action": "decline"}})
    told = await world.many(session, ("MAIL_SEND", {"to": "x"}), ("MAIL_READ", {}), answers=no)
    assert isinstance(told, ToolResult)
    assert [one["error"] is None for one in told.data["results"]] == [False, True]


async def test_calls_of_code_wait_and_are_asked_about_together_with_the_next_cell(world: World) -> None:
    session, router = await world.session(ASKING), world.router()
    calls = [ToolCall(slug="APP_DO", arguments={"n": n}, session=session) for n in range(50)]
    for call in calls:
        with pytest.raises(Denied, match="a person has to approve it"):
            await router.run_inside(call)
    question = await world.outcome(session, "COMPOSIO_REMOTE_WORKBENCH", arguments={"code_to_execute": "1"})
    assert isinstance(question, InputRequired)
    assert all(f'APP_DO: {{"n": {n}}}' in question.message for n in range(50))
    assert world.sandbox.calls == []
    told = await world.execute(
        session, "COMPOSIO_REMOTE_WORKBENCH", arguments={"code_to_execute": "1"}, answers=yes(question)
    )
    assert told.error == ""
    assert len(world.sandbox.calls) == 1
    for call in calls:
        assert (await router.run_inside(call)).error == ""
    assert len(world.source.calls) == 50
    # Each once, and these only.
    for call in (calls[0], replace(calls[0], arguments={"n": 99})):
        with pytest.raises(Denied, match="a person has to approve it"):
            await router.run_inside(call)


async def test_a_no_to_code_is_one_and_the_cell_is_run(world: World) -> None:
    session, router = await world.session(ASKING), world.router()
    call = ToolCall(slug="APP_DO", arguments={}, session=session)
    with pytest.raises(Denied):
        await router.run_inside(call)
    question = await world.outcome(session, "COMPOSIO_REMOTE_WORKBENCH")
    assert isinstance(question, InputRequired)
    no = Answers(state=question.state, responses={"approval": {"action": "decline"}})
    assert (await world.execute(session, "COMPOSIO_REMOTE_WORKBENCH", answers=no)).error == ""
    with pytest.raises(Denied):
        await router.run_inside(call)
    assert world.source.calls == []


async def test_so_many_calls_of_code_wait_and_no_more(world: World) -> None:
    session, router = await world.session(ASKING), world.router()
    for number in range(60):
        with pytest.raises(Denied):
            await router.run_inside(ToolCall(slug="APP_DO", arguments={"n": number}, session=session))
    question = await world.outcome(session, "COMPOSIO_REMOTE_WORKBENCH")
    assert isinstance(question, InputRequired)
    assert question.message.count("APP_DO") == 50


async def test_code_with_a_token_approves_nothing(world: World) -> None:
    session = await world.session(ASKING)
    question = await asked(world, session)
    with pytest.raises(Denied, match="approves nothing"):
        await world.execute(session, "APP_DO", answers=yes(question), for_code=True)
    told = await world.execute(session, "APP_DO", for_code=True)
    assert "a person has to approve it" in told.error
    assert world.source.calls == []


async def test_what_was_approved_for_one_account_is_not_done_with_another_that_became_the_usual_one(
    world: World,
) -> None:
    session = await world.session(SessionConfig(toolkits=Choice(require_approval=("mail",))))
    first = await world.connect(session, "k-1")
    question = await asked(world, session, "MAIL_SEND", to="bob")
    assert f"MAIL_SEND as {first.id}:" in question.message
    await world.connect(session, "k-2")
    with pytest.raises(InvalidRequest, match="not those that were asked about"):
        await world.outcome(session, "MAIL_SEND", arguments={"to": "bob"}, answers=yes(question))
    assert world.source.calls == []


async def test_what_was_approved_once_for_one_account_is_so_by_all_its_names_and_for_no_other(world: World) -> None:
    session = await world.session(permissions(DefaultPolicy.ASK_ONCE))
    first = await world.connect(session, "k-1", "work")
    question = await asked(world, session, "MAIL_SEND", to="bob")
    await world.execute(session, "MAIL_SEND", arguments={"to": "bob"}, answers=yes(question))
    for named in (first.id, "work", ""):
        assert not (await world.execute(session, "MAIL_SEND", arguments={"to": "bob"}, account=named)).error
    await world.connect(session, "k-2")
    await asked(world, session, "MAIL_SEND", to="bob")


async def test_raw_calls_that_were_approved_for_one_toolkit_are_so_for_no_other(world: World) -> None:
    kits = [replace(tool("COMPOSIO_PROXY_EXECUTE", slug), tags=("destructiveHint",)) for slug in ("mail", "shop")]
    approvals = Approvals(memory=world.records.tools, clock=world.clock, key=lambda: b"key")
    here = await world.session(permissions(DefaultPolicy.ASK_ONCE))
    calls = [Considered(ToolCall(slug=one.slug, arguments={}, session=here), one) for one in kits]
    question = (await approvals.consider(here, calls[:1], Answers())).asks
    assert question is not None
    assert (await approvals.consider(here, calls[:1], yes(question, "allow_session"))).asks is None
    assert (await approvals.consider(here, calls[:1], Answers())).asks is None
    assert (await approvals.consider(here, calls[1:], Answers())).asks is not None


async def test_a_question_shows_characters_that_nobody_would_see(world: World) -> None:
    session = await world.session(ASKING)
    question = await asked(world, session, to="bob\u202egro.live\u2028x\u200b")
    assert "bob\\u202egro.live\\u2028x\\u200b" in question.message
    told = await world.outcome(session, "APP_DO", account="x\n2. APP_LOOK")
    assert isinstance(told, InputRequired)
    assert len(told.message.splitlines()) == 2


@pytest.mark.parametrize(
    ("config", "policy"),
    [
        (permissions(APP_WRITE=Policy.ALWAYS_DENY), Policy.ALWAYS_DENY),
        (permissions(app_write=Policy.ASK_ONCE), Policy.ASK_ONCE),
        (permissions(APP_WRITE=Policy.ALWAYS_ALLOW), Policy.ALWAYS_ALLOW),
        (permissions(DefaultPolicy.ASK_ALWAYS, APP_WRITE=Policy.ALWAYS_ALLOW), Policy.ASK_ALWAYS),
        (permissions(APP_WRITE=Policy.ALWAYS_DENY, APP_RAW_WRITE=Policy.ALWAYS_ALLOW), Policy.ALWAYS_DENY),
        (SessionConfig(tools={"app": ToolChoice(tools=Choice(require_approval=("APP_WRITE",)))}), Policy.ASK_ALWAYS),
    ],
)
def test_what_is_said_of_a_tool_holds_for_another_that_does_the_same(config: SessionConfig, policy: Policy) -> None:
    other = replace(tool("APP_RAW_WRITE", "app"), tags=("destructiveHint",), acts_as=("APP_WRITE",))
    assert policy_for(config, other, "") is policy
