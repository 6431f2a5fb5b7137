"""Files that do not go through messages: links for whoever has them, and what the server fetches itself."""

from __future__ import annotations

import contextlib
import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from tests.mcp.http.talking import client_at, own_settings
from tests.server.running import Running, running

LARGE = b"0123456789abcdef" * 512 * 1024  # 8 MiB: more than any message carries


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing."""


@pytest.fixture(scope="module")
def fetching_server() -> Iterator[Running]:
    """One that may ask this machine."""
    with own_settings(fetch_allow="127.0.0.2/32") as settings, running(settings) as server:
        yield server


@contextlib.contextmanager
def _elsewhere(folder: Path, address: str) -> Iterator[str]:
    """Another server, with the files of a folder."""
    with http.server.ThreadingHTTPServer((address, 0), functools.partial(_Quiet, directory=str(folder))) as other:
        thread = threading.Thread(target=other.serve_forever)
        thread.start()
        try:
            yield f"http://{address}:{other.server_address[1]}"
        finally:
            other.shutdown()
            thread.join()


async def _asked(client: Client, tool: str, session: str, *files: dict[str, Any]) -> dict[str, Any]:
    answer = await client.call_tool(tool, {"session_id": session, "files": list(files)})
    told: dict[str, Any] = answer.structured_content
    return told


async def _session(client: Client) -> str:
    answer = await client.call_tool("create_session", {})
    assert answer.structured_content is not None
    made: str = answer.structured_content["session_id"]
    return made


async def test_a_file_of_any_size_under_mnt_files_is_given_out_by_a_link_without_a_key(
    fetching_server: Running, mode: str
) -> None:
    async with client_at(f"{fetching_server.url}/mcp?tools=sandbox", fetching_server.key, mode) as client:
        session = await _session(client)
        code = (
            "open('/mnt/files/large.bin', 'wb').write(b'0123456789abcdef' * 512 * 1024); open('small', 'w').write('x')"
        )
        await client.call_tool("execute_code", {"session_id": session, "code": code})
        told = await _asked(client, "export_files", session, {"source": "/mnt/files/large.bin"}, {"source": "small"})
        large, small = told["files"]
        assert large["expires_at"] > "2026"
        assert "download_url" not in small
        assert fetching_server.key not in large["download_url"]
        assert httpx2.get(large["download_url"], trust_env=False).content == LARGE
        other = large["download_url"].replace("large.bin", "other.bin")
        assert httpx2.get(other, trust_env=False).status_code == 403


async def test_what_a_url_leads_to_is_fetched_into_mnt_files(
    fetching_server: Running, mode: str, tmp_path: Path
) -> None:
    (tmp_path / "data.csv").write_bytes(LARGE)
    async with client_at(f"{fetching_server.url}/mcp?tools=sandbox", fetching_server.key, mode) as client:
        session = await _session(client)
        with _elsewhere(tmp_path, "127.0.0.2") as url:
            told = await _asked(
                client,
                "import_files",
                session,
                {"source": f"{url}/data.csv"},
                {"source": f"{url}/data.csv", "destination": "/mnt/files/in/"},
                {"source": f"{url}/data.csv", "destination": "/home/user/x"},
                {"source": f"{url}/data.csv", "destination": "/mnt/files/../x"},
                {"source": f"{url}/missing.csv"},
            )
        rows = [(row["success"], row["destination"], row["size"]) for row in told["files"][:2]]
        assert rows == [
            (True, "/mnt/files/data.csv", len(LARGE)),
            (True, "/mnt/files/in/data.csv", len(LARGE)),
        ]
        assert [row["success"] for row in told["files"][2:]] == [False, False, False]
        assert "/mnt/files" in told["files"][2]["error"]
        assert "404" in told["files"][4]["error"]
        code = "import os; sorted(os.path.join(a, c) for a, _, b in os.walk('/mnt/files') for c in b)"
        seen = await client.call_tool("execute_code", {"session_id": session, "code": code})
        assert seen.structured_content is not None
        assert seen.structured_content["result"] == "['/mnt/files/data.csv', '/mnt/files/in/data.csv']"


async def test_an_address_that_only_the_server_reaches_is_refused(
    fetching_server: Running, mode: str, tmp_path: Path
) -> None:
    async with client_at(f"{fetching_server.url}/mcp?tools=sandbox", fetching_server.key, mode) as client:
        session = await _session(client)
        with _elsewhere(tmp_path, "127.0.0.3") as url:
            told = await _asked(client, "import_files", session, {"source": f"{url}/"})
        assert "127.0.0.3" in told["files"][0]["error"]
        assert "WORKBENCH_FETCH_ALLOW" in told["files"][0]["error"]
