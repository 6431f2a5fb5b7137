"""The host's end of a socket whose other end is not trusted."""

from __future__ import annotations

import asyncio

import pytest

from workbench.engines.namespace import channel as channel_module
from workbench.engines.namespace.channel import ChannelClosed, HostChannel
from workbench_guest.messages import Configure

_LARGE = Configure(env={"A": "x" * 100_000})


async def _send_many(channel: HostChannel) -> None:
    for _ in range(100):
        await channel.send(_LARGE)


async def test_a_message_that_nobody_takes_closes_the_channel_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A guest that stops pid 1's reading must not stop the host."""
    monkeypatch.setattr(channel_module, "SEND_TIMEOUT_S", 0.05)
    ours, theirs = HostChannel.pair()
    with theirs:
        async with asyncio.timeout(10):
            with pytest.raises(ChannelClosed, match="not taken"):
                await _send_many(ours)
        ours.close()


async def test_who_waits_behind_a_message_that_is_not_taken_is_let_go_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_module, "SEND_TIMEOUT_S", 0.05)
    ours, theirs = HostChannel.pair()
    with theirs:
        async with asyncio.timeout(10):
            sent = await asyncio.gather(*(ours.send(_LARGE) for _ in range(100)), return_exceptions=True)
        assert isinstance(sent[-1], ChannelClosed)
        ours.close()
