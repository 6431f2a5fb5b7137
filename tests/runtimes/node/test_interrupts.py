"""An interrupt ends the cell and keeps the state, whatever the cell does."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.runtimes.node.driving import Driven, driven

HERE = "process.stdout.write('here'); "
BUSY = {
    "a loop": "while (true);",
    "a loop that catches": "while (true) { try { while (true); } catch {} }",
    "a wait for nothing": "await new Promise(() => {})",
    "a flood of microtasks": "await (async () => { while (true) await null })()",
    "a flood of ticks": "const tick = () => process.nextTick(tick); tick(); await new Promise(() => {})",
    "a flood of immediates": "const go = () => setImmediate(go); go(); await new Promise(() => {})",
    "a flood of timers": "setInterval(() => {}, 0); await new Promise(() => {})",
    "a loop in a timer": "setTimeout(() => { while (true); }, 1); await new Promise(() => {})",
    "a regular expression": "/(a+)+$/.test('a'.repeat(40) + 'b')",
    "Atomics.wait": "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)",
    "a lot of JSON": "JSON.parse('[' + '1,'.repeat(3e6) + '1]'); while (true);",
    "a child that is waited for": "require('child_process').execSync('sleep 100')",
    "a child that is awaited": "await require('util').promisify(require('child_process').exec)('sleep 100')",
    "a child that ignores the signal": "require('child_process').spawn('sh', ['-c', 'trap \"\" INT; sleep 100']); "
    "await new Promise(() => {})",
    "a flood of output": "for (let i = 0; ; i++) console.log(i)",
    "a promise as the last value": "new Promise(() => {})",
    "an await before a loop": "await new Promise((done) => setTimeout(done, 400)); while (true);",
    "a sleep in a loop": "const { setTimeout: sleep } = require('timers/promises'); while (true) await sleep(1)",
}


@pytest.mark.parametrize("name", BUSY)
def test_an_interrupt_keeps_the_state(folder: Path, name: str) -> None:
    with driven(folder) as kernel:
        kernel.run("let kept = { a: 1 }")
        ran = kernel.interrupted(HERE + BUSY[name])
        assert ran.status == "error"
        if "child" not in name:
            assert ran.reply["ename"] == "Interrupted"
        assert kernel.run("kept.a").result == "1"
        assert kernel.run("await new Promise((done) => setTimeout(done, 300)); 'calm'").result == "'calm'"


def test_an_interrupt_between_cells_does_nothing_to_the_next(kernel: Driven) -> None:
    for _ in range(5):
        kernel.interrupt()
        assert kernel.run("await new Promise((done) => setTimeout(done, 200)); 1").result == "1"


def test_the_signal_alone_ends_neither_the_kernel_nor_a_cell(kernel: Driven) -> None:
    code = "process.kill(process.pid, 'SIGINT'); await new Promise((done) => setTimeout(done, 200)); 1"
    assert kernel.run(code).result == "1"


def test_the_agents_own_handler_of_the_signal_is_called_too(kernel: Driven) -> None:
    kernel.run("var heard = 0; process.on('SIGINT', () => { heard += 1 })")
    kernel.interrupted(HERE + "await new Promise(() => {})")
    assert kernel.run("heard").result == "1"


@pytest.mark.parametrize("code", ["await new Promise(() => {})", "new Promise(() => {})"])
def test_what_waits_for_nothing_may_be_collected_and_the_kernel_lives(kernel: Driven, code: str) -> None:
    kernel.run("const { setFlagsFromString } = require('v8'); setFlagsFromString('--expose-gc')")
    kernel.run("var collect = require('vm').runInNewContext('gc'); let kept = 1")
    kernel.interrupted(f"setInterval(() => collect(), 5); process.stdout.write('here'); {code}")
    assert kernel.run("collect(); collect(); kept").result == "1"
