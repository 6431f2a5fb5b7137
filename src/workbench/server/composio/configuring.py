"""Configurations as the sessions API has them: what was sent becomes a change, and what there is an answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from workbench.model.approval import DefaultPolicy, Permissions, Policy
from workbench.model.configuration import (
    Choice,
    ManageConnections,
    MultiAccount,
    SandboxSwitches,
    SessionConfig,
    ToolChoice,
)
from workbench.model.tier import STANDARD, Tier, tier_named
from workbench.wire import composio as wire
from workbench.wire.composio_custom import CreateSession

T = TypeVar("T")
Sent = CreateSession | wire.ChangeSession


def changed(config: SessionConfig, sent: Sent) -> SessionConfig:
    """What becomes of it: what was not sent stays, and null is what a new session has.

    A new session is a change of the usual one, so both are read by the same rules.
    """
    said = sent.model_fields_set
    if "toolkits" in said:
        config = replace(config, toolkits=_choice(sent.toolkits))
    if "tools" in said:
        config = replace(config, tools={kit: _tools(one) for kit, one in (sent.tools or {}).items()})
    if "tags" in said:
        config = replace(config, tags=_hints(sent.tags))
    if "auth_configs" in said:
        config = replace(config, auth_configs=dict(sent.auth_configs or {}))
    if "connected_accounts" in said:
        accounts = {kit: tuple(ids) for kit, ids in (sent.connected_accounts or {}).items()}
        config = replace(config, connected_accounts=accounts)
    if "preload" in said:
        preload = sent.preload.tools if sent.preload else []
        config = replace(config, preload_all=preload == "all", preload=() if preload == "all" else tuple(preload))
    return _switched(_experiments(config, sent), sent)


def wanted_tier(sent: Sent) -> Tier | None:
    """The size that it asks for; None if it says nothing of it."""
    if not sent.says_sandbox:
        return None
    sandbox = sent.sandbox_sent
    if sandbox is None:
        return STANDARD
    if "sandbox_size" not in sandbox.model_fields_set:
        return None
    return STANDARD if sandbox.sandbox_size is None else tier_named(sandbox.sandbox_size)


def _switched(config: SessionConfig, sent: Sent) -> SessionConfig:
    """Blocks of switches, each of which stays as it is unless it was sent."""
    said = sent.model_fields_set
    if "manage_connections" in said:
        config = replace(config, manage_connections=_connections(config.manage_connections, sent.manage_connections))
    if sent.says_sandbox:
        config = replace(config, sandbox=_sandbox(config.sandbox, sent.sandbox_sent))
    if "proxy_execute" in said:
        config = replace(config, proxy_execute=sent.proxy_execute.enable if sent.proxy_execute else None)
    if "multi_account" in said:
        config = replace(config, multi_account=_accounts(config.multi_account, sent.multi_account))
    if "search" in said:
        config = replace(config, search=_or_usual(sent.search.enable if sent.search else None, usual=True))
    if "execute" in said:
        several = sent.execute.enable_multi_execute if sent.execute else None
        config = replace(config, multi_execute=_or_usual(several, usual=True))
    return config


def _experiments(config: SessionConfig, sent: Sent) -> SessionConfig:
    if "experimental" not in sent.model_fields_set:
        return config
    told = sent.experimental
    if told is None:
        return replace(config, timezone="", submit_feedback=False, permissions=Permissions(), allow_unasked=False)
    if "assistive_prompt_config" in told.model_fields_set:
        prompt = told.assistive_prompt_config
        config = replace(config, timezone=(prompt.user_timezone if prompt else None) or "")
    if "submit_feedback" in told.model_fields_set:
        feedback = told.submit_feedback
        config = replace(config, submit_feedback=bool(feedback and feedback.enable))
    if "permissions" in told.model_fields_set:
        config = replace(config, permissions=_permissions(told.permissions))
    if "no_elicitation_support_fallback" in told.model_fields_set:
        config = replace(config, allow_unasked=told.no_elicitation_support_fallback == "allow")
    return config


def _permissions(sent: wire.Permissions | None) -> Permissions:
    if sent is None:
        return Permissions()
    overrides = {name: Policy(policy) for name, policy in (sent.overrides or {}).items()}
    return Permissions(default=DefaultPolicy(sent.default), overrides=overrides)


def _or_usual(given: T | None, usual: T) -> T:
    return usual if given is None else given


def _connections(now: ManageConnections, sent: wire.ManagingConnections | None) -> ManageConnections:
    if sent is None:
        return ManageConnections()
    said = sent.model_fields_set
    if "enable" in said:
        now = replace(now, enable=_or_usual(sent.enable, usual=True))
    if "callback_url" in said:
        now = replace(now, callback_url=sent.callback_url or "")
    if "enable_wait_for_connections" in said:
        now = replace(now, wait_for_connections=bool(sent.enable_wait_for_connections))
    if "enable_connection_removal" in said:
        now = replace(now, connection_removal=_or_usual(sent.enable_connection_removal, usual=True))
    return now


def _sandbox(now: SandboxSwitches, sent: wire.Sandbox | None) -> SandboxSwitches:
    if sent is None:
        # What this API has no word for is not taken back by it.
        return SandboxSwitches(packages=now.packages, corrections=now.corrections)
    said = sent.model_fields_set
    if "enable" in said:
        now = replace(now, enable=_or_usual(sent.enable, usual=True))
    if "enable_proxy_execution" in said:
        now = replace(now, proxy_execution=_or_usual(sent.enable_proxy_execution, usual=True))
    if "enable_tool_execution" in said:
        now = replace(now, tool_execution=_or_usual(sent.enable_tool_execution, usual=True))
    if "auto_offload_threshold" in said:
        threshold = sent.auto_offload_threshold
        now = replace(now, auto_offload_threshold=None if threshold is None else math.ceil(threshold))
    return now


def _accounts(now: MultiAccount | None, sent: wire.ManyAccounts | None) -> MultiAccount | None:
    if sent is None:
        return None
    now, said = now or MultiAccount(), sent.model_fields_set
    if "enable" in said:
        now = replace(now, enable=bool(sent.enable))
    if "max_accounts_per_toolkit" in said:
        now = replace(now, max_accounts_per_toolkit=sent.max_accounts_per_toolkit)
    if "require_explicit_selection" in said:
        now = replace(now, require_explicit_selection=sent.require_explicit_selection)
    return now


def _choice(sent: wire.Choosing | wire.ChoosingHints | None) -> Choice | None:
    if sent is None:
        return None
    return Choice(
        enable=_frozen(sent.enable), disable=_frozen(sent.disable), require_approval=_frozen(sent.require_approval)
    )


def _hints(sent: list[wire.Hint] | wire.ChoosingHints | None) -> Choice | None:
    return Choice(enable=tuple(sent)) if isinstance(sent, list) else _choice(sent)


def _tools(sent: wire.ChoosingTools) -> ToolChoice:
    return ToolChoice(tools=_choice(sent) or Choice(), tags=_hints(sent.tags))


def _frozen(names: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)


def shown_config(user: str, tier: str, config: SessionConfig) -> wire.Config:
    """As it is answered, in names that differ from those that were sent."""
    connections, sandbox, accounts = config.manage_connections, config.sandbox, config.multi_account
    return wire.Config(
        user_id=user,
        toolkits=_picked(config.toolkits),
        tools={kit: _picked_tools(one) for kit, one in config.tools.items()} or None,
        tags=_picked(config.tags),
        auth_configs=config.auth_configs or None,
        connected_accounts={kit: list(ids) for kit, ids in config.connected_accounts.items()} or None,
        manage_connections=wire.ConnectionsManaged(
            enabled=connections.enable,
            callback_url=connections.callback_url or None,
            enable_wait_for_connections=connections.wait_for_connections,
            enable_connection_removal=connections.connection_removal,
        ),
        workbench=wire.SandboxShown(
            enable=sandbox.enable,
            proxy_execution_enabled=config.proxies,
            tool_execution_enabled=sandbox.tool_execution,
            auto_offload_threshold=sandbox.auto_offload_threshold,
            sandbox_size=tier,  # type: ignore[arg-type]  # one of the four; pydantic looks
        ),
        proxy_execute=None if config.proxy_execute is None else wire.Enabled(enable=config.proxy_execute),
        multi_account=None if accounts is None else wire.AccountsShown.model_validate(accounts),
        preload=wire.Preloaded(tools="all" if config.preload_all else list(config.preload)),
        search=wire.Enabled(enable=config.search),
        execute=wire.MultiExecute(enable_multi_execute=config.multi_execute),
    )


def _picked(choice: Choice | None) -> wire.Picked | None:
    if choice is None:
        return None
    return wire.Picked(
        enabled=_listed(choice.enable),
        disabled=_listed(choice.disable),
        require_approval=_listed(choice.require_approval),
    )


def _picked_tools(choice: ToolChoice) -> wire.PickedTools:
    return wire.PickedTools(
        enabled=_listed(choice.tools.enable),
        disabled=_listed(choice.tools.disable),
        require_approval=_listed(choice.tools.require_approval),
        tags=_picked(choice.tags),
    )


def _listed(names: tuple[str, ...] | None) -> list[str] | None:
    return None if names is None else list(names)
