"""Step by step: can this machine isolate, what holds the limits, and what to do about each no."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from workbench.contracts.engine import SandboxSpec
from workbench.doctor.remedies import remedy
from workbench.engines.namespace.engine import NamespaceEngine
from workbench.engines.options import EngineOptions
from workbench.errors import IsolationTooWeak, NotFound, WorkbenchError
from workbench.images.build import find_image
from workbench.images.recipe import load_recipe
from workbench.model.capability import Grade, Level, shortfall
from workbench.model.ids import new_process_id, new_sandbox_id
from workbench.model.image import Image
from workbench.model.process import ProcessSpec
from workbench.model.tier import STANDARD

_SUPPORTED = ("x86_64", "aarch64")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One step: whether it worked, what was seen, and what to do if it did not."""

    step: str
    ok: bool
    seen: str
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """All findings, and the level that they allow."""

    findings: tuple[Finding, ...]
    capabilities: tuple[tuple[str, str, str], ...]
    """(barrier, grade, by)"""
    level: str
    """the highest level that this machine reaches, or "none\""""


async def examine(images_dir: Path, work_dir: Path) -> Examination:
    """Try everything in `work_dir`, which is left empty."""
    findings = _platform_findings()
    try:
        image = find_image(images_dir, load_recipe("python"))
    except NotFound as problem:
        findings.append(Finding(step="image", ok=False, seen=problem.message, remedy=_remedy("image")))
        return Examination(findings=tuple(findings), capabilities=(), level="none")
    findings.append(Finding(step="image", ok=True, seen=f"{image.name} {image.digest}"))
    try:
        async with started_engine(image, work_dir) as engine:
            findings.append(Finding(step="isolation", ok=True, seen="every step of a sandbox worked"))
            findings.extend(_limit_findings(engine))
            findings.append(await _first_answer(engine, work_dir / "files"))
            held = engine.capabilities
    except IsolationTooWeak as problem:
        step = problem.context.get("step", "isolation")
        findings.append(
            Finding(step=step, ok=False, seen=problem.message, remedy=_remedy(step, problem.context.get("error", "")))
        )
        return Examination(findings=tuple(findings), capabilities=(), level="none")
    level = next((level for level in Level if shortfall(level, held) is None), Level.OPEN)
    return Examination(
        findings=tuple(findings), capabilities=tuple((h.barrier.value, h.grade.value, h.by) for h in held), level=level
    )


@asynccontextmanager
async def started_engine(image: Image, work_dir: Path) -> AsyncIterator[NamespaceEngine]:
    """An engine of our own, beside whatever host may run."""
    engine = NamespaceEngine(
        EngineOptions(
            image=image,
            run_dir=work_dir / "run",
            files_root=work_dir / "files",
            packages_root=work_dir / "packages",
            group_name=f"workbench-doctor-{os.getpid()}",
            pool_size=1,
        )
    )
    try:
        await engine.start()
        yield engine
    finally:
        await engine.aclose()


def _remedy(step: str, error: str = "") -> str:
    # A user namespace is made by a fork of the host, which runs in this interpreter; AppArmor goes by real paths.
    return remedy(step, error, os.path.realpath(sys.executable))


def _platform_findings() -> list[Finding]:
    machine, system = platform.machine(), platform.system()
    known = system == "Linux" and machine in _SUPPORTED
    return [
        Finding(
            step="platform",
            ok=known,
            seen=f"{system} {platform.release()} on {machine}, Python {platform.python_version()}",
            remedy="" if known else f"Linux on {' or '.join(_SUPPORTED)} is needed",
        ),
        Finding(step="user", ok=True, seen="root" if os.geteuid() == 0 else f"ordinary user, uid {os.geteuid()}"),
        Finding(step="interpreter", ok=sys.version_info >= (3, 11), seen=sys.executable, remedy="Python 3.11 or newer"),
    ]


def _limit_findings(engine: NamespaceEngine) -> list[Finding]:
    found = []
    weakest = [held for held in engine.capabilities if held.grade is not Grade.ENFORCED]
    for kind, reason in engine.limits.passed_over:
        found.append(
            Finding(step=f"limits by {kind}", ok=False, seen=reason, remedy=_remedy(f"limits by {kind}", reason))
        )
    found.append(Finding(step="limits", ok=True, seen=f"held by {engine.limits.keeper.kind}"))
    found.extend(Finding(step=held.barrier, ok=True, seen=f"{held.grade.value}: {held.by}") for held in weakest)
    return found


async def _first_answer(engine: NamespaceEngine, files_root: Path) -> Finding:
    files = files_root / "doctor"
    files.mkdir()
    try:
        began = time.perf_counter()
        sandbox = await engine.create(SandboxSpec(id=new_sandbox_id(), tier=STANDARD, files=files))
        try:
            process = await sandbox.start(ProcessSpec(id=new_process_id(), entry="run_code", payload=b"print(6 * 7)"))
            said = b"".join([chunk.data async for chunk in process.output()])
            took = (time.perf_counter() - began) * 1000
        finally:
            await sandbox.aclose()
    except WorkbenchError as problem:
        return Finding(step="first answer", ok=False, seen=problem.message, remedy="run again with the host's log open")
    finally:
        files.rmdir()
    return Finding(step="first answer", ok=said == b"42\n", seen=f"{said.decode().strip()!r} after {took:.0f} ms")
