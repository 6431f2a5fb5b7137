"""What R code asks of Python in the middle of a cell. Nothing here raises: above is R, which knows no exceptions."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import signal
import struct
import subprocess
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from workbench_guest.r.printed import Printed

if TYPE_CHECKING:
    from workbench_guest.r.embedded import Embedded

# A command that was interrupted and goes on nevertheless is ended after this long.
_DEAF_S = 1.0
_LOOK_S = 0.05
_PNG_SIZE = struct.Struct(">II")
_PNG_SIZE_AT = 16


class Asked:
    """Answers by the kind of the question."""

    def __init__(self, printed: Printed, publish: Callable[[str, dict[str, Any]], None]) -> None:
        self._printed = printed
        self._publish = publish
        self._wants_input = False
        self.r: Embedded | None = None
        self.count = 0
        """of the cell that runs"""
        self.version = ""
        self._answers: dict[str, Callable[[list[str]], str]] = {
            "keep": self._keep,
            "release": lambda _: self._printed.release(),
            "execute_result": lambda texts: self._show("execute_result", texts),
            "display_data": lambda texts: self._show("display_data", texts),
            "clear_output": self._clear,
            "page": self._page,
            "input": self._input,
            "system": self._system,
            "helper": self._helper,
            "version": self._version,
        }

    def __call__(self, kind: str, texts: list[str]) -> str:
        """The answer; empty where there is none."""
        try:
            return self._answers[kind](texts)
        except KeyboardInterrupt:
            self._pass_on_interrupt()
        except Exception as problem:  # noqa: BLE001  R would go on in the middle of Python's frames
            self._printed.say("stderr", f"[sandbox] {kind}: {problem}\n")
        return ""

    def _pass_on_interrupt(self) -> None:
        if self.r is not None:
            self.r.interrupted = True

    def interrupt(self) -> None:
        """The whole group, if it is our own; otherwise whoever started us would hear it, too."""
        if os.getpgid(0) == os.getpid():
            os.killpg(0, signal.SIGINT)
        else:
            os.kill(os.getpid(), signal.SIGINT)

    def for_input(self) -> None:
        """Somebody reads what nobody can type."""
        self._wants_input = True

    def _input(self, _: list[str]) -> str:
        wanted, self._wants_input = self._wants_input, False
        return "wanted" if wanted else ""

    def _version(self, texts: list[str]) -> str:
        self.version = texts[0]
        return ""

    def _keep(self, _: list[str]) -> str:
        self._printed.keep()
        return ""

    def _show(self, kind: str, texts: list[str]) -> str:
        self._printed.flush()
        data = {mime: _content(mime, text) for mime, text in zip(texts[::2], texts[1::2], strict=False)}
        content: dict[str, Any] = {"data": data, "metadata": {}}
        if kind == "execute_result":
            content["execution_count"] = self.count
        self._publish(kind, content)
        return ""

    def _clear(self, texts: list[str]) -> str:
        self._printed.flush()
        self._publish("clear_output", {"wait": texts == ["wait"]})
        return ""

    def _page(self, texts: list[str]) -> str:
        """A picture that R has drawn into a file."""
        (path,) = texts
        with open(path, "rb") as file:
            drawn = file.read()
        os.unlink(path)
        self._printed.flush()
        if path.endswith(".svg"):
            content: dict[str, Any] = {"data": {"image/svg+xml": drawn.decode("utf-8", "replace")}, "metadata": {}}
        elif len(drawn) < _PNG_SIZE_AT + _PNG_SIZE.size:
            return ""
        else:
            width, height = _PNG_SIZE.unpack_from(drawn, _PNG_SIZE_AT)
            size = {"image/png": {"width": width, "height": height}}
            content = {"data": {"image/png": base64.b64encode(drawn).decode()}, "metadata": size}
        self._publish("display_data", content)
        return ""

    def _system(self, texts: list[str]) -> str:
        """R's `system`: an interrupt reaches the command, and R as well."""
        assert self.r is not None
        (command,) = texts
        with subprocess.Popen(["/bin/sh", "-c", command]) as process:
            patience = _DEAF_S
            while True:
                try:
                    code = process.wait(_LOOK_S)
                    break
                except subprocess.TimeoutExpired:
                    if self.r.interrupted:
                        patience -= _LOOK_S
                    if patience <= 0:
                        process.kill()
        return str(code if code >= 0 else 128 - code)

    def _helper(self, texts: list[str]) -> str:
        from workbench_guest import helpers

        request = json.loads(texts[0])
        function = helpers.offered(os.environ)[request["name"]]
        said = io.StringIO()
        try:
            with _interruptible(), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                result, error = function(*request["plain"], **request["named"])
        finally:
            if said.getvalue():
                self._printed.say("stdout", said.getvalue())
        return json.dumps({"result": result, "error": str(error)})


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Python's own handler of SIGINT instead of R's for this long: it ends a wait in the middle."""
    import ctypes

    # Python forgets what it has not set itself.
    library = ctypes.CDLL(None)
    library.signal.argtypes, library.signal.restype = [ctypes.c_int, ctypes.c_void_p], ctypes.c_void_p
    theirs = library.signal(signal.SIGINT, None)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        library.signal(signal.SIGINT, theirs)


def _content(mime: str, text: str) -> Any:
    if mime == "application/json" or mime.endswith("+json"):
        with contextlib.suppress(ValueError):
            return json.loads(text)
    return text
