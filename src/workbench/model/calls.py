"""Calls that code inside a sandbox makes to the workbench: who asks, and what is answered."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.model.execution import Correction
from workbench.model.ids import CallId, CellId, KernelId, SandboxId

MAX_CALL_BYTES = 8 * 1024 * 1024
"""of a call, and of its answer: what is larger goes by a file of the mount"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks, as the host knows it; never what the guest says of itself."""

    sandbox: SandboxId
    kernel: KernelId | None = None
    """whose code it is; None for a process that left its kernel or command behind"""
    cell: CellId | None = None
    """the cell or command that ran when it was asked"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestCall:
    """One call, on its way to who answers it."""

    id: CallId
    caller: Caller
    body: bytes
    """JSON, or whatever the guest sent"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAnswer:
    """What the guest gets, and what it cost."""

    body: bytes
    """JSON: `result`, `error` and `code`"""
    failed: bool = False
    prompt_tokens: int = 0
    completion_tokens: int = 0
    corrections: tuple[Correction, ...] = ()
    """what the cell's result is to tell of it"""
