"""What the one suite of behaviours says in each language."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """Code for each behaviour; an empty one where the language has no such thing."""

    runtime: str
    assign: str
    """binds x to 41"""
    use: str
    """whose value is x + 1"""
    value: str = "42"
    """as it is shown"""
    again: str
    """binds x to 41 once more, as a declaration"""
    declares: tuple[str, str] = ("", "")
    """a function or class, and what uses it"""
    raises: str
    """in its third line, the word `broken`"""
    error: str
    """what is raised there, as the result names it"""
    error_line: str
    """how the traceback names that line"""
    syntax: str
    """what cannot be read"""
    prints: str
    """`out` to stdout and `err` to stderr"""
    child_prints: str
    """a program that it starts prints `from a child`"""
    leaves: str
    """starts `sleep 4711` in the background"""
    mark: str
    """writes the file that FILE names, and then goes on"""
    endless: tuple[tuple[str, str], ...]
    """what runs on and on, by name; interrupts end it and keep the state"""
    flood: str
    """prints 5,000,000 characters and a last line `end of the flood`"""
    displays: str
    """shows 2,000 things"""
    awaited: str = ""
    """waits for something asynchronous, and has 42 as its value"""
    writes: str
    """`kept` into /mnt/files/from_code.txt"""
    picture: str = ""
    """draws one"""
    ends: str
    """ends its own process"""
    killed: str
    """prints `before the end`, then kills its own process with signal 9"""
    folder: str
    """whose value has the working folder in it"""
    name: str = "x"
    helper: str = ""
    """asks a helper for something that there is not; says `refused` then"""
    remembers: bool = False
    """whether its memory is kept beside it"""
    receipts: bool = True
    """whether it tells names"""


PYTHON = Language(
    runtime="python",
    assign="x = 41",
    use="x + 1",
    again="x = 41",
    declares=("class Point:\n    size = 42", "Point.size"),
    raises="a = 1\nb = 2\nraise ValueError('broken')",
    error="ValueError",
    error_line="line 3",
    syntax="for for",
    prints="import sys\nprint('out')\nprint('err', file=sys.stderr)",
    child_prints="import os\n_ = os.system('echo from a child')",
    leaves="import subprocess\nleft = subprocess.Popen(['sleep', '4711'])",
    mark="open(FILE, 'w').close()",
    endless=(
        ("a loop", "while True: pass"),
        ("sleep", "import time; time.sleep(1000)"),
        ("await", "import asyncio; await asyncio.sleep(1000)"),
        ("a child", "import subprocess; subprocess.run(['sleep', '1000'])"),
        ("a regular expression", "import re; re.match(r'(a+)+$', 'a' * 40 + 'b')"),
    ),
    flood="print('\\n'.join('%09d' % i for i in range(500_000)))\nprint('end of the flood')",
    displays="from IPython.display import display\nfor i in range(2000): display(i)",
    awaited="import asyncio\nawait asyncio.sleep(0.01, 42)",
    writes="_ = open('/mnt/files/from_code.txt', 'w').write('kept')",
    picture="import matplotlib.pyplot as plt\n_ = plt.plot([1, 2, 3])",
    ends="import os; os._exit(3)",
    killed="import os; print('before the end', flush=True); os.kill(os.getpid(), 9)",
    folder="import os; os.getcwd()",
    helper="data, error = run_composio_tool('NO_SUCH_TOOL', {})\nprint('refused' if error else data)",
    remembers=True,
)

NODE = Language(
    runtime="node",
    assign="let x = 41",
    use="x + 1",
    again="const x = 41",
    declares=("class Point { static size = 42 }", "Point.size"),
    raises="const a = 1\nconst b = 2\nthrow new TypeError('broken')",
    error="TypeError",
    error_line=":3:",
    syntax="let let = for",
    prints="console.log('out'); console.error('err')",
    child_prints="require('child_process').execSync('echo from a child', {stdio: 'inherit'}); undefined",
    leaves="require('child_process').spawn('sleep', ['4711'], {stdio: 'ignore'}); undefined",
    mark="require('fs').writeFileSync(FILE, '');",
    endless=(
        ("a loop", "while (true) {}"),
        ("await", "await new Promise(() => setTimeout(() => {}, 1e9))"),
        ("microtasks", "const spin = () => Promise.resolve().then(spin); await spin()"),
        ("a regular expression", "/(a+)+$/.test('a'.repeat(40) + 'b')"),
        ("Atomics.wait", "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)"),
        ("a child", "require('child_process').execSync('sleep 1000')"),
        ("timers", "await new Promise(() => setInterval(() => { for (let i = 0; i < 1e6; i++); }, 0))"),
    ),
    flood="for (let i = 0; i < 500_000; i++) process.stdout.write(String(i).padStart(9, '0') + '\\n')\n"
    "console.log('end of the flood')",
    displays="for (let i = 0; i < 2000; i++) display(i); undefined",
    awaited="await new Promise(done => setTimeout(() => done(42), 10))",
    writes="require('fs').writeFileSync('/mnt/files/from_code.txt', 'kept')",
    picture="display.png(Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJ"
    "RU5ErkJggg==', 'base64')); undefined",
    ends="process.exit(3)",
    killed="console.log('before the end')\nawait new Promise(r => setTimeout(r, 300))\n"
    "process.kill(process.pid, 'SIGKILL')",
    folder="process.cwd()",
    helper="await runComposioTool('NO_SUCH_TOOL', {}).then(console.log, () => console.log('refused'))",
)

R = Language(
    runtime="r",
    assign="x <- 41",
    use="x + 1",
    value="[1] 42",
    again="x <- 41",
    declares=("size <- function() 42", "size()"),
    raises="a <- 1\nb <- 2\nstop('broken')",
    error="simpleError",
    error_line="broken",
    syntax="x <- <-",
    prints="cat('out\\n'); message('err')",
    child_prints="invisible(system('echo from a child'))",
    leaves="system('sleep 4711', wait = FALSE)",
    mark="invisible(file.create(FILE))",
    endless=(
        ("a loop", "while (TRUE) {}"),
        ("sleep", "Sys.sleep(1000)"),
        ("arithmetic", "repeat sum(as.numeric(1:1e7))"),
        ("a child", "invisible(system('sleep 1000'))"),
    ),
    flood="cat(sprintf('%09d\\n', 0:499999), sep = '')\ncat('end of the flood\\n')",
    displays="for (i in 1:2000) IRdisplay::display_text(i)",
    writes="writeLines('kept', '/mnt/files/from_code.txt')",
    picture="plot(1:3)",
    ends="Sys.sleep(0.3); tools::pskill(Sys.getpid(), 15); Sys.sleep(60)",
    killed="cat('before the end\\n'); Sys.sleep(0.3); tools::pskill(Sys.getpid(), 9); Sys.sleep(60)",
    folder="getwd()",
    helper="tryCatch(run_composio_tool('NO_SUCH_TOOL', list()), workbench_error = function(e) cat('refused\\n'))",
)

BASH = Language(
    runtime="bash",
    assign="x=41",
    use="echo $((x + 1))",
    again="x=41",
    declares=("size() { echo 42; }", "size"),
    raises="a=1\nb=2\nthis_is_no_program",
    error="",
    error_line="",
    syntax="for for",
    prints="echo out; echo err >&2",
    child_prints="sh -c 'echo from a child'",
    leaves="sleep 4711 &",
    mark="touch FILE",
    endless=(("a loop", "while true; do :; done"), ("a child", "sleep 1000")),
    flood="seq -f %09.0f 0 499999; echo end of the flood",
    displays="",
    writes="printf kept > /mnt/files/from_code.txt",
    ends="kill -TERM $$; kill -KILL $$",
    killed="echo before the end; kill -9 $$",
    folder="pwd",
    receipts=False,
)

LANGUAGES = {one.runtime: one for one in (PYTHON, NODE, R, BASH)}
