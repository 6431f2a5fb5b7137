"""What every engine is given when it is made; an engine reads no setting and no environment itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from workbench.model.image import Image


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """One value for all engines; each uses what it needs."""

    image: Image
    run_dir: Path
    """for this host alone; staging folders and the like"""
    files_root: Path
    """parent of every folder that can become a sandbox's files"""
    packages_root: Path
    """parent of every folder that can become a sandbox's packages"""
    group_name: str
    """of the control groups; the sweep after a crash finds them by it"""
    pool_size: int
    """sandboxes kept ready, where the engine can"""
