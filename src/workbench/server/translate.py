"""Values of the core as shapes of REST, and back. Nothing is decided here."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.core import requests
from workbench.model import access, records, session
from workbench.model.configuration import SandboxSwitches, SessionConfig
from workbench.model.connection import AccountId, ConnectedAccount
from workbench.model.ids import CellId, SessionId, new_cell_id, new_session_id
from workbench.model.tier import tier_named
from workbench.wire import rest
from workbench.wire.problems import kept_problem

# A time and an id: whatever looks like it is some place in the order of cells.
_BETWEEN = "~"
_MOMENT = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z"
CURSOR = rf"^{_MOMENT}{_BETWEEN}[a-z0-9][a-z0-9_-]{{0,47}}$"
ACCOUNT_CURSOR = rf"^{_MOMENT}{_BETWEEN}ca_[0-9a-f]{{16}}$"


def create_session(sent: rest.CreateSession) -> requests.CreateSession:
    """The request to the core."""
    sandbox = sent.sandbox
    return requests.CreateSession(
        session=SessionId(sent.id) if sent.id is not None else new_session_id(),
        user=sent.user_id,
        runtime=sent.runtime,
        tier=tier_named(sandbox.sandbox_size),
        env=sandbox.env,
        start_up=sandbox.start_up,
        working_folder=sandbox.working_folder,
        snapshots=sandbox.snapshots,
        idle=idle_limits(sandbox.idle),
        config=SessionConfig(
            sandbox=SandboxSwitches(
                enable=sandbox.enable,
                tool_execution=sandbox.enable_tool_execution,
                corrections=sandbox.corrections,
                packages=sandbox.packages,
            )
        ),
        eager=sent.eager,
    )


def idle_limits(sent: rest.Idle) -> session.IdleLimits:
    """As the core has them."""
    return session.IdleLimits(freeze_after_s=sent.freeze_after_s, end_after_s=sent.end_after_s)


def run_cell(session_id: SessionId, sent: rest.RunCell, idempotency_key: str) -> requests.RunCell:
    """The request to the core."""
    return requests.RunCell(
        session=session_id,
        code=sent.code,
        limit_s=sent.limit_s,
        store_history=sent.store_history,
        cell=new_cell_id(),
        progress=_progress(sent),
        idempotency_key=idempotency_key,
    )


def run_command(session_id: SessionId, sent: rest.RunCommand, idempotency_key: str) -> requests.RunCommand:
    """The request to the core."""
    return requests.RunCommand(
        session=session_id,
        command=sent.command,
        limit_s=sent.limit_s,
        cwd=sent.cwd,
        cell=new_cell_id(),
        progress=_progress(sent),
        idempotency_key=idempotency_key,
    )


def _progress(sent: rest.RunCell | rest.RunCommand) -> records.Progress:
    return records.Progress(
        thought=sent.thought, current_step=sent.current_step, current_step_metric=sent.current_step_metric
    )


def shown_session(told: session.SessionDescription) -> rest.Session:
    """A session as it is now."""
    record, spec = told.session, told.session.spec
    return rest.Session(
        id=spec.id,
        user_id=spec.user,
        project=spec.project,
        runtime=spec.runtime,
        sandbox=rest.SandboxShown(
            sandbox_size=spec.tier.name,  # type: ignore[arg-type]  # one of the four; pydantic looks
            env_names=sorted(spec.env),
            start_up=spec.start_up,
            working_folder=spec.working_folder,
            snapshots=spec.snapshots,
            enable=spec.config.sandbox.enable,
            enable_tool_execution=spec.config.sandbox.tool_execution,
            packages=spec.config.sandbox.packages,
            corrections=spec.config.sandbox.corrections,
            idle=rest.Idle(freeze_after_s=spec.idle.freeze_after_s, end_after_s=spec.idle.end_after_s),
        ),
        state=told.state,
        detail=told.detail,
        epoch=record.epoch,
        execution_count=told.execution_count,
        queue=[rest.QueuedCell.model_validate(one) for one in told.queue],
        memory_bytes=told.memory_bytes,
        start_up_error=told.start_up_error,
        warning=told.warning,
        snapshots=rest.SnapshotState.model_validate(told.snapshots),
        shared_with=list(told.shared_with),
        parent=record.parent,
        context_of=record.context_of,
        progress=rest.Progress.model_validate(told.progress),
        created_at=record.created_at,
        used_at=record.used_at,
    )


def shown_cell(record: records.CellRecord) -> rest.Cell:
    """A cell or command as it is."""
    return rest.Cell(
        id=record.id,
        session_id=record.session,
        kind=record.kind,
        status=record.status,
        code=record.code,
        limit_s=record.limit_s,
        thought=record.progress.thought,
        current_step=record.progress.current_step,
        current_step_metric=record.progress.current_step_metric,
        created_at=record.created_at,
        ended_at=record.ended_at or None,
        result=None if record.result is None else rest.Result.model_validate(record.result),
        error=None if record.problem is None else kept_problem(record.problem),
    )


def shown_branch(told: requests.Branched | requests.CopiedSession) -> rest.Branched:
    """A new session, and what of the memory it has not."""
    if isinstance(told, requests.Branched):
        return rest.Branched(session=shown_session(told.described), not_carried=told.not_carried)
    return rest.Branched(
        session=shown_session(told.described),
        carried=list(told.carried),
        not_carried_names=told.not_carried,
        files_note=told.files_note,
    )


def shown_key(key: access.Key) -> rest.Key:
    """Without its secret."""
    return rest.Key(
        id=key.id,
        project=key.project,
        label=key.label,
        scopes=sorted(key.scopes),
        session_id=key.session,
        created_at=key.created_at,
        expires_at=key.expires_at or None,
        revoked_at=key.revoked_at or None,
        replaced_by=key.replaced_by,
    )


def shown_new_key(made: access.NewKey) -> rest.NewKey:
    """With it, this once."""
    return rest.NewKey(**shown_key(made.key).model_dump(), key=made.presented)


def shown_token(made: access.NewKey) -> rest.Token:
    """With its secret, this once."""
    return rest.Token(
        id=made.key.id, token=made.presented, session_id=made.key.session or "", expires_at=made.key.expires_at
    )


def cell_cursor(after: tuple[str, CellId] | None) -> str | None:
    """Where the next page begins, as `CURSOR` has it."""
    return None if after is None else _BETWEEN.join(after)


def after_cursor(cursor: str | None) -> tuple[str, CellId] | None:
    """Back again, of one that has been compared with `CURSOR`."""
    if cursor is None:
        return None
    at, _, cell = cursor.partition(_BETWEEN)
    return at, CellId(cell)


def account_cursor(found: Sequence[ConnectedAccount], limit: int) -> str | None:
    """Behind the last of a full page, as `ACCOUNT_CURSOR` has it."""
    return None if len(found) < limit else _BETWEEN.join((found[-1].created_at, found[-1].id))


def after_account(cursor: str | None) -> tuple[str, AccountId] | None:
    """Back again, of one that has been compared with `ACCOUNT_CURSOR`."""
    if cursor is None:
        return None
    at, _, account = cursor.partition(_BETWEEN)
    return at, AccountId(account)
