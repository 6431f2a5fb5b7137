"""Open Workbench: a persistent, isolated place where an agent writes and runs code."""

from __future__ import annotations

import typing as _typing

if _typing.TYPE_CHECKING:
    from workbench.client import (
        UNCHANGED,
        AsyncCell,
        AsyncRemoteFile,
        AsyncSession,
        AsyncStream,
        AsyncWorkbench,
        Cell,
        Composio,
        ComposioSession,
        CustomTool,
        IdleOptions,
        ListedFile,
        LocalWorkbenchSession,
        Outcome,
        OutcomeError,
        RemoteFile,
        Result,
        SandboxOptions,
        Session,
        Stream,
        Workbench,
        create_local_workbench_session,
    )
    from workbench.errors import WorkbenchError

__version__ = "0.1.0"
__all__ = [
    "UNCHANGED",
    "AsyncCell",
    "AsyncRemoteFile",
    "AsyncSession",
    "AsyncStream",
    "AsyncWorkbench",
    "Cell",
    "Composio",
    "ComposioSession",
    "CustomTool",
    "IdleOptions",
    "ListedFile",
    "LocalWorkbenchSession",
    "Outcome",
    "OutcomeError",
    "RemoteFile",
    "Result",
    "SandboxOptions",
    "Session",
    "Stream",
    "Workbench",
    "WorkbenchError",
    "__version__",
    "create_local_workbench_session",
]


def __getattr__(name: str) -> object:
    # Only when somebody asks: the host and the commands import this package too, and need no HTTP client.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    home = "workbench.errors" if name == "WorkbenchError" else "workbench.client"
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
