"""The suite that every engine passes. For the author of the next one:

    class TestMyEngine(EngineContract):
        @pytest.fixture(scope="class")
        @classmethod
        def files_root(cls, tmp_path_factory): ...   # exists, and is what the engine was told

        @pytest.fixture(scope="class")
        @classmethod
        def make_engine(cls, files_root):            # -> a callable that gives a new engine, not started
            return lambda: MyEngine(...)

    class TestMyEngineFootprint(EngineFootprintContract): ...   # the same fixtures

All tests of the first class share one event loop and one engine. Where an engine declares a promise as absent, the
tests assert that it is.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from workbench.contracts.engine import Engine, Sandbox, SandboxSpec
from workbench.model.ids import new_sandbox_id
from workbench.model.tier import STANDARD, Tier
from workbench.testing.driving import MakeSandbox
from workbench.testing.engine_entries import EntriesContract
from workbench.testing.engine_freezing import FreezingContract
from workbench.testing.engine_lifetimes import FootprintContract, LifetimesContract, MakeEngine
from workbench.testing.engine_limits import LimitsContract
from workbench.testing.engine_processes import ProcessesContract
from workbench.testing.engine_requests import RequestsContract


@pytest.mark.asyncio(loop_scope="class")
class EngineContract(
    ProcessesContract, EntriesContract, RequestsContract, LimitsContract, LifetimesContract, FreezingContract
):
    """Subclass it, with the two fixtures above."""

    @pytest_asyncio.fixture(scope="class", loop_scope="class")
    @classmethod
    async def engine(cls, make_engine: MakeEngine) -> AsyncIterator[Engine]:
        """Started, and closed after the last test of the class."""
        engine = make_engine()
        await engine.start()
        yield engine
        await engine.aclose()

    @pytest_asyncio.fixture(loop_scope="class")
    async def make_sandbox(self, engine: Engine, files_root: Path) -> AsyncIterator[MakeSandbox]:
        """Makes sandboxes with files of their own; they are closed after the test."""
        made: list[Sandbox] = []

        async def make(*, tier: Tier = STANDARD, env: dict[str, str] | None = None) -> Sandbox:
            files = files_root / f"m-{secrets.token_hex(6)}"
            files.mkdir()
            made.append(await engine.create(SandboxSpec(id=new_sandbox_id(), tier=tier, files=files, env=env or {})))
            return made[-1]

        yield make
        for sandbox in made:
            await sandbox.aclose()

    @pytest_asyncio.fixture(loop_scope="class")
    async def sandbox(self, make_sandbox: MakeSandbox) -> Sandbox:
        """One of the standard tier."""
        return await make_sandbox()


@pytest.mark.asyncio(loop_scope="class")
class EngineFootprintContract(FootprintContract):
    """A class of its own, as what an engine leaves can only be counted where no other is at work."""
