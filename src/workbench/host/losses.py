"""Sandboxes that ended with their host: written by whoever sweeps, told by the next host."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

# Enough to find a session's fate after a bad week; the file must not grow for ever.
_KEPT = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """One sandbox, the host it ended with, and when that was found out."""

    sandbox: str
    host: str
    when: str


def read_losses(path: Path, most: int = _KEPT) -> list[Loss]:
    """The latest, oldest first; a line that was torn by a crash is passed over."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()[-most:]
    except FileNotFoundError:
        return []
    losses = []
    for line in lines:
        try:
            fields = json.loads(line)
            losses.append(Loss(sandbox=str(fields["sandbox"]), host=str(fields["host"]), when=str(fields["when"])))
        except (ValueError, KeyError, TypeError):
            continue
    return losses


def add_losses(path: Path, losses: list[Loss]) -> None:
    """Replace the file in one step, with the latest kept."""
    if not losses:
        return
    kept = [*read_losses(path), *losses][-_KEPT:]
    lines = [json.dumps({"sandbox": loss.sandbox, "host": loss.host, "when": loss.when}) + "\n" for loss in kept]
    partial = path.with_suffix(f".{losses[0].host}")
    partial.write_text("".join(lines), encoding="utf-8")
    partial.rename(path)
