"""The Python SDK: a client of the server's REST, sync and async. Sees the shapes of REST, the model and the errors."""

from workbench.client.aio import AsyncKeys, AsyncWorkbench
from workbench.client.aio_session import AsyncSession
from workbench.client.cells import AsyncCell, AsyncStream, Cell, Stream
from workbench.client.session import Session
from workbench.client.sync import Keys, Workbench
from workbench.client.values import UNCHANGED, IdleOptions, OutcomeError, Result, SandboxOptions
from workbench.model.execution import Outcome

__all__ = [
    "UNCHANGED",
    "AsyncCell",
    "AsyncKeys",
    "AsyncSession",
    "AsyncStream",
    "AsyncWorkbench",
    "Cell",
    "IdleOptions",
    "Keys",
    "Outcome",
    "OutcomeError",
    "Result",
    "SandboxOptions",
    "Session",
    "Stream",
    "Workbench",
]
