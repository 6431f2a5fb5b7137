"""The Python SDK: a client of the server's REST, sync and async. Sees the shapes of REST, the model and the errors."""

from workbench.client.aio import AsyncKeys, AsyncWorkbench
from workbench.client.aio_files import AsyncFiles, AsyncRemoteFile
from workbench.client.aio_session import AsyncContexts, AsyncSession
from workbench.client.aio_toolkits import AsyncAuthConfigs, AsyncConnections, AsyncToolkits
from workbench.client.cells import AsyncCell, AsyncStream, Cell, Stream
from workbench.client.composio import Composio, ComposioSession, CustomTool
from workbench.client.displays import Axis, Chart, Column, Display, Series, Table
from workbench.client.files import Files, RemoteFile
from workbench.client.local_workbench import create_local_workbench_session
from workbench.client.session import Contexts, Session
from workbench.client.sync import Keys, Workbench
from workbench.client.toolkits import AuthConfigs, Connections, Toolkits
from workbench.client.values import (
    UNCHANGED,
    DeletedFiles,
    FilePage,
    IdleOptions,
    ListedFile,
    LocalWorkbenchSession,
    MountUsage,
    OutcomeError,
    Result,
    SandboxOptions,
)
from workbench.model.execution import Outcome

__all__ = [
    "UNCHANGED",
    "AsyncAuthConfigs",
    "AsyncCell",
    "AsyncConnections",
    "AsyncContexts",
    "AsyncFiles",
    "AsyncKeys",
    "AsyncRemoteFile",
    "AsyncSession",
    "AsyncStream",
    "AsyncToolkits",
    "AsyncWorkbench",
    "AuthConfigs",
    "Axis",
    "Cell",
    "Chart",
    "Column",
    "Composio",
    "ComposioSession",
    "Connections",
    "Contexts",
    "CustomTool",
    "DeletedFiles",
    "Display",
    "FilePage",
    "Files",
    "IdleOptions",
    "Keys",
    "ListedFile",
    "LocalWorkbenchSession",
    "MountUsage",
    "Outcome",
    "OutcomeError",
    "RemoteFile",
    "Result",
    "SandboxOptions",
    "Series",
    "Session",
    "Stream",
    "Table",
    "Toolkits",
    "Workbench",
    "create_local_workbench_session",
]
