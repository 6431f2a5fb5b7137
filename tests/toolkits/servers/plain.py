"""An MCP server by the protocol's own library, with tools that do what tests want. Also by HTTP, with a key.

python plain.py            standard input and output
python plain.py PORT KEY   http://127.0.0.1:PORT/mcp, for who sends `Authorization: Bearer KEY`
"""

from __future__ import annotations

import base64
import os
import sys
import time
from pathlib import Path
from typing import Any

import mcp_types
import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from starlette.responses import JSONResponse, RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

server = MCPServer("plain")
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n pixel").decode()


@server.tool(annotations=mcp_types.ToolAnnotations(read_only_hint=True, open_world_hint=False))
def add(a: int, b: int) -> int:
    """The sum of two numbers."""
    return a + b


@server.tool()
def variables() -> dict[str, str]:
    """The whole environment."""
    return dict(os.environ)


@server.tool()
def fails(secret: str) -> str:
    """Never works."""
    raise ToolError(f"it failed, and says {secret}")


@server.tool()
def hangs(mark: str) -> str:
    """Takes for ever."""
    Path(mark).write_text(str(os.getpid()), encoding="utf-8")
    time.sleep(600)
    return "late"


@server.tool()
def ends() -> str:
    """Ends the server."""
    print("last words of it", file=sys.stderr, flush=True)
    os._exit(3)


@server.tool()
def large(size: int) -> str:
    """So many characters."""
    return "x" * size


@server.tool(structured_output=False)
def pictures() -> list[Any]:
    """Two pictures and a word."""
    picture = mcp_types.ImageContent(type="image", data=PIXEL, mime_type="image/png")
    return ["two of them", picture, picture]


class OnlyWithKey:
    """Refuses who has no key; `/away` redirects to another server."""

    def __init__(self, app: ASGIApp, key: str, seen: Path) -> None:
        self._app = app
        self._key = key
        self._seen = seen

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        with self._seen.open("a", encoding="utf-8") as file:
            file.write(f"{scope['path']} {headers.get('authorization', '-')}\n")
        if scope["path"].startswith("/away/"):
            await RedirectResponse(f"http://127.0.0.1:{scope['path'].split('/')[2]}/mcp")(scope, receive, send)
        elif headers.get("authorization") != f"Bearer {self._key}":
            await JSONResponse({"error": "no key"}, 401)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        server.run("stdio")
    else:
        uvicorn.run(
            OnlyWithKey(server.streamable_http_app(), sys.argv[2], Path(sys.argv[3])),
            host="127.0.0.1",
            port=int(sys.argv[1]),
            log_level="error",
        )
