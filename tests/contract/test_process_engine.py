"""The process engine passes the contract, and says at every turn that it isolates nothing."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from tests.conftest import MakeEngineOptions

from workbench.contracts.engine import Engine
from workbench.engines.process import FILES_VARIABLE, ProcessEngine
from workbench.model.capability import Grade
from workbench.testing.driving import MakeSandbox, code, run, shell
from workbench.testing.engine_contract import EngineContract, EngineFootprintContract
from workbench.testing.engine_lifetimes import MakeEngine


class _Fixtures:
    @pytest.fixture(scope="class")
    @classmethod
    def files_root(cls, class_dir: Path) -> Path:
        folder = class_dir / "files"
        folder.mkdir()
        return folder

    @pytest.fixture(scope="class")
    @classmethod
    def make_engine(cls, class_dir: Path, files_root: Path, make_engine_options: MakeEngineOptions) -> MakeEngine:
        assert files_root.parent == class_dir
        return lambda: ProcessEngine(make_engine_options(class_dir))


@pytest.mark.isolation
class TestProcessEngineFootprint(_Fixtures, EngineFootprintContract):
    pass


@pytest.mark.isolation
class TestProcessEngine(_Fixtures, EngineContract):
    def files_path_inside(self, files: Path) -> str:
        return str(files)

    async def test_it_promises_nothing_and_warns(self, engine: Engine, make_sandbox: MakeSandbox) -> None:
        assert {capability.grade for capability in engine.capabilities} == {Grade.ABSENT}
        described = (await make_sandbox()).description
        assert not described.isolated
        assert "all rights of the user" in described.warning

    async def test_every_start_is_logged_as_a_warning(
        self, make_engine: MakeEngine, caplog: pytest.LogCaptureFixture
    ) -> None:
        for _ in range(2):
            caplog.clear()
            engine = make_engine()
            await engine.start()
            await engine.aclose()
            assert [record.levelno for record in caplog.records] == [logging.WARNING]
            assert "isolates nothing" in caplog.text

    async def test_files_are_found_by_a_variable(self, make_sandbox: MakeSandbox) -> None:
        sandbox = await make_sandbox()
        done = await run(sandbox, code(f"import os\nprint(os.path.isdir(os.environ['{FILES_VARIABLE}']))"))
        assert done.stdout == b"True\n"

    async def test_a_program_that_cleared_its_variables_ends_with_the_sandbox(self, make_sandbox: MakeSandbox) -> None:
        sandbox = await make_sandbox()
        process = await sandbox.start(shell("exec env -i sleep 1000"))
        await sandbox.aclose()
        assert (await process.wait()).lost
