"""The transport to an MCP server that is a program here: its lines in and out, as the protocol's library wants them.

Not the library's own: that one hands on parts of our environment, and keeps a line of any length in memory.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import anyio
import mcp_types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client import Transport
from mcp.shared.message import SessionMessage

from workbench.toolkits.children import Child

_Heard = SessionMessage | Exception
# Lines that are no messages: some programs print a few words of their own.
_MOST_GARBAGE = 500


@contextlib.asynccontextmanager
async def spoken_to(child: Child) -> AsyncIterator[tuple[object, object]]:
    """Streams of messages; the end of the program is the end of the first. The child is its owner's."""
    heard, reading = anyio.create_memory_object_stream[_Heard](0)
    writing, said = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_listen, child, heard)
        tasks.start_soon(_speak, child, said, heard)
        try:
            yield reading, writing
        finally:
            tasks.cancel_scope.cancel()
            for stream in (heard, reading, writing, said):
                stream.close()


async def _listen(child: Child, heard: MemoryObjectSendStream[_Heard]) -> None:
    garbage = 0
    with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError), heard:
        while True:
            try:
                line = await child.hear()
            except ValueError:
                # Of the rest nobody knows where a message begins.
                return
            if not line:
                return
            if not line.strip():
                continue
            message = _message(line)
            garbage += isinstance(message, Exception)
            # BARRIER: who says nonsense without an end would keep this process busy with it; held by
            # tests/toolkits/test_hostile_servers.py.
            if garbage > _MOST_GARBAGE:
                child.silent.set()
                return
            await heard.send(message)


def _message(line: bytes) -> _Heard:
    try:
        return SessionMessage(mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as problem:
        return problem


async def _speak(
    child: Child, said: MemoryObjectReceiveStream[SessionMessage], heard: MemoryObjectSendStream[_Heard]
) -> None:
    try:
        async for message in said:
            await child.say(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode())
    except (OSError, anyio.ClosedResourceError):
        # Nothing that was asked will be answered: so that nobody waits for it.
        heard.close()


def transport_of(child: Child) -> Transport:
    """For the library's client."""
    return spoken_to(child)  # type: ignore[return-value]
