"""What cells of JavaScript can rely on."""

# ruff: noqa: E501  cells are written in one line, as they are sent
from __future__ import annotations

import base64
from pathlib import Path

import pytest
from tests.runtimes.node.driving import Driven, driven

# (the cells one after another, the text of the last one's result)
VALUES = {
    "a value": (["1 + 1"], "2"),
    "a text is quoted": (["'a' + 'b'"], "'ab'"),
    "undefined is no result": (["undefined"], None),
    "a declaration is no result": (["const declared = 1"], None),
    "let again": (["let l1 = 1", "let l1 = 2", "l1"], "2"),
    "const again": (["const c1 = 1", "const c1 = 2", "c1"], "2"),
    "class again": (["class K1 {}", "class K1 { m() { return 7 } }", "new K1().m()"], "7"),
    "a constant after a variable": (["let r1 = 1", "const r1 = 2", "r1"], "2"),
    "a variable after a constant": (["const r2 = 1", "let r2 = 2", "r2"], "2"),
    "a class after a constant": (["const R3 = 1", "class R3 { static a = 2 }", "R3.a"], "2"),
    "a constant after a function": (["function r4() { return 1 }", "const r4 = () => 2", "r4()"], "2"),
    "what was bound before a name that cannot be": (["let r6 = 1", "r6 += 1; { const r6 = 9 }", "r6"], "2"),
    "a function from before": (["function f1() { return 3 }", "f1()"], "3"),
    "top-level await": (["await Promise.resolve(4)"], "4"),
    "a name bound by await": (["const w1 = await 6", "w1"], "6"),
    "a promise is awaited": (["Promise.resolve({a: 1})"], "{ a: 1 }"),
    "an object without brackets": (["{a: 1, b: [2]}"], "{ a: 1, b: [ 2 ] }"),
    "a block": (["{ let inner = 1; inner + 1 }"], "2"),
    "bigint": (["2n ** 70n"], "1180591620717411303424n"),
    "not a number": (["0 / 0"], "NaN"),
    "a symbol": (["Symbol('s')"], "Symbol(s)"),
    "a map": (["new Map([[1, {a: 2}]])"], "Map(1) { 1 => { a: 2 } }"),
    "require": (["const os1 = require('os'); typeof os1.cpus"], "'function'"),
    "require of node:": (["typeof require('node:fs').readFileSync"], "'function'"),
    "require.resolve": (["require.resolve('fs')"], "'fs'"),
    "a module": (["typeof module + typeof exports"], "'objectobject'"),
    "static import": (["import p2, { join as j2 } from 'path'\nj2('a', 'b') + p2.sep", "j2('c', 'd')"], "'c/d'"),
    "static import of everything": (["import * as all2 from 'node:path'", "all2.sep"], "'/'"),
    "static import over lines": (["import {\n  join, // one\n  sep as s3,\n} from 'path';\nsep3 = s3 + 1"], "'/1'"),
    "import for its effect": (["import 'fs'; 5"], "5"),
    "dynamic import": (["(await import('node:path')).sep"], "'/'"),
    "dynamic import in a function": (
        ["async function i4() { return (await import('path')).sep }", "await i4()"],
        "'/'",
    ),
    "the word import in a text": (
        ["`import x from 'y'` + \"import z from 'z'\" // import q from 'q'"],
        "\"import x from 'y'import z from 'z'\"",
    ),
    "import in a template's braces": (["`${(await import('path')).sep}`"], "'/'"),
    "a method called import": (["({ import: (x) => x }).import(3)"], "3"),
    "import.meta": (["import.meta.url.startsWith('file:///')"], "true"),
    "a regular expression with quotes": (["/['\"`]/.test(\"'\"); import('path').then(p => p.sep)"], "'/'"),
    "what the prototype says": (["[1, 2].at(-1)"], "2"),
    "a hashbang": (["#!/usr/bin/env node\n8"], "8"),
    "a comment at the end": (["9 // nine"], "9"),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_cell_gives(shared: Driven, name: str) -> None:
    cells, expected = VALUES[name]
    for code in cells[:-1]:
        ran = shared.run(code)
        assert ran.status == "ok", ran.error
    ran = shared.run(cells[-1])
    assert ran.status == "ok", ran.error
    assert ran.result == expected


# (the cell, the name of the error, pieces of its text)
ERRORS = {
    "an error has its line": ("1\n  null.x", "TypeError", ["Cannot read properties of null", ">:2:8"]),
    "an error within a function": (
        "function g9() {\n  throw new RangeError('no')\n}\n\ng9()",
        "RangeError",
        ["at g9 (<cell ", ">:2:9", ">:5:1"],
    ),
    "an error after await": ("await null\nthrow new Error('late')", "Error", ["late", ">:2:7"]),
    "a rejected promise": ("Promise.reject(new TypeError('r'))", "TypeError", ["r"]),
    "what is no error": ("throw 'words'", "Uncaught", ["Uncaught 'words'"]),
    "nothing at all": ("throw undefined", "Uncaught", ["Uncaught undefined"]),
    "code that cannot be read": (
        "let ok = 1\nlet y = = 2",
        "SyntaxError",
        [">:2\nlet y = = 2\n        ^\n", "Unexpected token '='"],
    ),
    "a text that is no JSON": ("JSON.parse('{')", "SyntaxError", ["JSON", ">:1:6"]),
    "a name that is not there": ("nowhere_1", "ReferenceError", ["nowhere_1 is not defined"]),
    "an export that is not there": ("import { nothing } from 'path'", "SyntaxError", ["'path'", "'nothing'"]),
    "a package that is not there": ("require('not-there-1')", "Error", ["Cannot find module 'not-there-1'"]),
    "a package that is not there, imported": (
        "await import('not-there-2')",
        "Error",
        ["Cannot find package 'not-there-2'"],
    ),
    "an error with its cause": ("throw new Error('b', { cause: new Error('a') })", "Error", ["b", "cause", "a"]),
    "an object that cannot be shown": (
        "throw { [Symbol.for('nodejs.util.inspect.custom')]() { throw new Error('x') } }",
        "Uncaught",
        ["cannot be shown"],
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_says_where_and_nothing_of_ours(shared: Driven, name: str) -> None:
    code, kind, pieces = ERRORS[name]
    ran = shared.run(code)
    assert ran.status == "error"
    assert ran.reply["ename"] == kind
    for piece in pieces:
        assert piece in ran.error
    assert "workbench_guest" not in ran.error
    assert "inspector" not in ran.error
    assert "sourceURL" not in ran.error


def test_a_printed_error_has_no_lines_of_ours_either(shared: Driven) -> None:
    said = shared.run("console.log(new Error('printed').stack); console.error(new Error('two'))")
    assert said.text().startswith("Error: printed\n    at <cell ")
    assert "workbench_guest" not in said.text() + said.text("stderr")


def test_streams_come_in_order_with_displays_between(shared: Driven) -> None:
    code = (
        "console.log('a'); console.error('b'); display('c'); process.stdout.write('d'); process.stderr.write('e'); 'f'"
    )
    ran = shared.run(code)
    order = [
        one["content"].get("text") or one["content"]["data"]["text/plain"]
        for one in ran.messages
        if one["msg_type"] in ("stream", "display_data", "execute_result")
    ]
    assert order == ["a\n", "b\n", "'c'", "d", "e", "'f'"]


def test_bytes_written_are_text_even_when_cut_within_a_character(shared: Driven) -> None:
    code = "const b8 = Buffer.from('ä€😀'); for (const one of b8) process.stdout.write(Buffer.of(one)); process.stdout.write('|')"
    assert shared.run(code).text() == "ä€😀|"


def test_what_is_piped_to_stdout_is_printed(shared: Driven) -> None:
    code = """const { Readable } = require('stream'); const { once } = require('events');
    const from8 = Readable.from(['x', 'y']); from8.pipe(process.stdout); await once(from8, 'end'); console.log()"""
    assert shared.run(code).text() == "xy\n"


def test_long_lines_are_not_cut_within_a_character(shared: Driven) -> None:
    said = shared.run("process.stdout.write('😀'.repeat(200001)); undefined").text()
    assert said == "😀" * 200001


def test_console_table_works(shared: Driven) -> None:
    assert "│ (index) │" in shared.run("console.table([{ a: 1 }])").text()


def test_an_error_in_a_timer_is_told_and_the_kernel_lives(shared: Driven) -> None:
    code = "setTimeout(() => { throw new Error('later') }, 1); await new Promise((done) => setTimeout(done, 100)); 1"
    ran = shared.run(code)
    assert ran.result == "1"
    assert "Uncaught Error: later" in ran.text("stderr")
    ran = shared.run("Promise.reject(new Error('nobody')); await new Promise((done) => setTimeout(done, 100)); 2")
    assert ran.result == "2"
    assert "Uncaught (in promise) Error: nobody" in ran.text("stderr")


def test_displays_have_their_types(shared: Driven) -> None:
    png = bytes.fromhex("89504e470d0a1a0a")
    code = """display.html('<b>x</b>'); display.markdown`**${1}**`; display.svg('<svg/>'); display.json({ a: [1] });
    display.png(Buffer.from('89504e470d0a1a0a', 'hex')); display({ 'text/html': '<i>', 'text/plain': 'i' }, { raw: true });
    display({ [Symbol.for('Jupyter.display')]() { return { 'application/x': 'own' } } }); html`<u>${2}</u>`"""
    ran = shared.run(code)
    shown = [one["content"]["data"] for one in ran.of("display_data")]
    assert shown[:4] == [
        {"text/html": "<b>x</b>"},
        {"text/markdown": "**1**"},
        {"image/svg+xml": "<svg/>"},
        {"application/json": {"a": [1]}},
    ]
    assert base64.b64decode(shown[4]["image/png"]) == png
    assert shown[5] == {"text/html": "<i>", "text/plain": "i"}
    assert shown[6]["application/x"] == "own"
    assert ran.of("execute_result")[0]["content"]["data"]["text/html"] == "<u>2</u>"


def test_a_display_is_updated_and_cleared(shared: Driven) -> None:
    ran = shared.run(
        "const h8 = display('one', { display_id: 'id8' }); h8.update('two'); display('three', { display_id: 'id8', update: true }); display.clear({ wait: true })"
    )
    first = ran.of("display_data")[0]["content"]
    updates = [one["content"] for one in ran.of("update_display_data")]
    assert [one["data"]["text/plain"] for one in (first, *updates)] == ["'one'", "'two'", "'three'"]
    assert {one["transient"]["display_id"] for one in (first, *updates)} == {"id8"}
    assert ran.of("clear_output")[0]["content"] == {"wait": True}


def test_a_picture_in_a_buffer_is_not_a_picture_unless_asked(shared: Driven) -> None:
    ran = shared.run("Buffer.from('89504e470d0a1a0a', 'hex')")
    assert list(ran.of("execute_result")[0]["content"]["data"]) == ["text/plain"]


def test_a_receipt_names_what_is_new_gone_and_bound_again(kernel: Driven) -> None:
    first = kernel.run("let a = 1; var b = 2; globalThis.c = 3; class D {}; function e() {}; const list = []")
    assert first.metadata["workbench"]["added"] == ["D", "a", "b", "c", "e", "list"]
    second = kernel.run("a = 2; b = 2; delete globalThis.c; class D {}; list.push(1); import { sep } from 'path'")
    told = second.metadata["workbench"]
    assert (told["added"], told["removed"], told["rebound"], told["more"]) == (["sep"], ["c"], ["D", "a"], 0)
    third = kernel.run("process.chdir('/'); for (let i = 0; i < 300; i++) globalThis['n' + i] = i")
    assert third.metadata["workbench"]["cwd"] == "/"
    assert len(third.metadata["workbench"]["added"]) + third.metadata["workbench"]["more"] == 300


def test_variables_are_a_table_and_nothing_of_theirs_is_called(kernel: Driven) -> None:
    kernel.run(
        "let a = [1, 2, 3]; const b = 'text'; class Own { get x() { throw new Error('called') } }; var c = new Own()"
    )
    kernel.run(
        "const d = new Proxy({}, { get() { throw new Error('trapped') }, ownKeys() { while (true); } }); const f = () => 1"
    )
    rows = {row["name"]: row for row in kernel.ask("workbench_variables_request", {"most": 50})["variables"]}
    assert set(rows) == {"a", "b", "Own", "c", "d", "f"}
    assert rows["a"] == {"name": "a", "type": "Array", "size": "3 items", "preview": "[ 1, 2, 3 ]"}
    assert rows["b"]["size"] == "4 characters"
    assert rows["c"]["type"] == "Own"
    assert all(len(row["preview"]) <= 80 for row in rows.values())


def test_user_expressions_are_answered_each_by_itself(shared: Driven) -> None:
    ran = shared.run("let u1 = 5", user_expressions={"good": "u1 + 1", "bad": "nowhere_2"})
    told = ran.reply["user_expressions"]
    assert told["good"]["data"]["text/plain"] == "6"
    assert told["bad"]["ename"] == "ReferenceError"


def test_a_silent_cell_shows_nothing_and_is_not_counted(shared: Driven) -> None:
    before = shared.run("1").reply["execution_count"]
    silent = shared.run("2", silent=True)
    assert silent.of("execute_result") == silent.of("execute_input") == []
    assert shared.run("3").reply["execution_count"] == before + 1


def test_files_of_the_working_folder_are_required_and_imported(kernel: Driven, folder: Path) -> None:
    (folder / "mine.js").write_text("exports.one = 1", encoding="utf-8")
    (folder / "mine.mjs").write_text("export const two = 2; export default 3", encoding="utf-8")
    place = folder / "node_modules" / "pack"
    place.mkdir(parents=True)
    (place / "index.js").write_text("module.exports = { four: 4 }", encoding="utf-8")
    assert kernel.run("require('./mine').one").result == "1"
    assert kernel.run("import d, { two } from './mine.mjs'; [two, d]").result == "[ 2, 3 ]"
    assert kernel.run("require('pack').four + (await import('pack')).default.four").result == "8"
    assert kernel.run("import { four } from 'pack'; four").result == "4"
    (folder / "below").mkdir()
    (folder / "below" / "its.js").write_text("exports.five = 5", encoding="utf-8")
    assert kernel.run("process.chdir('below'); require('./its').five").result == "5"
    assert kernel.run("__dirname").result == f"'{folder}/below'"


def test_what_children_print_goes_to_the_descriptors(kernel: Driven) -> None:
    assert kernel.run("require('child_process').execSync('echo out').toString()").result == "'out\\n'"
    assert kernel.run("require('child_process').spawnSync('echo', ['out'], { stdio: 'inherit' }).status").text() == ""


def test_exit_in_a_cell_ends_the_kernel_with_its_code_and_all_that_was_printed(folder: Path) -> None:
    with driven(folder) as kernel:
        kernel.client.execute("for (let i = 0; i < 1000; i++) console.log('line ' + i); process.exit(7)")
        assert kernel.process.wait(20) == 7
        said = ""
        while "line 999\n" not in said:
            message = kernel.client.get_iopub_msg(timeout=20)
            said += message["content"].get("text", "")


def test_after_an_error_what_was_sent_meanwhile_is_not_run(kernel: Driven) -> None:
    ids = [
        kernel.client.execute(code)
        for code in ("await new Promise(d => setTimeout(d, 300)); throw 1", "globalThis.ran = 1")
    ]
    answers = {
        one["parent_header"]["msg_id"]: one["content"]["status"]
        for one in (kernel.client.get_shell_msg(timeout=20) for _ in ids)
    }
    assert [answers[one] for one in ids] == ["error", "aborted"]
    kernel.client.get_iopub_msg(timeout=20)
    assert kernel.run("typeof ran").result == "'undefined'"


def test_the_same_over_tcp(folder: Path) -> None:
    with driven(folder, "tcp") as kernel:
        assert kernel.run("1 + 1").result == "2"
