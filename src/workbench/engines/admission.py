"""What every engine asks before it starts a process."""

from __future__ import annotations

from collections.abc import Container

from workbench.errors import Conflict, SandboxUnavailable
from workbench.model.ids import SandboxId
from workbench.model.process import ProcessSpec


def check_start(spec: ProcessSpec, sandbox: SandboxId, gone: str | None, running: Container[str]) -> None:
    """Raise what the contract says, if the process cannot be one, its sandbox is gone, or its id is taken."""
    spec.checked()
    check_alive(sandbox, gone)
    if spec.id in running:
        raise Conflict(f"a process {spec.id} runs already", {"process": spec.id})


def check_alive(sandbox: SandboxId, gone: str | None) -> None:
    """Raise SandboxUnavailable with the reason, if there is one."""
    if gone is not None:
        raise SandboxUnavailable(f"sandbox {sandbox} is gone: {gone}", {"sandbox": sandbox})
