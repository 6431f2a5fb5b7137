"""A package that a program of Node misses is asked for, once and only for code of the agent's own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.workbench_guest.packages.desk import GUEST, Desk, answering

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="no node on this machine")

REFUSAL = "no supported package is called 'loadash'; did you mean 'lodash'?"
WISH = {"language": "node", "modules": [], "requirements": [], "guarded": False}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Below a folder for packages, as the agent's home is: a link to where they are."""
    (tmp_path / "packages" / "node_modules").mkdir(parents=True)
    (tmp_path / "node_modules").symlink_to("packages/node_modules")
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.fixture
def desk(place: Path) -> Iterator[Desk]:
    """Has everything but what begins with `load`."""

    def answer(asked: dict[str, Any]) -> tuple[Any, str, str]:
        for name in [*asked["modules"], *asked["requirements"]]:
            if name.startswith("load"):
                return None, REFUSAL, "package_refused"
            _put(place.parent, name.split("/")[0].split("@")[0])
        return {"installed": [], "present": [], "text": "installed it in 0.1 s"}, "", ""

    with answering(answer) as desk:
        yield desk


def _put(where: Path, name: str) -> None:
    folder = where / "node_modules" / name
    folder.mkdir(parents=True)
    # As most have it, it begins where only its description says.
    described = {"name": name, "version": "1.0.0", "main": "begin.js", "bin": {"say": "say.js"}}
    (folder / "package.json").write_text(json.dumps(described))
    (folder / "begin.js").write_text(f"module.exports = {name!r}; module.exports.part = 1;")
    (folder / "part.js").write_text(f"module.exports = {name!r} + '/part';")
    (folder / "say.js").write_text("#!/usr/bin/env node\nconsole.log('said', ...process.argv.slice(2));\n")
    (folder / "say.js").chmod(0o755)
    (where / "node_modules" / ".bin").mkdir(exist_ok=True)
    (where / "node_modules" / ".bin" / "say").unlink(missing_ok=True)
    (where / "node_modules" / ".bin" / "say").symlink_to(f"../{name}/say.js")


PROGRAMS = {
    "required.js": "console.log(require('one'))",
    "part.js": "console.log(require('one/part'))",
    "within.js": "const f = () => require('one'); setTimeout(() => console.log(f()), 1)",
    "imported.mjs": "import one from 'one'; console.log(one)",
    "awaited.mjs": "console.log((await import('one')).default)",
    "mixed.cjs": "import('one').then((m) => console.log(m.default))",
    "detected.ts.js": "import('./imported.mjs')",
    "nested.mjs": "import './imported.mjs'",
    "named.mjs": "const name = 'one'; console.log((await import(name)).default)",
    "made.mjs": "import { createRequire } from 'module'; console.log(createRequire(import.meta.url)('one'))",
}


def test_what_is_missing_is_there_where_it_is_needed(place: Path, desk: Desk) -> None:
    for name, text in PROGRAMS.items():
        (place / name).write_text(text)
    for name in PROGRAMS:
        ran = desk.run("node", name, cwd=place)
        assert (ran.stdout, ran.stderr) == ("one/part\n" if name == "part.js" else "one\n", ""), name
        wanted = "one/part" if name == "part.js" else "one"
        assert desk.asked == [{**WISH, "modules": [wanted]}], name
        desk.asked.clear()
        shutil.rmtree(place.parent / "node_modules" / "one")


def test_what_node_looked_for_in_vain_is_found_once_it_is_there(place: Path, desk: Desk) -> None:
    for name, text in {
        "asked.js": "try { require.resolve('one') } catch {} console.log(require('one'))",
        "by_name.js": "try { require('one') } catch { require('child_process').execSync('npm install one') }\n"
        "console.log(require('one'))",
        "twice.js": "require('one'); console.log(require('./again.js'))",
        "again.js": "module.exports = require('one')",
    }.items():
        (place / name).write_text(text)
    for name in ("asked.js", "by_name.js", "twice.js"):
        ran = desk.run("node", name, cwd=place)
        assert (ran.stdout.splitlines()[-1:], ran.stderr) == (["one"], ""), name
        shutil.rmtree(place.parent / "node_modules" / "one")


def test_what_was_installed_is_there_for_the_next_program(place: Path, desk: Desk) -> None:
    (place / "a.js").write_text(PROGRAMS["mixed.cjs"])
    assert [desk.run("node", "a.js", cwd=place).stdout for _ in range(2)] == ["one\n", "one\n"]
    assert len(desk.asked) == 1


def test_code_that_is_no_file_has_packages_too(place: Path, desk: Desk) -> None:
    assert desk.run("node", "-p", "require('one')", cwd=place).stdout == "one\n"
    ran = desk.run("node", "--input-type=module", "-e", "import two from 'two'; console.log(two)", cwd=place)
    assert ran.stdout == "two\n", ran.stderr
    assert [asked["modules"] for asked in desk.asked] == [["one"], ["two"]]


def test_a_refusal_is_a_part_of_the_error_that_the_program_sees(place: Path, desk: Desk) -> None:
    (place / "a.js").write_text(
        "let e; const f = () => require('loadash'); for (const _ of [1, 2]) { try { f() } catch (x) { e = x } }\n"
        "console.log(e.code); console.log(e.message)"
    )
    ran = desk.run("node", "a.js", cwd=place)
    assert ran.stdout.splitlines()[:3] == ["MODULE_NOT_FOUND", "Cannot find module 'loadash'", f"[sandbox] {REFUSAL}"]
    assert len(desk.asked) == 1
    for name, text in (("b.js", "require('loadash')"), ("b.mjs", "import 'loadash'")):
        (place / name).write_text(text)
        ran = desk.run("node", name, cwd=place)
        assert ran.returncode == 1
        assert f"[sandbox] {REFUSAL}" in ran.stderr, name


def test_nothing_is_asked_for_that_is_no_package_or_not_the_agents_wish(place: Path, desk: Desk) -> None:
    _put(place.parent, "lib")
    (place.parent / "node_modules" / "lib" / "begin.js").write_text(
        "try { require('absent') } catch (e) { module.exports = e.code }"
    )
    code = """
    const code = (f) => { let c = 'none'; try { f() } catch (e) { c = e.code } return c };
    const names = ['./util', '/abs', '../x', 'node:nope', '#inner', 'http://x/y', 'lib/nothere', 'UPPER CASE'];
    for (const name of names) console.log(name, code(() => require(name)));
    console.log(code(() => require.resolve('absent')), require('lib'), typeof require('fs'));
    """
    (place / "a.js").write_text(code)
    ran = desk.run("node", "a.js", cwd=place)
    assert ran.returncode == 0, ran.stderr
    assert "none" not in ran.stdout
    assert ran.stdout.splitlines()[-1] == "MODULE_NOT_FOUND MODULE_NOT_FOUND object"
    assert desk.asked == []


@pytest.mark.parametrize(
    ("text", "guarded"),
    [
        ("try { require('loadx') } catch {}", True),
        ("try { /* } */ const s = '}'; require('loadx') } catch (e) {}", True),
        ("import('loadx').catch(() => 1)", True),
        ("try {} catch {}\ntry { f() } finally { }\nfunction f() { return require('loadx') }", False),
        ("try { require('loady') } catch { }\nrequire('loadx')", False),
        ("const x = require('loadx')", False),
    ],
)
def test_code_that_has_its_own_answer_says_so(place: Path, desk: Desk, text: str, guarded: bool) -> None:
    (place / "a.js").write_text(text)
    desk.run("node", "a.js", cwd=place)
    assert [asked["guarded"] for asked in desk.asked if asked["modules"] == ["loadx"]] == [guarded]


def test_where_nobody_answers_errors_are_as_node_makes_them(place: Path, desk: Desk) -> None:
    (place / "a.js").write_text(
        "try { (() => require('one'))() } catch (e) { console.log(e.message.split('\\n').length) }"
    )
    (place / "b.mjs").write_text("import 'one'")
    plain = desk.run("node", "a.js", cwd=place, NODE_OPTIONS="").stdout
    assert desk.run("node", "a.js", cwd=place, WORKBENCH_CALLS="@nobody-is-here").stdout == plain
    ran = desk.run("node", "b.mjs", cwd=place, WORKBENCH_CALLS="@nobody-is-here")
    assert "ERR_MODULE_NOT_FOUND" in ran.stderr
    assert "[sandbox]" not in ran.stderr


def test_npm_install_goes_the_same_way_and_says_what_it_does(place: Path, desk: Desk) -> None:
    ran = desk.run("npm", "install", "--save", "one@1.2", "-g", "two", cwd=place)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("installed it in 0.1 s; for all programs of this session")
    (place / "package.json").write_text('{"dependencies": {"three": "^1.0.0"}, "devDependencies": {"four": "*"}}')
    assert desk.run("npm", "ci", cwd=place).returncode == 0
    wishes = [["one@1.2", "two"], ["four", "three@^1.0.0"]]
    assert desk.asked == [{**WISH, "requirements": names} for names in wishes]
    ran = desk.run("npm", "i", "loadash", cwd=place)
    assert (ran.returncode, ran.stderr) == (1, f"npm error {REFUSAL}\n")
    assert desk.run("npm", "uninstall", "one", cwd=place).returncode == 1


def test_npx_runs_what_the_folder_has_without_asking(place: Path, desk: Desk) -> None:
    _put(place, "teller")
    ran = desk.run("npx", "-y", "teller", "hello", cwd=place)
    assert (ran.stdout, ran.stderr) == ("said hello\n", "")
    assert desk.asked == []
    ran = desk.run("npx", "loadx@2", cwd=place)
    assert (ran.returncode, ran.stderr) == (1, f"npx error {REFUSAL}\n")


def test_other_commands_are_the_machines_npm(place: Path, desk: Desk) -> None:
    (place / "npm").write_text("#!/bin/sh\necho real $@\n")
    (place / "npm").chmod(0o755)
    path = f"{GUEST}/packages/bin:{place}:/usr/bin:/bin"
    assert desk.run("npm", "run", "build", cwd=place, PATH=path).stdout == "real run build\n"
