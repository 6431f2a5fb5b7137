"""How a kernel of R ends, and what it leaves."""

from __future__ import annotations

from pathlib import Path

import zmq
from tests.runtimes.r.talking import PATIENCE_S, kernel


def test_quit_in_a_cell_ends_the_kernel_after_its_answer(tmp_path: Path) -> None:
    with kernel(tmp_path) as r:
        r.send("cat('bye\\n'); quit(status = 3); cat('not')")
        assert r.process.wait(PATIENCE_S) == 3
        kinds, text = [], ""
        while r.iopub.poll(100):
            message = r.next(r.iopub)
            kinds.append(message["content"].get("execution_state", message["msg_type"]))
            text += message["content"].get("text", "")
        # Never idle: the next cell is for another kernel.
        assert (kinds[-3:], text) == (["busy", "execute_input", "stream"], "bye\n")
        reply = r.next(r.shell)["content"]
        assert (reply["status"], reply["payload"]) == ("ok", [{"source": "ask_exit", "keepkernel": False}])


def test_a_shutdown_ends_it_while_a_cell_runs(tmp_path: Path) -> None:
    with kernel(tmp_path) as r:
        r.send("Sys.sleep(1000)")
        assert r.ask("shutdown_request", {"restart": False}, "control") == {"status": "ok", "restart": False}
        assert r.process.wait(PATIENCE_S) == 0


def test_a_shutdown_ends_it_while_nothing_runs(tmp_path: Path) -> None:
    with kernel(tmp_path) as r:
        r.run("1")
        assert r.ask("shutdown_request", {"restart": True}, "control") == {"status": "ok", "restart": True}
        assert r.process.wait(PATIENCE_S) == 0


def test_a_message_that_is_not_signed_is_not_obeyed(tmp_path: Path) -> None:
    with kernel(tmp_path) as r:
        stranger = r.connect(zmq.DEALER, 1)
        frames = [b"<IDS|MSG>", b"0" * 64, b'{"msg_type": "execute_request"}', b"{}", b"{}", b'{"code": "bad <- 1"}']
        stranger.send_multipart(frames)
        stranger.send_multipart([b"<IDS|MSG>", b"no", b"message"])
        stranger.send_multipart([b"nothing"])
        assert r.run("exists('bad')").plain == "[1] FALSE"
