"""R code reaches the workbench: by helpers, and by `library` of what is not there."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import struct
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.runtimes.r.talking import kernel, until
from tests.unit.workbench_guest.packages.desk import answering

JSONLITE = Path("/usr/lib/R/site-library/jsonlite")


class Far:
    """The other side of the helpers' socket; answers with what it was told to."""

    def __init__(self, *answers: tuple[Any, str]) -> None:
        self.calls: list[dict[str, Any]] = []
        self.address = f"@far-{uuid.uuid4().hex}"
        self._answers = list(answers)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.bind("\0" + self.address[1:])
        self.socket.listen()

    def serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.socket.accept()
                with connection, connection.makefile("rwb") as file:
                    (size,) = struct.unpack(">I", file.read(4))
                    self.calls.append(json.loads(file.read(size)))
                    if not self._answers:
                        # Nobody answers until the caller has gone.
                        file.read(1)
                        continue
                    result, error = self._answers.pop(0)
                    told = json.dumps({"result": result, "error": error, "code": "failed" if error else ""}).encode()
                    file.write(struct.pack(">I", len(told)) + told)


@contextlib.contextmanager
def far(*answers: tuple[Any, str]) -> Iterator[Far]:
    made = Far(*answers)
    thread = threading.Thread(target=made.serve)
    thread.start()
    try:
        yield made
    finally:
        made.socket.shutdown(socket.SHUT_RDWR)
        made.socket.close()
        thread.join()


def test_a_tool_answers_with_a_list_and_a_failure_is_an_error_with_details(tmp_path: Path) -> None:
    answers = ({"data": {"n": [1, 2]}}, ""), ({"data": None}, "no such tool"), ("Bern", "")
    with far(*answers) as other, kernel(tmp_path, WORKBENCH_CALLS=other.address) as r:
        said = r.run("told <- run_composio_tool('a_tool', list(most = 3, names = list('x'))); told$data$n[[2]]")
        assert said.plain == "[1] 2"
        assert other.calls[0]["operation"] == "run_tool"
        assert other.calls[0]["arguments"]["arguments"] == {"most": 3, "names": ["x"]}
        said = r.run(
            "said <- function(e) c(conditionMessage(e), names(e$details))\n"
            "tryCatch(run_composio_tool('other'), workbench_error = said)"
        )
        assert other.calls[1]["arguments"]["arguments"] == {}
        assert said.plain == '[1] "no such tool" "data"        '
        assert r.run("invoke_llm('which town?')").plain == '[1] "Bern"'


def test_a_helper_that_waits_can_be_interrupted(tmp_path: Path) -> None:
    with far() as other, kernel(tmp_path, WORKBENCH_CALLS=other.address) as r:

        def on(kind: str, content: dict[str, Any]) -> None:
            if kind == "execute_input":
                until(lambda: len(other.calls) == 1)
                r.interrupt()

        said = r.run("web_search('x')", on)
        assert said.reply["ename"] == "interrupt"
        # The handlers are R's own again.
        assert r.run_interrupted("cat('go\\n'); Sys.sleep(1000)").reply["ename"] == "interrupt"


def test_a_helper_that_nobody_answers_says_so(tmp_path: Path) -> None:
    with kernel(tmp_path, WORKBENCH_CALLS="@nobody-is-here") as r:
        said = r.run("web_search('x')")
        assert said.reply["ename"] == "workbench_error"
        assert "nobody answers in this sandbox" in said.reply["evalue"]


def test_a_session_without_tool_execution_has_no_such_helpers(tmp_path: Path) -> None:
    with kernel(tmp_path, WORKBENCH_TOOL_EXECUTION="false") as r:
        assert r.run("c(exists('web_search'), exists('upload_local_file'))").plain == "[1] FALSE  TRUE"


def test_a_package_that_is_missing_is_asked_for_by_library(tmp_path: Path) -> None:
    library = tmp_path / "r" / "library"

    def answer(asked: dict[str, Any]) -> tuple[Any, str, str]:
        shutil.copytree(JSONLITE, library / "jsonlite")
        return {"installed": [], "present": [], "text": "installed it in 0.1 s"}, "", ""

    hidden = {"WORKBENCH_PACKAGES_FOLDER": str(tmp_path), "R_LIBS_SITE": f"{tmp_path}/none:{library}"}
    with answering(answer) as desk, kernel(tmp_path, WORKBENCH_CALLS=desk.address, **hidden) as r:
        said = r.run("data.frame(a = 1)\nlibrary(jsonlite)\ntoJSON(1)")
        assert (said.reply["status"], said.plain) == ("ok", "[1] ")
        assert [asked["modules"] for asked in desk.asked] == [["jsonlite"]]
