"""Features that cells alone can show."""

from __future__ import annotations

from tests.kernel.feature import Feature, cells, plain
from tests.kernel.notebook import Notebook

_SQUARES = "import asyncio\nasync def squares():\n    for i in range(3):\n        yield await asyncio.sleep(0, i * i)\n"


async def _exception_group(notebook: Notebook) -> None:
    """IPython leaves these to Python, which prints them."""
    answer = await notebook.run("raise ExceptionGroup('several', [ValueError(1), TypeError(2)])")
    assert answer.reply["status"] == "error"
    assert answer.reply["ename"] == "ExceptionGroup"
    said = answer.stderr + plain("\n".join(answer.error.get("traceback", [])))
    assert "several" in said
    assert "TypeError: 2" in said


async def _last_traceback(notebook: Notebook) -> None:
    await notebook.run("1 / 0")
    assert (await notebook.run("%tb")).error["ename"] == "ZeroDivisionError"


async def _last_value(notebook: Notebook) -> None:
    await notebook.run("1 / 0")
    assert (await notebook.run("import sys\ntype(sys.last_value).__name__")).result == "'ZeroDivisionError'"


async def _no_magic(notebook: Notebook) -> None:
    answer = await notebook.run("%no_such_magic")
    assert answer.reply["ename"] == "UsageError"
    assert "not found" in answer.stderr


LANGUAGE = [
    cells("an expression", "1 + 1", result="2"),
    cells("a semicolon keeps the value to itself", "41 + 1;", stdout=r"\A\Z"),
    cells("Out and _", "6 * 7", "_ + Out[max(Out)]", result="84"),
    cells("In", "'remember'", "'remember' in In[-2]", result="True"),
    cells("the value of a cell by its number", "'kept'", "n = max(k for k in Out)\nOut[n]", result="'kept'"),
    cells("unicode", "print('日本語 🦜 é')", stdout="日本語 🦜 é"),
    cells("a lone surrogate", "print('\\udc80')", stdout="."),
    cells("__name__", "__name__ == '__main__'", result="True"),
    cells("a dataclass", "import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int\nP(3)", result="P(x=3)"),
    cells("the source of a function", "def f_src():\n    return 5", "import inspect\ninspect.getsource(f_src)", value=
          "return 5"),
    cells(
        "a function of the session is pickled by name",
        "import pickle\ndef twice(x):\n    return 2 * x",
        "pickle.loads(pickle.dumps(twice))(4)",
        result="8",
    ),
    cells(
        "a module of the working folder",
        "with open('mod_of_cwd.py', 'w') as f: _ = f.write('answer = 42')",
        "import mod_of_cwd\nmod_of_cwd.answer",
        result="42",
    ),
    cells("how libraries find out that this is a notebook",
          "shell = get_ipython()\n(type(shell).__name__, 'IPKernelApp' in shell.config, shell.has_trait('kernel'))",
          result="('ZMQInteractiveShell', True, True)"),
    cells("a cell inside a cell", "get_ipython().run_cell('inner = 5\\nprint(inner)').success", stdout="5", result=
          "True"),
    cells("sys.argv and sys.stdin", "import sys\nlen(sys.argv) >= 1 and sys.stdin is not None", result="True"),
    cells("sys.stdout has a descriptor", "import sys, os\nos.write(sys.stdout.fileno(), b'by number\\n')", stdout=
          "by number"),
    cells("a hook after each cell",
          "calls = []\nhook = lambda result: calls.append(result.success)\n"
          "get_ipython().events.register('post_run_cell', hook)"
          ,
          "get_ipython().events.unregister('post_run_cell', hook)\nlen(calls) >= 1 and calls[-1]", result="True"),
    cells("a transformer of the input",
          "def swap(lines):\n    return [l.replace('AAA', 'BBB') for l in lines]\n"
          "get_ipython().input_transformers_cleanup.append(swap)"
          ,
          "'AAA'", result="'BBB'"),
    cells("and it goes again", "get_ipython().input_transformers_cleanup.clear()", "'AAA'", result="'AAA'"),
]  # fmt: skip

ASYNC = [
    cells("top-level await", "import asyncio\nawait asyncio.sleep(0.01, 'done')", result="'done'"),
    cells("async for", _SQUARES + "[x async for x in squares()]", result="[0, 1, 4]"),
    cells("async with", "import asyncio\nlock = asyncio.Lock()\nasync with lock:\n    print(lock.locked())", stdout=
          "True"),
    cells("a running loop", "import asyncio\nasyncio.get_running_loop().is_running()", result="True"),
    cells(
        "a task lives across cells",
        "import asyncio\nticks = []\nasync def tick():\n    while len(ticks) < 3:\n        ticks.append(1)\n"
        "        await asyncio.sleep(0.01)\ntask = asyncio.create_task(tick())",
        "await task\nlen(ticks)",
        result="3",
    ),
    cells("autoawait is on", "%autoawait", stdout="is `on`"),
    cells("autoawait off and on", "%autoawait off", "%autoawait on", "import asyncio\nawait asyncio.sleep(0, 5)"
          , result="5"),
    cells("asyncio.to_thread", "import asyncio\nawait asyncio.to_thread(lambda: 7)", result="7"),
    cells("a subprocess of asyncio",
          "import asyncio\np = await asyncio.create_subprocess_exec('echo', 'sub', stdout=-1)\n"
          "(await p.communicate())[0]"
          ,
          result="b'sub\\n'"),
    cells("a coroutine that raises", "async def bad(): 1 / 0", "await bad()", raises="ZeroDivisionError", traceback=
          "bad()"),
]  # fmt: skip

MAGICS = [
    cells("%time", "%time sum(range(10))", stdout="Wall time", result="45"),
    cells("%timeit", "%timeit -n 2 -r 2 1 + 1", stdout="per loop"),
    cells("%%time", "%%time\ntotal = 3", stdout="Wall time"),
    cells("%%timeit", "%%timeit -n 2 -r 2 x = 1\nx + 1", stdout="per loop"),
    cells("%who", "whose = 1\n%who", stdout="whose"),
    cells("%who_ls", "whom = 'a'\nnames = %who_ls str\n'whom' in names", result="True"),
    cells("%whos", "which = [1, 2]\n%whos", stdout=r"which\s+list\s+n=2"),
    cells("%cd and %pwd", "%mkdir -p sub_folder", "%cd sub_folder", "here = %pwd\n%cd ..\nhere.endswith('sub_folder')"
          , result="True"),
    cells("%env", "%env PARITY=yes", "import os\nos.environ['PARITY']", result="'yes'"),
    cells("%%writefile and %run",
          "%%writefile script.py\nimport sys\nfrom_script = len(sys.argv)\nprint('ran', __name__)",
          "%run script.py a b\nfrom_script", stdout="ran __main__", result="3"),
    cells("%load_ext and %reload_ext", "%load_ext autoreload", "%reload_ext autoreload\n%autoreload 0", stdout=r"\A\Z"),
    cells("%autoreload", "with open('reloaded.py', 'w') as f: _ = f.write('v = 1')",
          "import reloaded\n%autoreload 2",
          "import os\nwith open('reloaded.py', 'w') as f: _ = f.write('v = 22')\nos.utime('reloaded.py', (2e9, 2e9))",
          "reloaded.v", result="22"),
    cells("%autoreload off", "%autoreload 0", stdout=r"\A\Z"),
    cells("%%bash", "%%bash\necho from bash $((1 + 2))\necho wrong >&2", stdout="from bash 3", stderr="wrong"),
    cells("%%bash that fails", "%%bash\nexit 3", raises="CalledProcessError"),
    cells("%%sh with output in a name", "%%sh --out caught\necho into a name", "caught", result="'into a name\\n'"),
    cells("%%python in a process", "%%script python3 -\nprint(6 * 7)", stdout="42"),
    cells("%%capture", "%%capture held\nimport sys\nprint('out')\nprint('err', file=sys.stderr)\n5",
          "(held.stdout, held.stderr, len(held.outputs))", result="('out\\n', 'err\\n', 1)"),
    cells("%%html and %%latex", "%%html\n<b>bold</b>", shows=("text/html", "<b>bold</b>")),
    cells("%%javascript", "%%javascript\nlet a = 1", shows=("application/javascript", "let a")),
    cells("%%markdown", "%%markdown\n# Title", shows=("text/markdown", "# Title")),
    cells("%pip", "%pip --version", stdout=r"pip \d+"),
    cells("%config", "%config ZMQInteractiveShell.ast_node_interactivity", result="'last_expr'"),
    cells("%config changes", "%config ZMQInteractiveShell.ast_node_interactivity = 'all'", "1\n2", result="2", stdout=
          r"\A\Z"),
    cells("and back", "%config ZMQInteractiveShell.ast_node_interactivity = 'last_expr'\n3", result="3"),
    cells("%history", "unlikely_word = 1", "%history -l 2", stdout="unlikely_word"),
    cells("%history -g searches", "%history -g unlikely_word", stdout="unlikely_word"),
    cells("%recall and %rerun", "print('again and again')", "%rerun -l 1", stdout="again and again"),
    cells("%macro", "print('of a macro')",
          "n = get_ipython().execution_count - 2\nget_ipython().run_line_magic('macro', f'-q mac {n}')", "mac"
          , stdout="of a macro"),
    cells("%save", "saved_value = 9",
          "n = get_ipython().execution_count - 2\nget_ipython().run_line_magic('save', f'-f saved {n}')\n"
          "open('saved.py').read()",
          value="saved_value = 9"),
    cells("%pdoc", "import os\n%pdoc os.getcwd", paged="current working directory"),
    cells("obj?", "def documented():\n    '''Says what it is.'''", "documented?", paged="Says what it is."),
    cells("obj??", "def with_source():\n    return 'the source'", "with_source??", paged="the source"),
    cells("%pinfo of nothing", "no_such_thing?", stdout="not found"),
    cells("%psource", "%psource with_source", paged="the source"),
    cells("*wild*?", "wildcard_name = 1", "wildcard*?", paged="wildcard_name"),
    cells("%lsmagic", "%lsmagic", value="%timeit"),
    cells("%quickref and %magic", "%quickref", paged="IPython"),
    cells("%precision", "%precision 2", "3.14159", result="3.14"),
    cells("%precision back", "%precision\n2.5", result="2.5"),
    cells("%prun", "%prun -q sum(range(10))", stdout=r"\A\s*\Z"),
    cells("%xmode", "%xmode Plain", "%xmode Context", stdout="Context"),
    cells("%alias", "%alias say_it echo said %s", "%say_it word", stdout="said word"),
    cells("%bookmark and %dhist", "%dhist", stdout="Directory history"),
    cells("%store", "to_store = 5\n%store to_store", stdout="Stored 'to_store'"),
    cells("%logstart", "%logstop", stdout="."),
    cells("%matplotlib", "%matplotlib inline\nimport matplotlib\nmatplotlib.get_backend()", value="inline"),
    cells("%set_env and %env of one", "%set_env ONE_MORE 1", "%env ONE_MORE", result="'1'"),
    cells("a magic of one's own",
          "from IPython.core.magic import register_cell_magic\n@register_cell_magic\ndef shout(line, cell):\n"
          "    print(cell.upper())",
          "%%shout\nhello", stdout="HELLO"),
]  # fmt: skip

# Last of all: they take away what other features have made.
RESET = [
    cells("%reset", "to_forget = 1", "%reset -f", "'to_forget' in globals()", result="False"),
    cells("%reset_selective", "drop_a = drop_b = 1", "%reset_selective -f drop_\n'drop_a' in globals()", result=
          "False"),
    cells("exit is still there after a reset", "%reset -f", "callable(exit) and callable(quit)", result="True"),
    cells("%xdel", "import sys\ngone_soon = [1]", "%xdel gone_soon\n'gone_soon' in globals()", result="False"),
    cells("a pool of spawned processes after %reset", "%reset -f",
          "import multiprocessing as mp\nwith mp.get_context('spawn').Pool(2) as pool:\n"
          "    print(pool.map(abs, [-1, -2]))"
          ,
          stdout=r"\[1, 2\]"),
]  # fmt: skip

SHELL = [
    cells("!cmd", "!echo to the shell", stdout="to the shell"),
    cells("x = !cmd", "lines = !printf 'a\\nb\\n'\nlist(lines)", result="['a', 'b']"),
    cells("!cmd with a name of Python's", "word = 'expanded'\n!echo {word} $word", stdout="expanded expanded"),
    cells("!! and its list", "!!echo twice", value="twice"),
    cells("_exit_code", "!exit 3", "_exit_code", result="3"),
    cells("!cd does not last", "import os\nbefore = os.getcwd()\n!cd /tmp", "os.getcwd() == before", result="True"),
    cells("! in a loop", "for i in range(3):\n    !echo turn {i}", stdout="turn 0.*turn 1.*turn 2"),
    cells("!cmd's errors", "!echo to stderr >&2", stdout="to stderr"),
    cells("a pipe", "!printf 'b\\na\\n' | sort", stdout="a\r?\nb"),
]  # fmt: skip

ERRORS = [
    cells("a SyntaxError", "x = = 1", raises="SyntaxError", traceback=r"x = = 1"),
    cells("an IndentationError", "if 1:\nx = 1", raises="IndentationError"),
    cells("a NameError with the line", "a = 1\nb = 2\nundefined_thing", raises="NameError", traceback=
          r"-+> 3 undefined_thing"),
    cells("a function of an earlier cell", "def thrower():\n    raise ValueError('from afar')", "thrower()",
          raises="ValueError", traceback=r"raise ValueError\('from afar'\)"),
    cells("a chain of exceptions", "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError('k') from e",
          raises="KeyError", traceback="ZeroDivisionError.*direct cause.*KeyError"),
    cells("an exception in a handler", "try:\n    1 / 0\nexcept ZeroDivisionError:\n    {}['k']",
          raises="KeyError", traceback="During handling"),
    Feature("an exception group", _exception_group),
    cells("an exception with notes", "e = ValueError('noted')\ne.add_note('look here')\nraise e", raises="ValueError"
          , traceback="look here"),
    cells("an exception whose text raises",
          "class Bad(Exception):\n    def __str__(self): raise ValueError\nraise Bad", raises="ValueError"),
    cells("a repr that raises", "class NoRepr:\n    def __repr__(self): raise ValueError('in repr')", "NoRepr()"
          , traceback="in repr", raises="ValueError"),
    cells("the cells go on after an error", "1 + 1", result="2"),
    cells("%debug without anybody to type", "def dbg():\n    local = 1\n    return local / 0",
          "try:\n    get_ipython().run_cell('dbg()')\nfinally:\n    print('over')",
          stdout="over"),
    Feature("%tb", _last_traceback),
    Feature("a magic that is not there", _no_magic),
    Feature("sys.last_value", _last_value),
    cells("a warning", "import warnings\nwarnings.warn('be careful')", stderr="UserWarning: be careful"),
    cells("a warning of ours once",
          "import warnings\nwarnings.simplefilter('error')\ntry:\n    warnings.warn('x')\nexcept UserWarning:\n"
          "    print('raised')\nwarnings.resetwarnings()",
          stdout="raised"),
    cells("KeyboardInterrupt raised by hand", "raise KeyboardInterrupt", raises="KeyboardInterrupt"),
    cells("an assertion", "assert 1 == 2, 'not equal'", raises="AssertionError", traceback="not equal"),
    cells("SystemExit with a code", "import sys\nsys.exit('with words')", raises="SystemExit"),
    cells("traceback.print_exc",
          "import traceback\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    traceback.print_exc()", stderr=
          "ZeroDivisionError"),
    cells("faulthandler",
          "import faulthandler, tempfile\nf = tempfile.TemporaryFile()\nfaulthandler.dump_traceback(f)\n"
          "faulthandler.is_enabled()",
          value="True|False"),
]  # fmt: skip
