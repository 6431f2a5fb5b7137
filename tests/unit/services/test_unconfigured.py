"""Where nothing was set, every call says what to set."""

from __future__ import annotations

import pytest

from workbench.contracts.services import Question
from workbench.errors import NotConfigured
from workbench.services.unconfigured import NoModel, NoSearch


async def test_both_tell_why_and_can_be_closed() -> None:
    model, search = NoModel("set this"), NoSearch("set that")
    with pytest.raises(NotConfigured, match="set this"):
        await model.complete(Question("x"))
    with pytest.raises(NotConfigured, match="set that"):
        await search.search("x")
    for one in (model, search):
        await one.aclose()
        await one.aclose()
