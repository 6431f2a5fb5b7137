"""What a zygote must say before it is forked."""

from __future__ import annotations

import pytest

from workbench.engines.namespace.channel import HostChannel
from workbench.engines.namespace.zygote import _warm
from workbench.errors import IsolationTooWeak
from workbench_guest.messages import ZygotePlan, ZygoteReady, encode

_PLAN = ZygotePlan(
    binds=(),
    links=(),
    texts=(),
    devices=(),
    preload=("pandas", "busybody"),
    entry=None,
    guest_root="",
    staging="",
    files_root="",
    packages_root="",
)


@pytest.mark.parametrize("threads", [1, 2])
async def test_a_zygote_with_more_than_one_thread_is_refused_and_the_preload_named(threads: int) -> None:
    """A lock that the other thread holds would stay locked in every clone."""
    channel, theirs = HostChannel.pair()
    with theirs:
        theirs.send(encode(ZygoteReady(resident_bytes=1, threads=threads)))
        if threads == 1:
            assert (await _warm(channel, _PLAN)).threads == 1
        else:
            with pytest.raises(IsolationTooWeak, match="preload starts them: pandas, busybody") as refusal:
                await _warm(channel, _PLAN)
            assert refusal.value.context["step"] == "import the image's libraries"
        channel.close()
