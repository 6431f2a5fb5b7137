"""Clients of MCP: where each keeps its servers, and how an entry looks there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from workbench.cli.config_files import Entry
from workbench.errors import InvalidRequest

# A cell may take 180 s, and Codex waits for 60 unless told; a machine that is busy starts us in more than its 10.
_CODEX_WAITS = {"startup_timeout_sec": 30, "tool_timeout_sec": 240}


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A program that the client starts."""

    command: str
    arguments: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """A server at an address."""

    url: str
    key: str = field(repr=False)

    @property
    def headers(self) -> dict[str, str]:
        """What the client says with each request."""
        return {"Authorization": f"Bearer {self.key}"}


Server = Started | Reached


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One program."""

    title: str
    table: str
    file: Callable[[Mapping[str, str], str], Path]
    """from the environment and the platform, as `sys.platform` has it"""
    entry: Callable[[Server], Entry]
    afterwards: str
    """what its user does next"""


def _home(environ: Mapping[str, str]) -> Path:
    home = Path(environ.get("HOME") or Path.home())
    if not home.is_absolute():
        raise InvalidRequest(f"HOME must be an absolute path to find the files of clients, not {str(home)!r}")
    return home


def _applications(environ: Mapping[str, str], platform: str) -> Path:
    """Where programs with windows keep theirs."""
    if platform == "darwin":
        return _home(environ) / "Library/Application Support"
    given = environ.get("XDG_CONFIG_HOME", "")
    return Path(given) if given.startswith("/") else _home(environ) / ".config"


def _claude_desktop_file(environ: Mapping[str, str], platform: str) -> Path:
    return _applications(environ, platform) / "Claude/claude_desktop_config.json"


def _claude_code_file(environ: Mapping[str, str], platform: str) -> Path:
    del platform
    given = environ.get("CLAUDE_CONFIG_DIR")
    return (Path(given) if given else _home(environ)) / ".claude.json"


def _cursor_file(environ: Mapping[str, str], platform: str) -> Path:
    del platform
    return _home(environ) / ".cursor/mcp.json"


def _vscode_file(environ: Mapping[str, str], platform: str) -> Path:
    return _applications(environ, platform) / "Code/User/mcp.json"


def _codex_file(environ: Mapping[str, str], platform: str) -> Path:
    del platform
    given = environ.get("CODEX_HOME")
    return (Path(given) if given else _home(environ) / ".codex") / "config.toml"


def _plain(server: Server) -> Entry:
    if isinstance(server, Reached):
        return {"url": server.url, "headers": server.headers}
    env = {"env": dict(server.env)} if server.env else {}
    return {"command": server.command, "args": list(server.arguments), **env}


def _local_only(server: Server) -> Entry:
    if isinstance(server, Reached):
        raise InvalidRequest(
            "Claude Desktop's file is for programs that it starts; it takes addresses in its own window, under "
            "Settings, Connectors. Leave out --url, or choose another client"
        )
    return _plain(server)


def _typed(server: Server) -> Entry:
    return {"type": "http" if isinstance(server, Reached) else "stdio", **_plain(server)}


def _codex(server: Server) -> Entry:
    if isinstance(server, Reached):
        return {"url": server.url, **_CODEX_WAITS, "http_headers": server.headers}
    plain = _plain(server)
    env = {"env": plain.pop("env")} if "env" in plain else {}
    return {**plain, **_CODEX_WAITS, **env}


CLIENTS: dict[str, Client] = {
    "claude-desktop": Client(
        title="Claude Desktop",
        table="mcpServers",
        file=_claude_desktop_file,
        entry=_local_only,
        afterwards="quit Claude Desktop, not only its window, and start it again",
    ),
    "claude-code": Client(
        title="Claude Code",
        table="mcpServers",
        file=_claude_code_file,
        entry=_typed,
        afterwards="start `claude` anew; /mcp shows it",
    ),
    "cursor": Client(
        title="Cursor",
        table="mcpServers",
        file=_cursor_file,
        entry=_plain,
        afterwards="switch it on in Cursor's settings, under MCP",
    ),
    "vscode": Client(
        title="VS Code",
        table="servers",
        file=_vscode_file,
        entry=_typed,
        afterwards="run `MCP: List Servers` in VS Code and start it",
    ),
    "codex": Client(
        title="Codex",
        table="mcp_servers",
        file=_codex_file,
        entry=_codex,
        afterwards="start `codex` anew; /mcp shows it",
    ),
}
