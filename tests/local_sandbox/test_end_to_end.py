"""All helpers in a box of one's own against a real server, with the model and the search that it has."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path

import pytest
from reportlab.pdfgen import canvas
from tests.helpers.test_end_to_end import fetched
from tests.local_sandbox.boxes import Box, box_in
from tests.restart.server import Server
from tests.services.running import Running

from workbench import (
    AsyncWorkbench,
    Composio,
    LocalWorkbenchSession,
    Session,
    Workbench,
    create_local_workbench_session,
)
from workbench.errors import Conflict, InvalidRequest, NotFound
from workbench.local_sandbox import HELPER_FILE, helper_source


def paper(path: Path, words: str) -> None:
    page = canvas.Canvas(str(path))
    page.drawString(100, 700, words)
    page.save()


def test_a_question_is_answered_by_the_model_of_the_server(server: Server, box: Box, models: Running) -> None:
    assert box.answer("invoke_llm('say:one two three', 'low')") == ["one two three", ""]
    (asked,) = models.seen()
    assert asked.headers["authorization"] == f"Bearer {server.settings.llm_key}"
    assert asked.json()["model"] == "small"
    assert asked.json()["reasoning_effort"] == "low"


def test_a_search_is_answered_by_the_search_of_the_server(box: Box, searches: Running) -> None:
    answer, error = box.answer("web_search('moon')")
    assert error == ""
    assert "moon" in answer
    assert len(searches.seen()) == 1


def test_a_tool_is_run_and_its_answer_is_whole(box: Box) -> None:
    ran = box.run("answer = run_composio_tool('composio_search_exa_answer', {'content': 'moon'})")
    result, error = ran.answer
    assert error == ""
    assert "moon" in result["data"]["answer"]
    assert result["log_id"]
    assert ran.printed.startswith("COMPOSIO_SEARCH_EXA_ANSWER answered:")


def test_a_tool_that_there_is_not_is_an_error_that_says_so(box: Box) -> None:
    _, error = box.answer("run_composio_tool('GITHUB_GET_A_PULL_REQUEST', {'owner': 'o'})")
    assert "GITHUB" in error


def test_nothing_can_be_run_in_the_sandbox_that_the_session_does_not_have(box: Box) -> None:
    _, error = box.answer("run_composio_tool('COMPOSIO_REMOTE_WORKBENCH', {'code_to_execute': '1'})")
    assert "sandbox" in error


def test_a_service_that_is_not_connected_is_an_error_that_says_so(box: Box) -> None:
    result, error = box.answer("proxy_execute('GET', '/user', 'github')")
    assert result is None
    assert "github" in error


def test_fifty_threads_ask_at_once_and_each_has_its_own_answer(box: Box, models: Running) -> None:
    code = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(50) as pool:\n"
        "    told = list(pool.map(lambda n: invoke_llm(f'say:{n % 25}'), range(50)))\n"
        "answer = [one for n, one in enumerate(told) if one != (str(n % 25), '')]"
    )
    assert box.run(code).answer == []
    assert len(models.seen()) == 50


def test_a_file_is_uploaded_and_can_be_had_from_its_link(box: Box, session: Session) -> None:
    (box.folder / "report é.csv").write_bytes(os.urandom(3_000_000))
    result, error = box.run("answer = upload_local_file('report é.csv')", PYTHONUTF8="1").answer
    assert error == ""
    assert result["uploaded_file"] == "/mnt/files/uploads/report é.csv"
    assert result["type"] == "text/csv"
    assert result["id"]
    assert result["s3key"].endswith("/uploads/report é.csv")
    assert fetched(result["s3_url"]) == (box.folder / "report é.csv").read_bytes()
    assert session.files.download("uploads/report é.csv").buffer() == (box.folder / "report é.csv").read_bytes()
    again, _ = box.run("answer = upload_local_file('report é.csv')", PYTHONUTF8="1").answer
    assert again["uploaded_file"] == "/mnt/files/uploads/report é-2.csv"
    assert fetched(box.answer(f"get_mount_file_url({again['uploaded_file']!r})", PYTHONUTF8="1")[0])
    key = box.run(f"answer = get_mount_file_s3_key({again['uploaded_file']!r})", PYTHONUTF8="1").answer
    assert key == [again["s3key"], ""]


def test_several_files_and_a_folder_are_one_zip(box: Box) -> None:
    (box.folder / "data/deep").mkdir(parents=True)
    (box.folder / "data/x").write_bytes(b"x")
    (box.folder / "data/deep/y").write_bytes(b"y")
    (box.folder / "data/out").symlink_to("/etc/passwd")
    (box.folder / "a b.txt").write_bytes(b"one")
    result, error = box.answer("upload_local_file('a b.txt', 'data')")
    assert error == ""
    assert result["type"] == "application/zip"
    assert "left out:" in result["message"]
    with zipfile.ZipFile(io.BytesIO(fetched(result["s3_url"]))) as archive:
        told = {name: archive.read(name) for name in archive.namelist()}
    assert told == {"a b.txt": b"one", "data/x": b"x", "data/deep/y": b"y"}
    assert not [one for one in box.folder.iterdir() if one.suffix == ".zip"]


def test_a_refused_upload_says_why_and_leaves_nothing(box: Box, session: Session) -> None:
    before = session.files.usage()
    (box.folder / "large").write_bytes(b"")
    os.truncate(box.folder / "large", before.most_bytes + 1)
    result, error = box.answer("upload_local_file('large')")
    assert result == {}
    assert error.startswith("no room in /mnt/files for this: ")
    assert session.files.usage().bytes == before.bytes


def test_the_text_of_a_document_is_read_by_the_server_and_nothing_of_it_stays(box: Box, session: Session) -> None:
    paper(box.folder / "contract.pdf", "Der Vertrag gilt ab Montag")
    ran = box.run("answer = smart_file_extract('contract.pdf')")
    text, error = ran.answer
    assert (error, "Der Vertrag gilt ab Montag" in text) == ("", True)
    assert "Der Vertrag" in ran.printed
    (box.folder / "broken.pdf").write_bytes(b"%PDF-1.7 and no more")
    text, error = box.answer("smart_file_extract('broken.pdf')")
    assert text == ""
    assert error.startswith("broken.pdf: ")
    assert ".lent-" not in error
    assert session.files.list().items == []
    assert "no such file" in box.answer("smart_file_extract('contrakt.pdf')")[1]


def test_a_document_of_the_mount_is_read_where_it_is(box: Box, session: Session, tmp_path: Path) -> None:
    paper(tmp_path / "there.pdf", "Sie liegt dort")
    session.files.upload(tmp_path / "there.pdf")
    text, error = box.answer("smart_file_extract('/mnt/files/there.pdf', False)")
    assert (error, text.strip()) == ("", "Sie liegt dort")
    assert [one.mount_relative_path for one in session.files.list().items] == ["there.pdf"]


def test_many_files_are_read_at_once(box: Box) -> None:
    (box.folder / "notes.txt").write_text("every word of it")
    ran = box.run(
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(4) as pool:\n"
        "    answer = list(pool.map(lambda _: smart_file_extract('notes.txt', False), range(4)))"
    )
    assert ran.answer == [["every word of it", ""]] * 4


def test_what_is_given_for_a_box_holds_no_key_of_the_project(server: Server, local: LocalWorkbenchSession) -> None:
    assert local.env["COMPOSIO_API_KEY"].startswith(f"wbt_{local.token_id}_")
    assert local.env["COMPOSIO_WORKBENCH_ACCESS_KEY"] == local.env["COMPOSIO_API_KEY"]
    assert local.env["BACKEND_URL"] == server.url
    assert server.key not in str(local.env) + local.helper_source
    assert local.env["COMPOSIO_API_KEY"] not in repr(local) + local.helper_source


def test_the_helper_of_others_reads_the_same_variables(local: LocalWorkbenchSession, searches: Running) -> None:
    """It sends what is in COMPOSIO_API_KEY as x-api-key, and asks for tools by their names."""
    url = f"{local.env['BACKEND_URL']}/api/v3/tool_router/session/{local.env['COMPOSIO_TOOLROUTER_SESSION_ID']}/execute"
    headers = {"x-api-key": local.env["COMPOSIO_API_KEY"], "content-type": "application/json"}
    body = b'{"tool_slug": "COMPOSIO_SEARCH_EXA_ANSWER", "arguments": {"content": "moon"}}'
    request = urllib.request.Request(url, data=body, headers=headers, method="POST")
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
        assert answer.status == 200
    assert len(searches.seen()) == 1


def test_a_session_with_a_sandbox_is_refused_with_the_next_step(bench: Workbench) -> None:
    session = bench.create("tester")
    try:
        with pytest.raises(Conflict, match='"enable": false'):
            session.local_sandbox()
        with pytest.raises(Conflict, match="--no-sandbox"):
            create_local_workbench_session(bench, session.id)
    finally:
        session.delete()


def test_a_session_of_our_composio_has_its_box_as_well(server: Server, searches: Running, tmp_path: Path) -> None:
    with Composio(api_key=server.key, base_url=server.url) as composio:
        session = composio.create("user_123", sandbox={"enable": False})
        box = box_in(tmp_path, create_local_workbench_session(composio, session).env)
        assert box.answer("web_search('moon')")[1] == ""
        with_sandbox = composio.create("user_123")
        with pytest.raises(Conflict, match='"enable": false'):
            create_local_workbench_session(composio, with_sandbox)
        session.delete()
        with_sandbox.delete()
    assert len(searches.seen()) == 1


async def test_an_async_session_gives_the_same(server: Server, session: Session) -> None:
    async with AsyncWorkbench(server.url, server.key) as bench:
        local = await (await bench.use(session.id)).local_sandbox(expires_in_s=60)
    assert local.helper_source == helper_source()
    assert local.env["COMPOSIO_TOOLROUTER_SESSION_ID"] == session.id


def test_a_session_that_there_is_not_and_a_time_that_cannot_be_are_refused(bench: Workbench, session: Session) -> None:
    with pytest.raises(NotFound):
        create_local_workbench_session(bench, "nobody")
    for seconds in (0, 30 * 86_400 + 1):
        with pytest.raises(InvalidRequest, match="expires_in_s"):
            session.local_sandbox(expires_in_s=seconds)


def test_a_token_ends_by_itself(session: Session, tmp_path: Path) -> None:
    box = box_in(tmp_path, session.local_sandbox(expires_in_s=1).env)
    code = (
        "import time\n"
        "for _ in range(200):\n"
        "    answer = web_search('moon')\n"
        "    if answer[1]: break\n"
        "    time.sleep(0.05)"
    )
    assert "HTTP 401" in box.run(code).answer[1]


def test_a_command_writes_both_files_for_nobody_else_to_read(
    server: Server, session: Session, tmp_path: Path, searches: Running
) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "workbench", "sessions", "local", session.id, *arguments]
        env = {**os.environ, **server.settings.to_env()}
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)

    done = run("--dir", str(tmp_path / "box"), "--expires", "1h")
    assert done.returncode == 0, done.stderr
    written = tmp_path / "box/workbench.env"
    assert done.stdout.split() == [str(written), str(tmp_path / "box" / HELPER_FILE)]
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    assert "keys revoke" in done.stderr
    assert "wbt_" not in done.stdout + done.stderr
    env = dict(line.split("=", 1) for line in written.read_text(encoding="utf-8").splitlines())
    assert Box(folder=tmp_path / "box", env=env).answer("web_search('moon')")[1] == ""
    again = run("--dir", str(tmp_path / "box"))
    assert again.returncode == 0
    assert sorted(one.name for one in (tmp_path / "box").iterdir()) == [HELPER_FILE, "workbench.env"]
    assert "--url is the address" in run("--url", "bench.example.com; rm").stderr
