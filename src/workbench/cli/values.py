"""Results and sessions as JSON, for scripts."""

from __future__ import annotations

import dataclasses
import json

import click

from workbench.model.execution import CellResult, CommandResult, Text
from workbench.model.records import CellRecord
from workbench.model.session import SessionDescription

JsonObject = dict[str, object]


def print_json(value: object) -> None:
    """One value on stdout."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def cell_json(result: CellResult, session: str | None) -> JsonObject:
    """A cell's result; `session` is None for one that did not stay."""
    return {
        "session": session,
        "cell": result.cell,
        "outcome": result.outcome.value,
        **_text("results", result.results),
        **_text("stdout", result.stdout),
        **_text("stderr", result.stderr),
        "error": dataclasses.asdict(result.error) if result.error is not None else None,
        "explanation": result.explanation,
        "displays": [dataclasses.asdict(one) for one in result.displays],
        "displays_left_out": result.displays_left_out,
        "displays_file_path": result.displays_file_path,
        "displays_note": result.displays_note,
        "limits": [limit.value for limit in result.limits],
        "corrections": [dataclasses.asdict(one) for one in result.corrections],
        "corrections_left_out": result.corrections_left_out,
        "receipt": dataclasses.asdict(result.receipt),
    }


def command_json(result: CommandResult, session: str | None) -> JsonObject:
    """A command's result."""
    return {
        "session": session,
        "command": result.command,
        "outcome": result.outcome.value,
        "exit_code": result.exit_code,
        **_text("stdout", result.stdout),
        **_text("stderr", result.stderr),
        "stdout_lines": result.stdout.lines,
        "stderr_lines": result.stderr.lines,
        "explanation": result.explanation,
        "limits": [limit.value for limit in result.limits],
        "corrections": [dataclasses.asdict(one) for one in result.corrections],
        "corrections_left_out": result.corrections_left_out,
        "receipt": dataclasses.asdict(result.receipt),
    }


def _text(name: str, text: Text) -> JsonObject:
    return {name: text.text, f"{name}_file_path": text.file_path, f"{name}_note": text.note}


def session_json(described: SessionDescription) -> JsonObject:
    """A session. Of its variables only the names: values may be credentials, and screens are shared."""
    session = described.session
    return {
        "session": session.spec.id,
        "project": session.spec.project,
        "user": session.spec.user,
        "runtime": session.spec.runtime,
        "state": described.state,
        "detail": described.detail,
        "tier": session.spec.tier.name,
        "epoch": session.epoch,
        "execution_count": described.execution_count,
        "queue": [dataclasses.asdict(one) for one in described.queue],
        "memory_bytes": described.memory_bytes,
        "progress": dataclasses.asdict(described.progress),
        "idle": dataclasses.asdict(session.spec.idle),
        "working_folder": session.spec.working_folder,
        "start_up": session.spec.start_up,
        "start_up_error": described.start_up_error,
        "env": sorted(session.spec.env),
        "sandbox": session.sandbox if session.begun else None,
        "parent": session.parent,
        "context_of": session.context_of,
        "principal": session.principal,
        "mount": session.mount,
        "shared_with": list(described.shared_with),
        "snapshots": {"on": session.spec.snapshots, **dataclasses.asdict(described.snapshots)},
        "sandbox_enabled": session.spec.config.sandbox.enable,
        "tool_execution": session.spec.config.sandbox.tool_execution,
        "packages": session.spec.config.sandbox.packages,
        "corrections": session.spec.config.sandbox.corrections,
        "created_at": session.created_at,
        "used_at": session.used_at,
        "warning": described.warning,
    }


def record_json(record: CellRecord) -> JsonObject:
    """A cell or command, with its end as `exec` and `bash` have it."""
    result = record.result
    ended: JsonObject | None = None
    if isinstance(result, CellResult):
        ended = cell_json(result, record.session)
    elif result is not None:
        ended = command_json(result, record.session)
    return {
        "session": record.session,
        "cell": record.id,
        "kind": record.kind.value,
        "status": record.status.value,
        "code": record.code,
        "limit_s": record.limit_s,
        **dataclasses.asdict(record.progress),
        "created_at": record.created_at,
        "ended_at": record.ended_at,
        "result": ended,
        "error": dataclasses.asdict(record.problem) if record.problem is not None else None,
    }
