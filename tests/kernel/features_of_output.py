"""Features of display, and of everything that prints: threads, children, C code."""

from __future__ import annotations

from tests.kernel.feature import Feature, cells
from tests.kernel.notebook import Notebook

_PLOT = "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])"
_OBJECT = "class Rich:\n    def _repr_html_(self): return '<i>rich</i>'\n    def _repr_json_(self): return {'a': 1}"
# A child must not run the rest of the kernel.
_FORK = (
    "import os\npid = os.fork()\nif pid == 0:\n    try:\n        {child}\n    finally:\n        os._exit(0)\n"
    "_ = os.waitpid(pid, 0)"
)
_POOL = "import multiprocessing as mp\nwith mp.get_context('{how}').Pool(2) as pool: print(pool.map(abs, [-1, -2, -3]))"


async def _update_display(notebook: Notebook) -> None:
    answer = await notebook.run(
        "from IPython.display import display\nh = display('one', display_id='known')\nh.update('two')"
    )
    (first, shown), (second, updated) = answer.told
    assert (first, second) == ("display_data", "update_display_data")
    assert shown["transient"] == updated["transient"] == {"display_id": "known"}
    assert updated["data"]["text/plain"] == "'two'"
    again = await notebook.run("h.update('three')")
    assert again.kinds() == ["update_display_data"]


async def _clear_output(notebook: Notebook) -> None:
    answer = await notebook.run(
        "from IPython.display import clear_output\nprint('before')\nclear_output(wait=True)\nprint('after')"
    )
    assert [kind for kind in answer.kinds() if kind == "clear_output"] == ["clear_output"]
    before = answer.kinds().index("clear_output")
    assert [content["text"] for kind, content in answer.told[:before] if kind == "stream"] == ["before\n"]
    assert dict(answer.told)["clear_output"] == {"wait": True}


async def _order(notebook: Notebook) -> None:
    code = "from IPython.display import display\nprint('1')\ndisplay('2')\nprint('3')\n'4'"
    answer = await notebook.run(code)
    assert answer.kinds() == ["stream", "display_data", "stream", "execute_result"]


async def _metadata(notebook: Notebook) -> None:
    answer = await notebook.run(
        "from IPython.display import display\ndisplay({'text/plain': 'x'}, metadata={'text/plain': {'k': 1}}, raw=True)"
    )
    assert answer.told[0][1]["metadata"] == {"text/plain": {"k": 1}}


async def _figures_closed(notebook: Notebook) -> None:
    assert (await notebook.run(_PLOT)).shown("image/png")
    assert not (await notebook.run("1")).shown("image/png")


async def _os_system_in_order(notebook: Notebook) -> None:
    answer = await notebook.run("import os\nprint('first')\n_ = os.system('echo second')\nprint('third')")
    assert answer.stdout == "first\nsecond\nthird\n"


async def _thread_after_its_cell(notebook: Notebook) -> None:
    """Stock gives it to the cell that started the thread."""
    await notebook.run(
        "import threading\ngo = threading.Event()\n"
        "late = threading.Thread(target=lambda: (go.wait(), print('from a thread')))\nlate.start()"
    )
    answer = await notebook.run("go.set()\nlate.join()")
    printed = answer.stdout + notebook.stray_text()
    assert "from a thread" in printed


async def _flood(notebook: Notebook) -> None:
    answer = await notebook.run("from IPython.display import display\nfor i in range(3000):\n    display(i)")
    assert [int(one) for one in answer.shown("text/plain")] == list(range(3000))


DISPLAY = [
    cells("html", "from IPython.display import HTML\nHTML('<b>x</b>')", shows=("text/html", "<b>x</b>")),
    cells("json", "from IPython.display import JSON\nJSON({'a': [1]})", shows=("application/json", r"\{'a': \[1\]\}")),
    cells("latex", "from IPython.display import Latex\nLatex('$x^2$')", shows=("text/latex", r"\$x\^2\$")),
    cells("math", "from IPython.display import Math\nMath('x^2')", shows=("text/latex", "x.2")),
    cells("markdown", "from IPython.display import Markdown\nMarkdown('**m**')", shows=("text/markdown", "m")),
    cells("svg", "from IPython.display import SVG\nSVG('<svg></svg>')", shows=("image/svg+xml", "<svg")),
    cells("javascript", "from IPython.display import Javascript\nJavascript('1')", shows=("application/javascript",
          "1")),
    cells("png", "import base64\nfrom IPython.display import Image\nImage(base64.b64decode('iVBORw0KGgo='))",
          shows=("image/png", "iVBORw0KGgo=")),
    cells("audio", "from IPython.display import Audio\nAudio([0.0, 0.1], rate=8000)", shows=("text/html", "<audio")),
    cells("an object that shows itself", _OBJECT, "Rich()", shows=("text/html", "<i>rich</i>")),
    cells("a formatter of one's own", "class Own: pass",
          "get_ipython().display_formatter.formatters['text/html'].for_type(Own, lambda o: '<p>own</p>')\nOwn()",
          shows=("text/html", "<p>own</p>")),
    Feature("update_display", _update_display),
    Feature("clear_output", _clear_output),
    Feature("prints and displays in their order", _order),
    Feature("metadata of a display", _metadata),
    cells("pandas", "import pandas as pd\npd.DataFrame({'col': [1, 2]})", shows=("text/html", "<th>col</th>")),
    cells("pandas as text", "import pandas as pd\npd.Series([1.5])", value=r"0 +1\.5"),
    cells("numpy", "import numpy as np\nnp.arange(3)", result="array([0, 1, 2])"),
    cells("a plot at the end of a cell", _PLOT, shows=("image/png", "^iVBOR")),
    cells("plt.show", f"{_PLOT}\nplt.show()\nprint('after')", shows=("image/png", "^iVBOR"), stdout="after"),
    cells("a figure as the last value", "import matplotlib.pyplot as plt\nfig, ax = plt.subplots()\nplt.close()\nfig",
          shows=("image/png", "^iVBOR")),
    Feature("figures are closed with their cell", _figures_closed),
    cells("savefig", f"{_PLOT}\nplt.savefig('f.png')\nplt.close('all')\nopen('f.png', 'rb').read(4)", result=
          "b'\\x89PNG'"),
    cells("svg figures", "%config InlineBackend.figure_formats = ['svg']", _PLOT, shows=("image/svg+xml", "<svg")),
    cells("png figures again", "%config InlineBackend.figure_formats = ['png']", _PLOT, shows=("image/png", "^iVBOR")),
    cells("Agg by name", "import matplotlib\nmatplotlib.use('Agg')\nmatplotlib.get_backend().lower()", result="'agg'"),
    cells("inline again", "%matplotlib inline", _PLOT, shows=("image/png", "^iVBOR")),
    cells("a progress bar's carriage returns", "print('10%\\r20%', end='')", stdout="10%\r20%"),
    cells("pretty printing", "{i: 'x' * 30 for i in range(5)}", value=r"0: 'x+',\n 1:"),
    cells("a long list is shortened", "list(range(2000))", value=r"\.\.\."),
]  # fmt: skip

PROCESSES = [
    cells("print to stderr", "import sys\nprint('wrong', file=sys.stderr)", stderr="wrong"),
    cells("a thread",
          "import threading\nt = threading.Thread(target=lambda: print('in a thread'))\nt.start()\nt.join()",
          stdout="in a thread"),
    Feature("a thread after its cell", _thread_after_its_cell),
    cells("an exception in a thread",
          "import threading\nt = threading.Thread(target=lambda: 1 / 0)\nt.start()\nt.join()",
          stderr="ZeroDivisionError"),
    cells("concurrent.futures with threads",
          "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(2) as e:\n"
          "    print(list(e.map(abs, [-1, -2])))"
          ,
          stdout=r"\[1, 2\]"),
    cells("concurrent.futures with processes",
          "from concurrent.futures import ProcessPoolExecutor\nwith ProcessPoolExecutor(2) as e:\n"
          "    print(list(e.map(abs, [-1, -2])))"
          ,
          stdout=r"\[1, 2\]"),
    cells("a pool of forks", _POOL.format(how="fork"), stdout=r"\[1, 2, 3\]"),
    cells("a pool of spawned processes", _POOL.format(how="spawn"), stdout=r"\[1, 2, 3\]"),
    cells("a pool of a fork server", _POOL.format(how="forkserver"), stdout=r"\[1, 2, 3\]"),
    cells("a function of the session in a pool of forks", "def cube(x): return x ** 3",
          "import multiprocessing as mp\nwith mp.get_context('fork').Pool(2) as pool:\n"
          "    print(pool.map(cube, [1, 2]))"
          ,
          stdout=r"\[1, 8\]"),
    cells("a queue between processes",
          "import multiprocessing as mp\nc = mp.get_context('fork')\nq = c.Queue()\n"
          "p = c.Process(target=q.put, args=(5,))\np.start()\nv = q.get()\np.join()\nv"
          ,
          result="5"),
    cells("a process that prints",
          "import multiprocessing as mp\n"
          "p = mp.get_context('fork').Process(target=print, args=('of a child',))\np.start()\np.join()"
          ,
          stdout="of a child"),
    cells("subprocess.run",
          "import subprocess\nsubprocess.run(['echo', 'caught'], capture_output=True, text=True).stdout", result=
          "'caught\\n'"),
    cells("subprocess into sys.stdout",
          "import subprocess, sys\n_ = subprocess.run(['echo', 'inherited'], stdout=sys.stdout)", stdout="inherited"),
    cells("subprocess with nothing said", "import subprocess\n_ = subprocess.run(['echo', 'by descriptor'])", stdout=
          "by descriptor"),
    cells("a subprocess does not wait for input",
          "import subprocess\nsubprocess.run(['cat'], capture_output=True, stdin=subprocess.DEVNULL).returncode"
          , result="0"),
    Feature("os.system in its order", _os_system_in_order),
    cells("print in a fork", _FORK.format(child="print('child prints', flush=True)"), stdout="child prints"),
    cells("descriptor 1", "import os\n_ = os.write(1, b'raw one\\n')", stdout="raw one"),
    cells("descriptor 2", "import os\n_ = os.write(2, b'raw two\\n')", stderr="raw two"),
    cells("C code that prints", "import ctypes\nc = ctypes.CDLL(None)\n_ = c.printf(b'from C\\n')\n_ = c.fflush(None)"
          , stdout="from C"),
    cells("logging", "import logging\nlogging.getLogger('parity').warning('logged')", stderr="logged"),
    cells("logging set up",
          "import logging, sys\nlogging.basicConfig(force=True, stream=sys.stdout, level='INFO')\n"
          "logging.info('informed')", stdout="informed"),
    cells("sys.stdout exchanged",
          "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()) as f:\n    print('not seen')\n"
          "f.getvalue()", result="'not seen\\n'"),
    cells("print with flush and end", "for i in range(3):\n    print(i, end=' ', flush=True)", stdout=r"\A0 1 2 \Z"),
    cells("signal handlers",
          "import signal\nold = signal.signal(signal.SIGUSR1, lambda *_: print('signalled'))\nimport os\n"
          "os.kill(os.getpid(), signal.SIGUSR1)\nprint('after')", stdout="signalled.*after"),
    cells("alarm",
          "import signal, time\ndef ring(*_): raise TimeoutError('rang')\nsignal.signal(signal.SIGALRM, ring)\n"
          "signal.setitimer(signal.ITIMER_REAL, 0.05)\ntime.sleep(5)", raises="TimeoutError"),
    cells("a megabyte", "print('x' * 1_000_000)", stdout="x" * 1_000_000),
    Feature("3000 displays", _flood),
]  # fmt: skip
