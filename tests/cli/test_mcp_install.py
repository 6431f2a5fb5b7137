"""`workbench mcp install` on files of a temporary home, as each client keeps them."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from workbench.cli.config_files import Place, plan, write
from workbench.errors import Conflict

KEY = "wbk_0123456789abcdefghijklmnop"
URL = "https://workbench.example.com"
FILES = {
    "claude-desktop": (".config/Claude/claude_desktop_config.json", "mcpServers"),
    "claude-code": (".claude.json", "mcpServers"),
    "cursor": (".cursor/mcp.json", "mcpServers"),
    "vscode": (".config/Code/User/mcp.json", "servers"),
    "codex": (".codex/config.toml", "mcp_servers"),
}
WITH_URL = [client for client in FILES if client != "claude-desktop"]
OTHERS = {
    "json": '{"theme": "dark", "%s": {"other": {"command": "x", "env": {"TOKEN": "secret-of-others"}}}, "größe": 1.5}',
    "toml": '# mine\nmodel = "o"   # with a comment\n\n[%s.other]\ncommand = "x"\n\n[tui]\ntheme = "dark"\n',
}
WORKBENCH = str(Path(sys.executable).parent / "workbench")


@pytest.fixture
def home(short_dir: Path) -> Iterator[Path]:
    folder = short_dir / "home"
    folder.mkdir()
    yield folder
    half_written = re.compile(r"\..+\.(json|toml)\.[a-z0-9_]{8}")
    assert not [path for path in folder.rglob("*") if half_written.fullmatch(path.name)]


def install(home: Path, *arguments: str, answer: str = "", **env: str) -> tuple[int, str, str]:
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("WORKBENCH_", "OPEN_WORKBENCH_"))
    }
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR"):
        clean.pop(name, None)
    done = subprocess.run(
        [WORKBENCH, "mcp", "install", *arguments], env={**clean, "HOME": str(home), **env}, input=answer,
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def parsed(file: Path) -> dict[str, Any]:
    text = file.read_text(encoding="utf-8")
    told: dict[str, Any] = tomllib.loads(text) if file.suffix == ".toml" else json.loads(text)
    return told


def made(home: Path, client: str) -> tuple[Path, str]:
    """The client's file with something of others in it."""
    name, table = FILES[client]
    file = home / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(OTHERS[file.suffix[1:]] % table, encoding="utf-8")
    file.chmod(0o644)
    return file, table


def mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


@pytest.mark.parametrize("client", FILES)
def test_a_new_file_has_the_absolute_path_of_this_command(home: Path, client: str) -> None:
    code, out, err = install(home, client, "--yes")
    assert (code, err) == (0, "")
    name, table = FILES[client]
    assert str(home / name) in out
    entry = parsed(home / name)[table]["open-workbench"]
    assert (entry["command"], entry["args"]) == (WORKBENCH, ["mcp"])
    assert entry.get("type") == ("stdio" if client in ("claude-code", "vscode") else None)
    assert mode(home / name) == 0o600
    assert [path.name for path in (home / name).parent.iterdir()] == [(home / name).name]


@pytest.mark.parametrize("client", FILES)
def test_what_else_is_in_the_file_is_kept_and_the_file_as_it_was_lies_beside_it(home: Path, client: str) -> None:
    file, table = made(home, client)
    before = file.read_text(encoding="utf-8")
    code, out, _ = install(home, client, "--yes", "--tools", "workbench,kernel", "--session", "mine", "--name", "bench")
    assert code == 0
    assert "secret-of-others" not in out
    told = parsed(file)
    entry = told[table].pop("bench")
    assert entry["args"] == ["mcp", "--tools", "workbench,kernel", "--session", "mine"]
    assert told == (tomllib.loads(before) if file.suffix == ".toml" else json.loads(before))
    assert mode(file) == 0o644
    kept = [path for path in file.parent.iterdir() if path.name.startswith(f"{file.name}.before-")]
    assert [path.read_text(encoding="utf-8") for path in kept] == [before]
    assert str(kept[0]) in out
    if file.suffix == ".toml":
        assert file.read_text(encoding="utf-8").startswith(before.rstrip())


@pytest.mark.parametrize("client", FILES)
def test_the_second_time_there_is_nothing_to_do_and_another_time_the_entry_is_replaced(home: Path, client: str) -> None:
    file, table = made(home, client)
    assert install(home, client, "--yes")[0] == 0
    once = file.read_bytes()
    code, out, _ = install(home, client)
    assert code == 0
    assert "nothing to do" in out
    assert file.read_bytes() == once
    assert len(list(file.parent.glob(f"{file.name}.before-*"))) == 1
    code, out, _ = install(home, client, "--yes", "--tools", "all")
    assert code == 0
    assert any(line.startswith("-") for line in out.splitlines())
    told = parsed(file)[table]
    assert set(told) == {"other", "open-workbench"}
    assert told["open-workbench"]["args"] == ["mcp", "--tools", "all"]


@pytest.mark.parametrize("client", WITH_URL)
def test_an_address_is_written_with_its_key_for_nobody_else_to_read(home: Path, client: str) -> None:
    file, table = made(home, client)
    code, out, err = install(home, client, "--yes", "--url", URL, "--tools", "workbench,sandbox", "--key", KEY)
    assert code == 0
    assert KEY not in out + err
    assert "warning" in err
    entry = parsed(file)[table]["open-workbench"]
    assert entry["url"] == f"{URL}/mcp?tools=workbench,sandbox"
    assert entry["http_headers" if client == "codex" else "headers"] == {"Authorization": f"Bearer {KEY}"}
    assert "command" not in entry
    assert mode(file) == 0o600
    assert install(home, client, "--url", URL, "--tools", "workbench,sandbox", OPEN_WORKBENCH_API_KEY=KEY)[1].endswith(
        "nothing to do.\n"
    )
    assert all(mode(path) == 0o600 for path in file.parent.glob(f"{file.name}.before-*"))


def test_what_cannot_be_written_is_said_before_anything_is(home: Path) -> None:
    for arguments, words in (
        (("claude-desktop", "--url", URL, "--key", KEY), "Connectors"),
        (("cursor", "--url", URL), "--key"),
        (("cursor", "--url", "workbench.example.com", "--key", KEY), "--url"),
        (("cursor", "--tools", "spoons"), "spoons"),
        (("cursor", "--session", "Not A Name"), "session"),
        (("cursor", "--name", "a b"), "--name"),
        (("emacs",), "emacs"),
    ):
        code, _, err = install(home, *arguments, "--yes")
        assert code in (2, 125)
        assert words in err
    assert list(home.iterdir()) == []


def test_plain_http_to_another_machine_is_warned_of_and_to_this_one_is_not(home: Path) -> None:
    assert "plain http" in install(home, "cursor", "--yes", "--url", "http://box:8787", "--key", KEY)[2]
    assert "plain http" not in install(home, "cursor", "--yes", "--url", "http://127.0.0.1:8787", "--key", KEY)[2]


@pytest.mark.parametrize(
    ("client", "broken"),
    [
        ("claude-desktop", "\ufeff{}"),
        ("claude-code", "["),
        ("cursor", '{"a": 1, // mine\n "b": 2}'),
        ("vscode", '{"servers": 1}'),
        ("codex", "["),
        ("codex", "mcp_servers = 1"),
    ],
)
def test_a_file_that_cannot_be_understood_is_named_and_left_alone(home: Path, client: str, broken: str) -> None:
    file, _ = made(home, client)
    file.write_text(broken, encoding="utf-8")
    code, _, err = install(home, client, "--yes")
    assert code == 125
    assert str(file) in err
    assert "--print" in err
    assert file.read_text(encoding="utf-8") == broken
    assert [path.name for path in file.parent.iterdir() if path.name.startswith(file.name)] == [file.name]


def test_a_name_that_is_there_twice_would_be_lost_and_is_refused(home: Path) -> None:
    file, _ = made(home, "cursor")
    file.write_text('{"mcpServers": {"a": {}, "a": {"command": "x"}}}', encoding="utf-8")
    code, _, err = install(home, "cursor", "--yes")
    assert code == 125
    assert "twice" in err


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = { other = { command = "x" } }\n',
        '[mcp_servers]\nopen-workbench = { command = "x" }\n',
        'notes = """\n[mcp_servers.open-workbench]\nnot a table\n"""\n',
    ],
    ids=["inline", "inside", "string"],
)
def test_toml_that_is_written_otherwise_is_left_alone_or_kept_whole(home: Path, text: str) -> None:
    file, _ = made(home, "codex")
    file.write_text(text, encoding="utf-8")
    code, _, err = install(home, "codex", "--yes")
    assert code == 125
    assert str(file) in err
    assert file.read_text(encoding="utf-8") == text


def test_what_somebody_else_writes_meanwhile_is_theirs(home: Path) -> None:
    file, table = made(home, "cursor")
    change = plan(Place(file=file, table=table, name="ours"), {"command": "x"})
    file.write_text("{}", encoding="utf-8")
    with pytest.raises(Conflict, match="run this again"):
        write(change, private=False)
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    assert file.read_text(encoding="utf-8") == "{}"


def test_it_asks_first_and_no_is_no(home: Path) -> None:
    file, _ = made(home, "cursor")
    before = file.read_bytes()
    code, out, _ = install(home, "cursor", answer="n\n")
    assert code == 0
    assert WORKBENCH in out
    assert "Nothing was written" in out
    code, _, err = install(home, "cursor")
    assert code == 2
    assert "--yes" in err
    assert file.read_bytes() == before
    assert install(home, "cursor", answer="y\n")[0] == 0
    assert file.read_bytes() != before


@pytest.mark.parametrize("client", FILES)
def test_print_shows_what_can_be_pasted_and_touches_nothing(home: Path, client: str) -> None:
    name, table = FILES[client]
    code, out, err = install(home, client, "--print")
    assert code == 0
    assert str(home / name) in err
    told = tomllib.loads(out) if name.endswith(".toml") else json.loads(out)
    assert told[table]["open-workbench"]["command"] == WORKBENCH
    assert list(home.iterdir()) == []


def test_settings_of_this_shell_go_along_because_windows_have_none(home: Path) -> None:
    code, _, err = install(home, "cursor", "--yes", WORKBENCH_DATA_DIR="/srv/bench")
    assert (code, err) == (0, "")
    entry = parsed(home / ".cursor/mcp.json")["mcpServers"]["open-workbench"]
    assert entry["env"] == {"WORKBENCH_DATA_DIR": "/srv/bench"}
    secret = "postgresql://me:password-of-mine@db/x"
    code, out, err = install(home, "cursor", "--yes", WORKBENCH_DATABASE_URL=secret)
    assert code == 0
    assert "password-of-mine" not in out + err
    assert "warning" in err


def test_a_file_that_is_a_link_stays_one(home: Path) -> None:
    file, _ = made(home, "cursor")
    real = home / "dotfiles.json"
    file.rename(real)
    file.symlink_to(real)
    assert install(home, "cursor", "--yes")[0] == 0
    assert file.is_symlink()
    assert "open-workbench" in parsed(real)["mcpServers"]


def test_clients_that_were_told_to_look_elsewhere_are_found_there(home: Path) -> None:
    assert install(home, "codex", "--yes", CODEX_HOME=str(home / "cx"))[0] == 0
    assert (home / "cx/config.toml").is_file()
    assert install(home, "claude-code", "--yes", CLAUDE_CONFIG_DIR=str(home / "cc"))[0] == 0
    assert (home / "cc/.claude.json").is_file()
    assert install(home, "vscode", "--yes", XDG_CONFIG_HOME=str(home / "xdg"))[0] == 0
    assert (home / "xdg/Code/User/mcp.json").is_file()


def _with_old(home: Path, client: str, entry: dict[str, Any], text: str = "") -> Path:
    """The client's file with an entry of ours that was there before."""
    name, table = FILES[client]
    file = home / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text or json.dumps({table: {"open-workbench": entry}}, ensure_ascii=False), encoding="utf-8")
    return file


@pytest.mark.parametrize("client", ["cursor", "codex"])
def test_what_is_in_the_file_neither_acts_on_the_terminal_nor_forges_lines(home: Path, client: str) -> None:
    bad = "a\u202e\u009b2J\u2028+ forged\x85- forged\x7f"
    quoted = json.dumps(f"{bad}\n+ forged\x1b]0;x")
    text = f"[mcp_servers.open-workbench]\n{quoted} = {quoted}\n" if client == "codex" else ""
    _with_old(home, client, {f"{bad}\n+ forged\x1b": f"{bad}\n+ forged\x1b]0;x", "args": [bad]}, text)
    code, out, err = install(home, client, "--yes")
    assert code == 0, err
    assert not [char for char in out if not char.isprintable() and char != "\n"]
    assert not [line for line in out.split("\n") if line.startswith(("+ forged", "- forged", " forged"))]


def test_the_name_of_the_folder_does_not_act_on_the_terminal_either(home: Path) -> None:
    folder = home / "x\x1b]0;y\u202e"
    folder.mkdir()
    for arguments in (("--yes",), ("--print",), ("--yes", "--tools", "all")):
        code, out, err = install(home, "codex", *arguments, CODEX_HOME=str(folder))
        assert code == 0
        told = err if "--print" in arguments else out
        assert "x?]0;y?" in told
        assert not {"\x1b", "\u202e"} & set(out + err)
    (folder / "config.toml").write_text("[", encoding="utf-8")
    assert "\x1b" not in install(home, "codex", "--yes", CODEX_HOME=str(folder))[2]


@pytest.mark.parametrize("client", ["cursor", "codex"])
@pytest.mark.parametrize("old", ["wbk_0a1b2c3d4e5f_old-secret_and-more", "short", 'q"uo\\te'])
def test_of_keys_nothing_is_shown_but_their_ids(home: Path, client: str, old: str) -> None:
    headers = "http_headers" if client == "codex" else "headers"
    entry = {"url": f"{URL}/mcp?x={old}" if old.startswith("wbk") else URL, headers: {"Authorization": f"Bearer {old}"}}
    text = ""
    if client == "codex":
        inside = "\n".join(
            [
                f'url = "{entry["url"]}"',
                'bearer_token = "hush-hush"',
                f"[mcp_servers.open-workbench.{headers}]",
                f"Authorization = {json.dumps(f'Bearer {old}')}",
                "[mcp_servers.open-workbench.env]",
                'TOKEN = "env-secret"',
            ]
        )
        text = f"[mcp_servers.open-workbench]\n{inside}\n"
    _with_old(home, client, {**entry, "bearer_token": "hush-hush", "env": {"TOKEN": "env-secret"}}, text)
    new = "wbk_ffff00001111_new-secret"
    code, out, err = install(home, client, "--yes", "--url", URL, "--key", new)
    assert code == 0, err
    for secret in ("old-secret", "and-more", "hush", "env-secret", "new-secret", "Bearer short", 'q"uo', 'q\\"uo'):
        assert secret not in out + err
    assert "wbk_ffff00001111_… (another one)" in out
    assert ("wbk_0a1b2c3d4e5f_…" in out) is old.startswith("wbk")


def test_a_key_of_a_few_letters_is_not_shown_and_another_one_is_a_change(home: Path) -> None:
    for key in ("k1", "k2"):
        code, out, err = install(home, "cursor", "--yes", "--url", URL, "--key", key)
        assert code == 0
        assert key not in out + err
        assert "Written" in out
        assert parsed(home / ".cursor/mcp.json")["mcpServers"]["open-workbench"]["headers"] == {
            "Authorization": f"Bearer {key}"
        }
    assert "another one" in out


def test_what_is_no_file_is_not_waited_for_nor_read_for_ever(home: Path) -> None:
    file = home / ".cursor/mcp.json"
    file.parent.mkdir()
    os.mkfifo(file)
    code, _, err = install(home, "cursor", "--yes")
    assert code == 125
    assert "is no file" in err
    file.unlink()
    file.symlink_to("/dev/zero")
    code, _, err = install(home, "cursor", "--yes")
    assert code == 125
    assert "is no file" in err
    file.unlink()
    with file.open("wb") as stream:
        stream.truncate(40 * 1024 * 1024)
    code, _, err = install(home, "cursor", "--yes")
    assert code == 125
    assert "bytes" in err


def test_dates_and_tables_in_an_old_entry_are_shown(home: Path) -> None:
    text = (
        "[mcp_servers.open-workbench]\nsince = 2026-01-02T03:04:05Z\nday = 2026-01-02\nat = 03:04:05\n"
        'more = [{ a = 1 }, inf]\n"a b" = true\n["mcp_servers"."other"]\nx = 1\n'
    )
    file = _with_old(home, "codex", {}, text)
    code, out, err = install(home, "codex", "--yes")
    assert (code, err) == (0, "")
    for line in ("since = 2026-01-02T03:04:05+00:00", "day = 2026-01-02", "at = 03:04:05", "more = [{ a = 1 }, inf]",
                 '"a b" = true'):  # fmt: skip
        assert f"-{line}" in out
    assert parsed(file)["mcp_servers"]["other"] == {"x": 1}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root writes files for others")
def test_the_file_of_another_user_stays_theirs_when_root_writes_it(home: Path) -> None:
    file, _ = made(home, "cursor")
    os.chown(file, 12345, 23456)
    file.chmod(0o640)
    os.chown(home, 12345, 23456)
    assert install(home, "cursor", "--yes")[0] == 0
    assert (file.stat().st_uid, file.stat().st_gid, mode(file)) == (12345, 23456, 0o640)
    kept = next(file.parent.glob("mcp.json.before-*"))
    assert (kept.stat().st_uid, kept.stat().st_gid, mode(kept)) == (12345, 23456, 0o600)
    assert install(home, "codex", "--yes")[0] == 0
    for path in (home / ".codex", home / ".codex/config.toml"):
        assert (path.stat().st_uid, path.stat().st_gid) == (12345, 23456)


def test_where_a_link_leads_is_said(home: Path) -> None:
    file, _ = made(home, "cursor")
    real = home / "dotfiles.json"
    file.rename(real)
    file.symlink_to(real)
    assert f"{file} -> {real}" in install(home, "cursor", answer="n\n")[1]
