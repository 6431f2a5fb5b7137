"""A client of the sessions API of Composio's SDKs, which this server speaks beside its own REST."""

from workbench.client.composio.client import Composio, ComposioSessions
from workbench.client.composio.connections import ConnectionRequest
from workbench.client.composio.files import RemoteFile, SessionFiles
from workbench.client.composio.session import ComposioSession
from workbench.client.composio.values import CustomTool, ExecuteResponse

__all__ = [
    "Composio",
    "ComposioSession",
    "ComposioSessions",
    "ConnectionRequest",
    "CustomTool",
    "ExecuteResponse",
    "RemoteFile",
    "SessionFiles",
]
