"""What a server says when it is ready: where it is, the key if it is new, and how a first cell is run."""

from __future__ import annotations

import shlex
import sys

from workbench.model.access import NewKey

_UNKNOWN = "$KEY"


def welcome(url: str, new: NewKey | None, *, with_host: bool) -> str:
    """For people, on a terminal."""
    key = new.presented if new is not None else _UNKNOWN
    create = f"{_ourselves()} keys create --scope admin --scope sessions"
    if new is not None:
        about = [f"    key  {key}", "", f"It is shown this once; `{create}` makes another."]
    else:
        about = ["Only digests of keys are kept. Another one, for the commands below:", "", f"    KEY=$({create})"]
    lines = [
        "",
        f"The workbench is ready at {url}",
        "",
        *about,
        "",
        "A first cell, from another terminal:",
        "",
        *(f"    {line}" for line in first_cell(url, key)),
        "",
        "The same from Python:",
        "",
        f"    {from_python(url, key)}",
        "",
        f"Every request, to read: {url}/docs",
        _ending(with_host=with_host),
        "",
    ]
    return "\n".join(lines)


def first_cell(url: str, key: str) -> list[str]:
    """Two calls that can be pasted."""
    # In double quotes, so that the shell puts in a key that is not known here.
    header = f'-H "x-api-key: {key}"'
    return [
        f'curl -s {shlex.quote(f"{url}/v1/sessions")} {header} --json \'{{"id": "first"}}\'',
        f'curl -s {shlex.quote(f"{url}/v1/sessions/first/cells")} {header} --json \'{{"code": "6 * 7"}}\'',
    ]


def from_python(url: str, key: str) -> str:
    """The same by the SDK, on the interpreter that we run on; one line, because indented ones cannot be pasted."""
    where = f'OPEN_WORKBENCH_URL={shlex.quote(url)} OPEN_WORKBENCH_API_KEY="{key}"'
    program = 'from workbench import Workbench; print(Workbench().create("user_123").run("6 * 7").results)'
    return f"{where} {shlex.quote(sys.executable)} -c '{program}'"


def _ourselves() -> str:
    """The command as it was called: it need not be on the path."""
    called = sys.argv[0]
    return shlex.quote(called) if called.endswith("/workbench") else "workbench"


def _ending(*, with_host: bool) -> str:
    if with_host:
        return "Ctrl-C ends the server, the host and all that runs in sessions; files and records stay."
    return "Ctrl-C ends the server only: sessions go on in the host, which `workbench host stop` ends."
