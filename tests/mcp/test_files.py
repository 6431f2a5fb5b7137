"""Files into a sandbox and out of it: import_files, export_files, and reading what was exported as a resource."""

from __future__ import annotations

import base64
import os
from typing import Any

import mcp_types as types
import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from tests.mcp.conftest import Connect
from tests.mcp.test_sandbox_tools import answer, called, made

from workbench.cli.asking import OWNER
from workbench.mcp.alone import Alone
from workbench.mcp.families import Family
from workbench.mcp.resources import read_resource
from workbench.mcp.tools import sandbox_pace
from workbench.mcp.visit import Visit
from workbench.model.ids import SessionId
from workbench.settings import Settings
from workbench.wiring import open_service


async def _import(client: Client, session: str, *files: dict[str, Any]) -> dict[str, Any]:
    return await answer(client, "import_files", {"session_id": session, "files": list(files)})


async def _export(client: Client, session: str, *files: dict[str, Any]) -> dict[str, Any]:
    return await answer(client, "export_files", {"session_id": session, "files": list(files)})


async def _run(client: Client, session: str, command: str) -> str:
    said = await answer(client, "execute_terminal", {"session_id": session, "command": command})
    text: str = said["stdout"]
    return text


async def test_text_and_base64_arrive_as_they_were_sent(connect: Connect) -> None:
    async with connect(Family.SANDBOX) as client:
        session, data = await made(client), bytes(range(256)) * 500
        said = await _import(
            client,
            session,
            {"file_name": "héllo 'world'.txt", "file_content": "a\n$(b)\n"},
            {
                "file_name": "/mnt/files/new/folder/x.bin",
                "file_content": base64.b64encode(data).decode(),
                "encoding": "base64",
            },
            {"file_name": "empty", "file_content": ""},
        )
        assert said["success"]
        assert said["files"][0] == {
            "source": "héllo 'world'.txt",
            "destination": "/home/user/héllo 'world'.txt",
            "success": True,
            "size": 7,
            "error": None,
        }
        assert [row["size"] for row in said["files"]] == [7, 128_000, 0]
        assert await _run(client, session, "cat h*.txt") == "a\n$(b)\n"
        code = "open('/mnt/files/new/folder/x.bin', 'rb').read() == bytes(range(256)) * 500"
        assert (await answer(client, "execute_code", {"session_id": session, "code": code}))["result"] == "True"
        assert await _run(client, session, "find /home/user /mnt/files -name '*.part'; ls /mnt/files") == "new\n"


async def test_a_file_that_is_replaced_keeps_its_mode_and_is_never_seen_by_half(connect: Connect) -> None:
    async with connect(Family.SANDBOX) as client:
        session = await made(client)
        await _run(client, session, "echo old > run.sh; chmod 755 run.sh; ln run.sh before")
        await _import(client, session, {"file_name": "run.sh", "file_content": "new"})
        # Whoever had the old one open still has all of it: it was renamed over, not written into.
        assert await _run(client, session, "stat -c %a run.sh; cat run.sh; echo; cat before") == "755\nnew\nold\n"


async def test_what_is_exported_can_be_read_as_a_resource(connect: Connect) -> None:
    async with connect(Family.SANDBOX) as client:
        session = await made(client)
        await _run(client, session, "printf 'a,b\\n' > 't b.csv'; head -c 100000 /dev/urandom > blob; sha256sum blob")
        result = await called(
            client,
            "export_files",
            {"session_id": session, "files": [{"source": "t b.csv"}, {"source": "blob"}]},
        )
        rows = (result.structured_content or {})["files"]
        assert rows[0]["uri"] == f"workbench://sessions/{session}/files/home/user/t%20b.csv"
        links = [one for one in result.content if isinstance(one, types.ResourceLink)]
        assert [(one.uri, one.size, one.mime_type) for one in links] == [
            (rows[0]["uri"], 4, "text/csv"),
            (rows[1]["uri"], 100_000, None),
        ]
        (text,) = (await client.read_resource(rows[0]["uri"])).contents
        assert isinstance(text, types.TextResourceContents)
        assert (text.text, text.mime_type) == ("a,b\n", "text/csv")
        (blob,) = (await client.read_resource(rows[1]["uri"])).contents
        assert isinstance(blob, types.BlobResourceContents)
        assert len(base64.b64decode(blob.blob)) == 100_000
        assert (await client.list_resources()).resources == []
        (template,) = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == "workbench://sessions/{session_id}/files{+path}"


async def test_an_export_with_a_destination_is_a_copy_inside(connect: Connect) -> None:
    async with connect(Family.SANDBOX) as client:
        session = await made(client)
        await _run(client, session, "echo kept > a")
        said = await _export(client, session, {"source": "a", "destination": "/mnt/files/out/a"})
        assert said["files"][0]["destination"] == "/mnt/files/out/a"
        assert said["files"][0]["uri"].endswith("/files/mnt/files/out/a")
        assert await _run(client, session, "cat /mnt/files/out/a") == "kept\n"


async def test_a_file_goes_from_one_session_to_another(connect: Connect) -> None:
    async with connect(Family.SANDBOX) as client:
        one, other = await made(client), await made(client)
        await _run(client, one, "echo moved > a.txt")
        uri = (await _export(client, one, {"source": "a.txt"}))["files"][0]["uri"]
        said = await _import(client, other, {"source": uri}, {"source": uri, "destination": "sub/b.txt"})
        assert [row["destination"] for row in said["files"]] == ["/home/user/a.txt", "/home/user/sub/b.txt"]
        assert await _run(client, other, "cat a.txt sub/b.txt") == "moved\nmoved\n"


@pytest.mark.parametrize("source", ["/etc/hostname", "file:///etc/hostname", "../../etc/hostname"])
async def test_a_path_of_the_servers_machine_is_refused(connect: Connect, source: str) -> None:
    async with connect(Family.SANDBOX) as client:
        session = await made(client)
        said = await _import(client, session, {"source": source, "destination": "stolen"})
        assert "reads no paths of its own machine" in said["files"][0]["error"]
        assert await _run(client, session, "ls") == ""


async def test_who_has_one_session_reaches_no_file_of_another(connect: Connect) -> None:
    async with connect(Family.SANDBOX) as client:
        mine, other = await made(client), await made(client)
        await _run(client, other, "echo secret > a")
        uri = (await _export(client, other, {"source": "a"}))["files"][0]["uri"]
    async with connect(Family.SANDBOX, own_session=mine) as client:
        said = await _import(client, mine, {"source": uri})
        assert "no session" in said["files"][0]["error"]
        with pytest.raises(MCPError, match="no session"):
            await client.read_resource(uri)
        assert "no file" in (await _export(client, other, {"source": "a"}))["files"][0]["error"]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("missing", "no file /home/user/missing in session"),
        ("folder", "/home/user/folder is a folder"),
        ("pipe", "no ordinary file (fifo)"),
        ("/dev/zero", "no ordinary file (character special file)"),
        ("a\0b", "NUL"),
        ("x/" * 3000, "at most 4095 bytes"),
        ("", "empty"),
    ],
)
async def test_what_cannot_be_exported_says_why_and_the_next_step_looks_there(
    connect: Connect, source: str, words: str
) -> None:
    async with connect(Family.SANDBOX) as client:
        session = await made(client)
        await _run(client, session, "mkdir folder; mkfifo pipe; echo 1 > good")
        said = await _export(client, session, {"source": source}, {"source": "good"})
        assert words in said["files"][0]["error"]
        assert said["files"][1]["success"]
        assert said["error"].startswith("1 of 2 files failed: ")
        assert said["next"]["tool"] == "execute_terminal"
        looked = (await answer(client, said["next"]["tool"], said["next"]["arguments"]))["stdout"]
        assert ("zero" if source == "/dev/zero" else "good") in looked


async def test_what_cannot_be_imported_says_why(connect: Connect) -> None:
    async with connect(Family.SANDBOX) as client:
        session = await made(client)
        said = await _import(
            client,
            session,
            {"file_name": "/etc/x", "file_content": ""},
            {"file_name": "a/", "file_content": ""},
            {"file_name": "b", "file_content": "%%%", "encoding": "base64"},
            {"file_name": "c"},
            {"file_name": "d", "source": "e"},
            {"source": f"workbench://sessions/{session}/files/home/user/nothing"},
            {"source": "workbench://sessions/nobody/files/home/user/nothing"},
            {"file_name": "f", "file_content": "x" * (8 * 1024 * 1024 + 1)},
            {"file_name": "last", "file_content": "1"},
        )
        errors = [row["error"] or "" for row in said["files"]]
        for error, words in zip(
            errors,
            [
                "read-only",
                "is a folder",
                "not base64",
                "is missing",
                "either",
                "no file",
                "no session",
                "8,388,608",
                "",
            ],
            strict=True,
        ):
            assert words in error
        assert said["files"][-1]["success"]


async def test_a_destination_is_where_a_content_goes_too_and_a_source_has_no_content(connect: Connect) -> None:
    async with connect(Family.SANDBOX) as client:
        session = await made(client)
        uri = f"workbench://sessions/{session}/files/home/user/sub/b.txt"
        said = await _import(
            client,
            session,
            {"file_name": "a.txt", "file_content": "1", "destination": "sub/b.txt", "source": None},
            {"file_name": "in/c.txt", "file_content": "2", "destination": "/mnt/files/new/"},
            {"source": uri, "destination": "copies/", "file_content": None},
            {"source": uri, "file_content": "3"},
        )
        assert [row["destination"] for row in said["files"][:3]] == [
            "/home/user/sub/b.txt",
            "/mnt/files/new/c.txt",
            "/home/user/copies/b.txt",
        ]
        assert "leave one of them out" in said["files"][3]["error"]
        assert await _run(client, session, "cat sub/b.txt /mnt/files/new/c.txt copies/b.txt; ls") == "121copies\nsub\n"


@pytest.mark.parametrize("files", [None, [], [{"nonsense": 1}], "a", [{"file_name": 7}]])
async def test_after_arguments_that_cannot_be_used_the_next_step_writes_nothing(connect: Connect, files: Any) -> None:
    async with connect(Family.SANDBOX) as client:
        session = await made(client)
        given = {"session_id": session, **({} if files is None else {"files": files})}
        said = await answer(client, "import_files", given)
        assert said["next"]["tool"] == "execute_terminal"
        assert "`next` shows what is there" in said["hint"]
        assert (await answer(client, said["next"]["tool"], said["next"]["arguments"]))["success"]
        assert await _run(client, session, "ls -A ~ /mnt/files") == "/home/user:\n\n/mnt/files:\n"


async def test_names_that_failed_are_told_back_in_short(connect: Connect) -> None:
    async with connect(Family.SANDBOX) as client:
        session, long = await made(client), "x" * 100_000
        said = await _import(client, session, {"file_name": long, "file_content": "1", "destination": f"{long}/"})
        assert len(str(said["files"])) < 1000
        said = await _export(client, session, {"source": long, "destination": long})
        assert len(str(said["files"])) < 1000


async def test_a_call_has_a_time_for_all_its_files_and_tells_how_far_it_is(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[float, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        assert total == 120
        seen.append((progress, message))

    async with connect(Family.SANDBOX, mode="legacy") as client:
        session = await made(client)
        files = [{"file_name": str(number), "file_content": "x" * 500_000} for number in range(3)]
        given = {"session_id": session, "files": files}
        told = await client.call_tool("import_files", given, progress_callback=on_progress)
        assert (told.structured_content or {})["success"]
        assert {message for _, message in seen} == {f"file {number + 1} of 3: {number}" for number in range(3)}
        assert [progress for progress, _ in seen] == sorted({progress for progress, _ in seen})
        monkeypatch.setattr(sandbox_pace, "_MOST_S", 0.1)
        given = {"session_id": session, "files": [{"file_name": "late", "file_content": "x" * 8_000_000}, *files]}
        said = await answer(client, "import_files", given)
        assert said["files"][0]["error"].startswith("called off: ")
        assert said["files"][1]["error"].startswith("not begun: ")
        assert await _run(client, session, "ls -A") == "0\n1\n2\n"


async def test_a_file_that_is_too_large_for_an_answer_is_refused_with_what_to_do(
    connect: Connect, settings: Settings
) -> None:
    async with connect(Family.SANDBOX) as client:
        session = await made(client)
        await _run(client, session, "head -c 700000 /dev/urandom > blob; head -c 600000 /dev/urandom > small")
    async with open_service(settings, os.environ) as service:
        visit = Visit(
            bench=service.workbench(),
            around=Alone(service.access, OWNER),
            default_session=SessionId("nobody"),
            most_answer_bytes=900_000,
        )
        uri = f"workbench://sessions/{session}/files/home/user/"
        with pytest.raises(MCPError, match=r"700,000 bytes.*at most 900,000 here: compress it, or split it"):
            await read_resource(visit, f"{uri}blob", "2026-07-28")
        (small,) = (await read_resource(visit, f"{uri}small", "2026-07-28")).contents
        assert isinstance(small, types.BlobResourceContents)


async def test_a_full_disk_is_told_and_nothing_is_left_of_the_file(connect: Connect) -> None:
    async with connect(Family.SANDBOX) as client:
        session = await made(client)
        await _run(client, session, "head -c 100G /dev/zero > /tmp/fill 2>/dev/null; truncate -s -50K /tmp/fill")
        said = await _import(client, session, {"file_name": "/tmp/big", "file_content": "x" * 300_000})
        assert "no room" in said["files"][0]["error"]
        assert said["next"]["tool"] == "execute_terminal"
        assert await _run(client, session, "ls -A /tmp") == "fill\n"


async def test_a_resource_that_is_not_there_is_the_protocols_error(connect: Connect) -> None:
    for mode, code in (("auto", types.INVALID_PARAMS), ("legacy", -32002)):
        async with connect(Family.SANDBOX, mode=mode) as client:
            session = await made(client)
            uris = (
                f"workbench://sessions/{session}/files/home/user/nothing",
                "workbench://sessions/nobody/files/home/user/nothing",
                "workbench://sessions/../files/etc/passwd",
            )
            for uri in uris:
                with pytest.raises(MCPError) as refused:
                    await client.read_resource(uri)
                assert refused.value.error.code == code
                assert refused.value.error.data == {"uri": uri}
            for uri in ("file:///etc/passwd", f"workbench://sessions/{session}/files/home/user"):
                with pytest.raises(MCPError) as refused:
                    await client.read_resource(uri)
                assert refused.value.error.code == types.INVALID_PARAMS


async def test_files_are_not_in_the_history_of_cells_and_need_no_kernel(connect: Connect) -> None:
    async with connect(Family.SANDBOX) as client:
        session, data = await made(client), os.urandom(200_000)
        # A kernel that is busy is in nobody's way.
        await _run(client, session, "true")
        content = base64.b64encode(data).decode()
        await _import(client, session, {"file_name": "a", "file_content": content, "encoding": "base64"})
        uri = (await _export(client, session, {"source": "a"}))["files"][0]["uri"]
        (blob,) = (await client.read_resource(uri)).contents
        assert isinstance(blob, types.BlobResourceContents)
        assert base64.b64decode(blob.blob) == data
        assert await _run(client, session, "ls -A /mnt/files; ls -A") == "a\n"
