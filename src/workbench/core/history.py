"""What was run in a session: as pages, and as a notebook (nbformat 4.5) that Jupyter opens."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict
from typing import Any

from workbench.contracts.storage import CellPageRequest, CellStore, SessionStore
from workbench.core import requests
from workbench.core.languages import Languages
from workbench.errors import InvalidRequest
from workbench.model.execution import CellResult, CommandResult, Display, Receipt, Text
from workbench.model.records import CellKind, CellRecord
from workbench.model.runtime import Runtime
from workbench.model.session import Session

_MOST = 1000
# Records carry pictures: few at a time.
_AT_ONCE = 50
_PLAIN = "text/plain"
# As the format has it: what is called anything else is text there.
_JSON_TYPE = re.compile(r"application/json|[a-zA-Z0-9]+/[-a-zA-Z0-9_.+]+\+json")

Json = dict[str, Any]


class History:
    """Of the sessions of one project."""

    def __init__(self, sessions: SessionStore, cells: CellStore, languages: Languages) -> None:
        self._sessions = sessions
        self._cells = cells
        self._languages = languages

    async def list(self, request: requests.ListCells) -> requests.CellPage:
        """One page, as it is written down: nobody is asked about what is pending."""
        if not 1 <= request.limit <= _MOST:
            raise InvalidRequest(f"a page has 1 to {_MOST} cells, not {request.limit}")
        await self._sessions.get(request.session)
        found = await self._cells.list(
            CellPageRequest(
                session=request.session,
                after=request.after,
                limit=request.limit + 1,
                newest_first=request.newest_first,
            )
        )
        shown = found[: request.limit]
        more = len(found) > len(shown)
        return requests.CellPage(cells=shown, next_after=(shown[-1].created_at, shown[-1].id) if more else None)

    async def notebook(self, request: requests.ExportNotebook) -> Json:
        """All of it that is kept, in the order it was accepted."""
        parts = self.notebook_parts(request)
        head = await anext(parts)
        return {**head, "cells": [cell async for cell in parts]}

    async def notebook_parts(self, request: requests.ExportNotebook) -> AsyncIterator[Json]:
        """The same for whoever does not want to hold all of it: first everything but `cells`, then each of them."""
        session = await self._sessions.get(request.session)
        yield {
            "nbformat": 4,
            "nbformat_minor": 5,
            "metadata": {
                **_of_language(self._languages.of(session)),
                "workbench": {"session": session.spec.id, "created_at": session.created_at},
            },
        }
        ids: set[str] = set()
        async for record in self._all(session):
            for cell in _shown(record):
                cell["id"] = _unique(cell["id"], ids)
                yield cell

    async def _all(self, session: Session) -> AsyncIterator[CellRecord]:
        after = None
        while True:
            page = await self._cells.list(CellPageRequest(session=session.spec.id, after=after, limit=_AT_ONCE))
            for record in page:
                yield record
            if len(page) < _AT_ONCE:
                return
            after = (page[-1].created_at, page[-1].id)


def _of_language(runtime: Runtime) -> Json:
    """By which Jupyter chooses a kernel, and colours."""
    return {
        "kernelspec": {"name": runtime.kernelspec, "display_name": runtime.title, "language": runtime.language},
        "language_info": {"name": runtime.language, "file_extension": runtime.file_extension},
    }


def _unique(wanted: str, taken: set[str]) -> str:
    """Ids of cells are the callers' choice, and may look like those that are made here."""
    name, number = wanted[:64], 1
    while name in taken:
        number += 1
        name = f"{wanted[:56]}-{number}"
    taken.add(name)
    return name


def _shown(record: CellRecord) -> Iterator[Json]:
    if record.progress.thought:
        source = record.progress.thought
        yield {"cell_type": "markdown", "id": f"{record.id}-thought", "metadata": {}, "source": source}
    is_cell = record.kind is CellKind.CELL
    count = record.result.receipt.execution_count if is_cell and record.result is not None else 0
    yield {
        "cell_type": "code",
        "id": str(record.id),
        "metadata": {"workbench": _about(record)},
        "execution_count": count or None,
        "source": record.code if is_cell else f"%%bash\n{record.code}",
        "outputs": list(_outputs(record, count or None)),
    }


def _about(record: CellRecord) -> Json:
    """What a notebook has no field for."""
    said = record.progress
    told: Json = {
        "kind": record.kind.value,
        "status": record.status.value,
        "created_at": record.created_at,
        "ended_at": record.ended_at,
        "limit_s": record.limit_s,
        "thought": said.thought,
        "current_step": said.current_step,
        "current_step_metric": said.current_step_metric,
    }
    if record.result is not None:
        told |= {"outcome": record.result.outcome.value, "receipt": _receipt(record.result.receipt)}
    if isinstance(record.result, CommandResult):
        told["exit_code"] = record.result.exit_code
    if record.problem is not None:
        told["problem"] = {"code": record.problem.code, "context": dict(record.problem.context)}
    return {name: value for name, value in told.items() if value not in ("", None)}


def _receipt(receipt: Receipt) -> Json:
    return {
        "epoch": receipt.epoch,
        "state": receipt.state.value,
        "reason": receipt.reason,
        "added": list(receipt.added),
        "removed": list(receipt.removed),
        "rebound": list(receipt.rebound),
        "more_names": receipt.more_names,
        "working_folder": receipt.working_folder,
        "peak_memory_bytes": receipt.peak_memory_bytes,
        "cpu_s": receipt.cpu_s,
        "wall_s": receipt.wall_s,
        "helpers": asdict(receipt.helpers),
        "corrections": list(receipt.corrections),
        "installs": list(receipt.installs),
    }


def _outputs(record: CellRecord, count: int | None) -> Iterator[Json]:
    result = record.result
    if record.problem is not None:
        yield _error(record.problem.code, record.problem.message, f"It never began: {record.problem.message}")
    if result is None:
        return
    for name, text in (("stdout", result.stdout), ("stderr", result.stderr)):
        if text.text:
            yield {"output_type": "stream", "name": name, "text": text.text}
    if isinstance(result, CellResult):
        yield from _rich(result, count)
    if result.explanation:
        yield {"output_type": "stream", "name": "stderr", "text": f"{result.explanation}\n"}
    if isinstance(result, CellResult) and result.error is not None:
        yield _error(result.error.name, result.error.message, result.error.traceback)


def _rich(result: CellResult, count: int | None) -> Iterator[Json]:
    """Displays; the last value has its text elsewhere in the result, and is put together again."""
    values = [one for one in result.displays if one.is_result]
    for display in result.displays:
        if not display.is_result:
            yield {"output_type": "display_data", "data": _bundle(display), "metadata": _metadata(display)}
    for number, value in enumerate(values):
        text = result.results if number == len(values) - 1 else Text()
        yield _value(_plain(text) | _bundle(value), _metadata(value), count)
    if not values and result.results.text:
        yield _value(_plain(result.results), {}, count)


def _plain(text: Text) -> Json:
    return {_PLAIN: text.text} if text.text else {}


def _value(data: Json, metadata: Json, count: int | None) -> Json:
    return {"output_type": "execute_result", "execution_count": count, "data": data, "metadata": metadata}


def _error(name: str, message: str, traceback: str) -> Json:
    return {"output_type": "error", "ename": name, "evalue": message, "traceback": traceback.splitlines()}


def _bundle(display: Display) -> Json:
    return {mime: _decoded(mime, value) for mime, value in display.data.items()}


def _decoded(mime: str, value: str) -> Any:
    """JSON types are kept as text, and are themselves in a notebook."""
    if not _JSON_TYPE.fullmatch(mime):
        return value
    return _parsed(value, otherwise=value)


def _metadata(display: Display) -> Json:
    told = _parsed(display.metadata, otherwise={})
    return told if isinstance(told, dict) else {}


def _parsed(text: str, otherwise: Any) -> Any:
    """A guest's own word, unless it would make the notebook unreadable: not JSON, not a number, not text."""
    try:
        parsed = json.loads(text, parse_constant=_refused)
        json.dumps(parsed, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return otherwise
    return parsed


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")
