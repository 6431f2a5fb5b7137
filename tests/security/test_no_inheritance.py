"""Nothing of the host's environment or memory reaches a sandbox, because a zygote is executed and not forked."""

from __future__ import annotations

import os
import secrets
import subprocess
from pathlib import Path

import pytest
from tests.conftest import MakeEngineOptions

import workbench_guest
from workbench.contracts.engine import SandboxSpec
from workbench.engines.namespace.engine import NamespaceEngine
from workbench.engines.options import EngineOptions
from workbench.model.ids import new_process_id, new_sandbox_id
from workbench.model.image import Image
from workbench.model.process import ProcessSpec
from workbench.model.tier import STANDARD

pytestmark = [pytest.mark.isolation, pytest.mark.timeout(120)]

_GUEST_ROOT = str(Path(workbench_guest.__file__).resolve().parent.parent)
# The whole canary is never put together in the process that looks for it.
_SEARCH = """
from workbench_guest.attacks.secrets import environments, find_in_memory
first, second = {first!r}, {second!r}
seen = environments()
print("variables:", any(line.partition(first)[2].startswith(second) for line in seen.splitlines()))
print("memory:", find_in_memory(first.encode(), second.encode()))
"""


class _Canary:
    """In a variable and in the memory of this process, which is the host."""

    def __init__(self) -> None:
        self.text = f"canary-{secrets.token_hex(20)}"
        self.kept = [self.text.encode() * 3, self.text * 2]
        half = len(self.text) // 2
        self.search = _SEARCH.format(first=self.text[:half], second=self.text[half:])


@pytest.fixture
def canary(monkeypatch: pytest.MonkeyPatch) -> _Canary:
    made = _Canary()
    monkeypatch.setenv("WORKBENCH_TEST_SECRET", made.text)
    return made


def test_the_search_finds_what_a_child_inherits(canary: _Canary, image: Image) -> None:
    code = f"import sys; sys.path.insert(0, {_GUEST_ROOT!r})\n{canary.search}"
    said = subprocess.run([image.python, "-I", "-B", "-c", code], capture_output=True, text=True, check=True).stdout
    assert "variables: True" in said
    assert "memory: None" not in said


async def _said_inside(options: EngineOptions, short_dir: Path, code: str) -> list[str]:
    engine = NamespaceEngine(options)
    try:
        await engine.start()
        files = short_dir / "files" / "m"
        files.mkdir()
        sandbox = await engine.create(SandboxSpec(id=new_sandbox_id(), tier=STANDARD, files=files))
        process = await sandbox.start(ProcessSpec(id=new_process_id(), entry="run_code", payload=code.encode()))
        return b"".join([chunk.data async for chunk in process.output()]).decode().splitlines()
    finally:
        await engine.aclose()


async def test_no_variable_and_no_memory_of_the_host_reaches_a_sandbox(
    canary: _Canary, make_engine_options: MakeEngineOptions, short_dir: Path
) -> None:
    assert os.environ["WORKBENCH_TEST_SECRET"] == canary.text
    said = await _said_inside(make_engine_options(short_dir), short_dir, canary.search)
    assert said == ["variables: False", "memory: None"]


async def test_sandboxes_share_no_memory_that_one_of_them_could_write(
    make_engine_options: MakeEngineOptions, short_dir: Path
) -> None:
    """What a fork of the zygote has mapped as shared, all forks of it have."""
    code = "print(*(line for line in open('/proc/self/maps') if 's' in line.split()[1]), 'looked', sep='', end='')"
    said = await _said_inside(make_engine_options(short_dir), short_dir, code)
    assert said[-1:] == ["looked"]
    assert [line for line in said[:-1] if "w" in line.split()[1]] == []
