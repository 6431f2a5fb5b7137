"""What a notebook does with a kernel, by jupyter_client: the same for a stock kernel and for ours."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty
from typing import Any

from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.connect import write_connection_file

from workbench.model.image import Image

# What one cell may take on a busy machine.
PATIENCE_S = 40.0
Content = dict[str, Any]


@dataclass
class Answer:
    """What came back for one request."""

    reply: Content
    told: list[tuple[str, Content]] = field(default_factory=list)
    """what was published for it, in order, without statuses and the echo of the input"""

    def stream(self, name: str) -> str:
        return "".join(content["text"] for kind, content in self.told if kind == "stream" and content["name"] == name)

    @property
    def stdout(self) -> str:
        return self.stream("stdout")

    @property
    def stderr(self) -> str:
        return self.stream("stderr")

    @property
    def result(self) -> str | None:
        """The text of the last value."""
        found = [content["data"].get("text/plain") for kind, content in self.told if kind == "execute_result"]
        return found[-1] if found else None

    def shown(self, mime: str) -> list[Any]:
        """Everything displayed in that format, the last value as well."""
        kinds = ("display_data", "execute_result", "update_display_data")
        return [content["data"][mime] for kind, content in self.told if kind in kinds and mime in content["data"]]

    @property
    def error(self) -> Content:
        """What was raised; empty if nothing was."""
        return next((content for kind, content in self.told if kind == "error"), {})

    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.told]

    def paged(self) -> str:
        """What a pager would show."""
        return "".join(str(one.get("data", {}).get("text/plain", "")) for one in self.reply.get("payload", []))


class Notebook:
    """One client. Requests one after another."""

    def __init__(self, client: AsyncKernelClient) -> None:
        self.client = client
        self.stray: list[tuple[str, Content]] = []
        """what was published for nothing that this notebook asked"""
        self.inputs: list[str] = []
        """answers for what asks for input, the next one first"""
        self.prompts: list[Content] = []

    def send(self, kind: str, content: Content, channel: str = "shell") -> str:
        """Its id."""
        message = self.client.session.msg(kind, content)
        getattr(self.client, f"{channel}_channel").send(message)
        return str(message["header"]["msg_id"])

    async def ask(self, kind: str, content: Content | None = None, channel: str = "shell") -> Answer:
        """Wait for its answer and for the idle that ends what is published for it."""
        request = self.send(kind, content or {}, channel)
        async with asyncio.timeout(PATIENCE_S):
            return await self.answer_of(request, channel)

    async def answer_of(self, request: str, channel: str = "shell") -> Answer:
        told = asyncio.create_task(self._published(request))
        try:
            while True:
                message = await self._either(channel)
                if message["parent_header"].get("msg_id") == request:
                    return Answer(message["content"], await told)
        finally:
            told.cancel()

    async def _either(self, channel: str) -> Content:
        """The next message of the channel; what asks for input meanwhile is answered."""
        while True:
            with contextlib.suppress(Empty):
                return dict(await getattr(self.client, f"{channel}_channel").get_msg(timeout=0.05))
            if self.inputs:
                with contextlib.suppress(Empty):
                    asked = await self.client.stdin_channel.get_msg(timeout=0)
                    self.prompts.append(asked["content"])
                    self.client.input(self.inputs.pop(0))

    async def _published(self, request: str) -> list[tuple[str, Content]]:
        told: list[tuple[str, Content]] = []
        while True:
            message = await self.client.iopub_channel.get_msg()
            kind, content = message["msg_type"], message["content"]
            if message["parent_header"].get("msg_id") != request:
                self.stray.append((kind, content))
            elif kind == "status":
                if content["execution_state"] == "idle":
                    return told
            elif kind != "execute_input":
                told.append((kind, content))

    async def run(self, code: str, **options: Any) -> Answer:
        """A cell."""
        return await self.ask("execute_request", cell(code, **options))

    async def run_and(self, code: str, sign: str, then: Callable[[], None], **options: Any) -> Answer:
        """A cell, and something that is done once it has printed the sign."""
        request = self.send("execute_request", cell(code, **options))
        async with asyncio.timeout(PATIENCE_S):
            before = await self._until_printed(request, sign)
            then()
            answer = await self.answer_of(request)
        return Answer(answer.reply, [*before, *answer.told])

    async def _until_printed(self, request: str, sign: str) -> list[tuple[str, Content]]:
        told: list[tuple[str, Content]] = []
        while True:
            message = await self.client.iopub_channel.get_msg()
            kind, content = message["msg_type"], message["content"]
            if message["parent_header"].get("msg_id") == request and kind not in ("status", "execute_input"):
                told.append((kind, content))
                if sign in content.get("text", ""):
                    return told

    def interrupt(self) -> None:
        """As JupyterLab does for a kernel whose interrupts are messages."""
        self.send("interrupt_request", {}, "control")

    async def until(self, condition: Callable[[], bool]) -> None:
        """Take in what is published until then."""
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                message = await self.client.iopub_channel.get_msg()
                self.stray.append((message["msg_type"], message["content"]))

    def stray_text(self) -> str:
        return "".join(content["text"] for kind, content in self.stray if kind == "stream")


def cell(code: str, **options: Any) -> Content:
    """An execute request, as a notebook sends it."""
    usual = {"silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False}
    return {"code": code, **usual, "stop_on_error": True, **options}


@contextlib.asynccontextmanager
async def open_notebook(connection_file: str | Path) -> AsyncIterator[Notebook]:
    """A client of the kernel that the file names, once that answers and our subscription stands."""
    client = AsyncKernelClient(connection_file=str(connection_file))
    client.load_connection_file()
    client.start_channels(hb=False)
    try:
        await client.wait_for_ready(timeout=PATIENCE_S)
        notebook = Notebook(client)
        await notebook.run("", silent=True)
        yield notebook
    finally:
        client.stop_channels()
        client.context.term()


@contextlib.asynccontextmanager
async def stock_kernel(image: Image, folder: Path) -> AsyncIterator[Path]:
    """A stock ipykernel of the image's interpreter, on this machine; its connection file."""
    home = folder / "home"
    home.mkdir(parents=True)
    path, _ = write_connection_file(str(folder / "k.json"), transport="ipc", ip=str(folder / "k"), kernel_name="stock")
    # What a debugger dumps goes with the folder, too.
    own = {"HOME": str(home), "TMPDIR": str(home)}
    variables = {**own, "PATH": os.environ["PATH"], "LANG": "C.UTF-8", **dict(image.env)}
    process = await asyncio.create_subprocess_exec(
        image.python, "-m", "ipykernel_launcher", "-f", path, cwd=home, env=variables, start_new_session=True,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield Path(path)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def connection_info(path: str | Path) -> Content:
    return dict(json.loads(Path(path).read_text(encoding="utf-8")))
