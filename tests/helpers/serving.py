"""A server with a model and a search engine that fail on purpose, and what tests ask of sessions in it."""

from __future__ import annotations

import ast
import contextlib
import secrets
from collections.abc import Iterator
from typing import Any

from tests.restart.server import Server, own_settings, served
from tests.services.running import Running

from workbench import Session
from workbench.client.values import Result

LLM_TIMEOUT_S = 3
# What a helper does, by hand: one connection, one call.
RAW = """\
import contextlib, json, os, socket, struct, threading, time
def connected(wait_s=20):
    line = socket.socket(socket.AF_UNIX)
    line.settimeout(wait_s)
    line.connect('\\0' + os.environ.get('WORKBENCH_CALLS', '@workbench-calls')[1:])
    return line
def framed(value):
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return struct.pack('>I', len(body)) + body
def exactly(line, size):
    told = b''
    while len(told) < size:
        more = line.recv(size - len(told))
        if not more: raise EOFError
        told += more
    return told
def answer(line):
    return json.loads(exactly(line, struct.unpack('>I', exactly(line, 4))[0]))
def raw(value):
    with connected() as line:
        # Who refuses early says why, and does not read on.
        with contextlib.suppress(BrokenPipeError): line.sendall(framed(value))
        return answer(line)
def ask(operation, **arguments):
    return raw({'operation': operation, 'arguments': arguments})
"""


@contextlib.contextmanager
def helped(models: Running, searches: Running, **more: Any) -> Iterator[Server]:
    """Its keys are random; `settings` of the server has them."""
    options: dict[str, Any] = {
        "llm_provider": "openai",
        "llm_url": f"{models.url}/v1",
        "llm_key": f"sk-{secrets.token_hex(16)}",
        "llm_model": "small",
        "llm_timeout_s": LLM_TIMEOUT_S,
        "search_engine": "brave",
        "search_url": searches.url,
        "search_key": f"BSA{secrets.token_hex(16)}",
        **more,
    }
    with own_settings(**options) as settings, served(settings) as server:
        yield server


def ran(session: Session, code: str, *, limit_s: float = 100.0) -> Result:
    """A cell that ends well."""
    result = session.run(code, limit_s=limit_s)
    assert result.ok, f"{result.outcome}: {result.explanation}\n{result.error}\n{result.stderr}"
    return result


def value(session: Session, code: str, *, limit_s: float = 100.0) -> Any:
    """Of its last line."""
    return ast.literal_eval(ran(session, code, limit_s=limit_s).results)


def rss_anon(pid: int) -> int:
    """Bytes of its own that a process has in memory."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("RssAnon:"))
