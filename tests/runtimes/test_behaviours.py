"""Every behaviour in every language, on a real server: what differs between them is the code in the table."""

from __future__ import annotations

import json
import secrets

import httpx2
import pytest
from tests.runtimes.asking import Session
from tests.runtimes.languages import LANGUAGES, Language


def _with(field: str) -> list[str]:
    """The languages that have it: the table is empty where one has no such thing."""
    return [one.runtime for one in LANGUAGES.values() if getattr(one, field)]


def test_what_a_cell_binds_is_there_in_the_next(session: Session, language: Language) -> None:
    session.run(language.assign)
    assert session.value(language.use) == language.value


def test_a_name_may_be_declared_again(session: Session, language: Language) -> None:
    for _ in range(2):
        assert session.run(language.again)["outcome"] == "ok"
    assert session.value(language.use) == language.value


def test_what_is_declared_is_there_in_the_next_cell(session: Session, language: Language) -> None:
    declare, use = language.declares
    for _ in range(2):
        assert session.run(declare)["outcome"] == "ok"
    assert session.value(use) == language.value


def test_an_error_names_what_was_raised_and_where_and_costs_nothing(session: Session, language: Language) -> None:
    session.run(language.assign)
    result = session.run(language.raises)
    assert result["outcome"] == "raised", result
    if language.error:
        assert result["error"]["name"] == language.error
        assert "broken" in result["error"]["message"]
        assert language.error_line in result["error"]["traceback"]
    assert session.value(language.use) == language.value


def test_code_that_cannot_be_read_is_an_error_and_costs_nothing(session: Session, language: Language) -> None:
    session.run(language.assign)
    assert session.run(language.syntax)["outcome"] == "raised"
    assert session.value(language.use) == language.value


def test_what_is_printed_is_told_as_what_it_is(session: Session, language: Language) -> None:
    result = session.run(language.prints)
    assert result["stdout"]["text"].strip() == "out"
    assert "err" in result["stderr"]["text"]


def test_what_a_program_prints_that_was_started_is_told(session: Session, language: Language) -> None:
    assert "from a child" in session.run(language.child_prints)["stdout"]["text"]


def test_what_code_leaves_in_the_background_is_listed_and_its_kernel_is_not(
    own_session: Session, language: Language
) -> None:
    own_session.run(language.assign)
    # Python may just be copying itself for a snapshot.
    own_session.until_background(lambda listed: not listed)
    assert own_session.run(language.leaves)["outcome"] == "ok"
    # R starts it by a shell.
    own_session.until_background(lambda listed: bool(listed) and all("sleep 4711" in one for one in listed))


@pytest.mark.parametrize("runtime", _with("awaited"))
def test_what_is_asynchronous_is_waited_for(session_of: dict[str, Session], runtime: str) -> None:
    language, session = LANGUAGES[runtime], session_of[runtime]
    assert session.value(language.awaited) == language.value


@pytest.mark.parametrize(
    ("runtime", "what"), [(one.runtime, what) for one in LANGUAGES.values() for what, _ in one.endless]
)
def test_an_interrupt_ends_it_and_keeps_the_state(session_of: dict[str, Session], runtime: str, what: str) -> None:
    language, session = LANGUAGES[runtime], session_of[runtime]
    session.run(language.assign)
    mark = f"mark-{secrets.token_hex(4)}"
    begin = language.mark.replace("FILE", f"/mnt/files/{mark}" if runtime == "bash" else repr(f"/mnt/files/{mark}"))
    epoch = session.run(language.use)["receipt"]["epoch"]
    cell = session.begin(f"{begin}\n{dict(language.endless)[what]}", limit_s=120)
    session.until_file(mark)
    assert session.post("interrupt").status_code == 200
    result = session.end_of(cell)
    assert result["outcome"] == "interrupted", result
    assert session.value(language.use) == language.value
    assert session.run(language.use)["receipt"]["epoch"] == epoch


def test_a_cell_at_its_limit_is_interrupted_and_keeps_the_state(session: Session, language: Language) -> None:
    session.run(language.assign)
    result = session.run(f"{language.prints}\n{language.endless[0][1]}", limit_s=2)
    assert result["outcome"] == "timed out", result
    assert "out" in result["stdout"]["text"]
    assert session.value(language.use) == language.value


def test_a_flood_of_text_is_complete(session: Session, language: Language) -> None:
    result = session.run(language.flood, limit_s=120)
    assert result["outcome"] == "ok", result
    assert result["stdout"]["characters"] == 5_000_000 + len("end of the flood\n")
    assert result["stdout"]["text"].endswith("end of the flood\n")
    assert result["stdout"]["file_path"]


@pytest.mark.parametrize("runtime", _with("displays"))
def test_a_flood_of_displays_is_complete(session_of: dict[str, Session], runtime: str) -> None:
    language, session = LANGUAGES[runtime], session_of[runtime]
    result = session.run(language.displays, limit_s=120)
    assert result["outcome"] == "ok", result
    assert len(result["displays"]) + result["displays_left_out"] == 2000


def test_files_are_shared_with_the_mount(session: Session, language: Language) -> None:
    assert session.run(language.writes)["outcome"] == "ok"
    link = session.client.get(f"/v1/sessions/{session.name}/mounts/files/items", params={"prefix": "from_code.txt"})
    assert [item["path"] for item in link.json()["items"]] == ["from_code.txt"]


@pytest.mark.parametrize("runtime", _with("picture"))
def test_a_picture_is_a_picture(session_of: dict[str, Session], runtime: str) -> None:
    language, session = LANGUAGES[runtime], session_of[runtime]
    result = session.run(language.picture)
    pictures = [one["data"]["image/png"] for one in result["displays"] if "image/png" in one["data"]]
    assert len(pictures) == 1
    assert pictures[0].startswith("iVBOR")


@pytest.mark.parametrize("runtime", _with("helper"))
def test_helpers_are_there_and_what_is_refused_is_told_as_the_language_tells_it(
    session_of: dict[str, Session], runtime: str
) -> None:
    result = session_of[runtime].run(LANGUAGES[runtime].helper)
    assert result["outcome"] == "ok", result
    assert result["stdout"]["text"].strip() == "refused"


def test_the_receipt_tells_names_and_the_folder(own_session: Session, language: Language) -> None:
    receipt = own_session.run(language.assign)["receipt"]
    if language.receipts:
        assert receipt["added"] == [language.name], receipt
        assert receipt["working_folder"] == "/home/user"
    assert "/home/user" in own_session.value(language.folder)


def test_a_session_may_have_a_path_of_its_own(client: httpx2.Client, language: Language) -> None:
    made = Session.made(client, language.runtime, env={"PATH": "/usr/bin:/bin"})
    made.run(language.assign)
    assert made.value(language.use) == language.value
    made.delete()


def test_a_restart_gives_an_empty_memory_and_says_so(own_session: Session, language: Language) -> None:
    before = own_session.run(language.assign)["receipt"]
    assert own_session.post("restart").status_code == 200
    result = own_session.run(language.use)
    assert result["receipt"]["epoch"] > before["epoch"]
    assert result["results"]["text"] != language.value


def test_a_death_in_a_cell_is_a_loss_with_what_was_printed(own_session: Session, language: Language) -> None:
    own_session.run(language.assign)
    result = own_session.run(language.killed)
    assert result["outcome"] == "lost", result
    assert "before the end" in result["stdout"]["text"]
    state = result["receipt"]["state"]
    assert state == ("restored" if language.remembers else "lost"), result["receipt"]
    after = own_session.value(language.use) if language.remembers else own_session.value(language.folder)
    assert after == language.value if language.remembers else "/home/user" in after


def test_code_that_ends_its_process_is_told_so(own_session: Session, language: Language) -> None:
    own_session.run(language.assign)
    result = own_session.run(language.ends)
    assert result["outcome"] == "lost", result
    assert result["explanation"]
    assert "/home/user" in own_session.value(language.folder)


def test_undo_and_branch_are_there_or_refused_in_words(own_session: Session, language: Language) -> None:
    own_session.run(language.assign)
    result = own_session.run(language.use)
    undo, branch = own_session.post("undo", cells=1), own_session.post("branch", id=f"{own_session.name}-b")
    if language.remembers:
        assert (undo.status_code, branch.status_code // 100) == (200, 2), (undo.text, branch.text)
        return
    assert result["receipt"]["snapshot"]["reason"]
    for refused in (undo, branch):
        assert refused.status_code in {400, 409}, refused.text
        assert language.runtime in refused.json()["error"]["message"].lower()


def test_its_notebook_names_its_language(own_session: Session, language: Language) -> None:
    own_session.run(language.assign)
    answer = own_session.client.get(f"/v1/sessions/{own_session.name}/history.ipynb")
    assert answer.status_code == 200, answer.text
    told = json.loads(answer.text)["metadata"]["kernelspec"]["language"]
    assert told.lower() == {"node": "javascript"}.get(language.runtime, language.runtime)
