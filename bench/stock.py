"""The peers of the benches of kernels: stock jupyter_client with kernels of others, stock ipykernel among them."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager

from workbench.model.image import Image

_TIMEOUT_S = 300.0


class StockKernel:
    """Started and stopped by `stock`."""

    def __init__(self, manager: AsyncKernelManager, client: AsyncKernelClient) -> None:
        self._client = client
        self.pid: int = manager.provisioner.pid  # type: ignore[union-attr]  # there is one while it runs

    async def run(self, code: str) -> tuple[str, str]:
        """The text of the last value, and what was printed; until the kernel has answered and is idle."""
        asked = self._client.execute(code, allow_stdin=False)
        value, printed = "", []
        async with asyncio.timeout(_TIMEOUT_S):
            while True:
                message: dict[str, Any] = await self._client.get_iopub_msg()
                content = message["content"]
                if message["parent_header"].get("msg_id") != asked:
                    continue
                if message["msg_type"] == "stream":
                    printed.append(content["text"])
                elif message["msg_type"] == "execute_result":
                    value = content["data"]["text/plain"]
                elif message["msg_type"] == "error":
                    raise AssertionError(f"stock failed: {content['ename']}: {content['evalue']}")
                elif message["msg_type"] == "status" and content["execution_state"] == "idle":
                    break
            while (await self._client.get_shell_msg())["parent_header"].get("msg_id") != asked:
                pass
        return value, "".join(printed)

    async def evaluate(self, expression: str) -> str:
        """By the reply alone: what is published may be lost to a client that has not waited until it hears it."""
        asked = self._client.execute("", user_expressions={"answer": expression}, allow_stdin=False)
        async with asyncio.timeout(_TIMEOUT_S):
            while (reply := await self._client.get_shell_msg())["parent_header"].get("msg_id") != asked:
                pass
        return str(reply["content"]["user_expressions"]["answer"]["data"]["text/plain"])


@asynccontextmanager
async def stock(image: Image, *, patient: bool = True) -> AsyncIterator[StockKernel]:
    """ipykernel on the image's own interpreter, over ipc."""
    argv = (image.python, "-m", "ipykernel_launcher", "-f", "{connection_file}")
    async with started(argv, env=dict(image.env), patient=patient) as kernel:
        yield kernel


@asynccontextmanager
async def started(
    argv: Sequence[str], *, env: Mapping[str, str], transport: str = "ipc", patient: bool = True
) -> AsyncIterator[StockKernel]:
    """A kernel, as the documentation has it started: channels, `wait_for_ready`; without `patient`, not even that."""
    # One folder each: without a connection file of their own all ipc kernels of a process take the same names.
    folder = Path(tempfile.mkdtemp(prefix="wb-stock-"))
    where = {"ip": str(folder / "k")} if transport == "ipc" else {}
    manager = AsyncKernelManager(transport=transport, connection_file=str(folder / "kernel.json"), **where)
    manager._kernel_spec = KernelSpec(  # noqa: SLF001  the only way to name a program that is not installed as a spec
        argv=list(argv), display_name="stock"
    )
    # R leaves its own files for a while behind when it is killed: they go with the folder.
    env = {**env, "PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": str(folder), "LANG": "C.UTF-8"}
    try:
        await manager.start_kernel(env=env, cwd=str(folder))
        client = manager.client()
        client.start_channels()
        try:
            if patient:
                await client.wait_for_ready(timeout=_TIMEOUT_S)
            yield StockKernel(manager, client)
        finally:
            client.stop_channels()
    finally:
        await manager.shutdown_kernel(now=True)
        shutil.rmtree(folder, ignore_errors=True)
