"""What a runtime image is: an interpreter with libraries, and which of them every sandbox finds already imported."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """Built once, then read-only. Paths are the host's and the same inside, so that nothing needs relocating."""

    name: str
    digest: str
    """of the lock and the interpreter: two hosts with one digest run the same code"""
    python: str
    """the interpreter to execute"""
    roots: tuple[str, ...]
    """folders that must be visible inside"""
    preload: tuple[str, ...]
    """modules that the zygote imports"""
    entry: str | None = None
    """what of the guest its sandboxes run first: built in the zygote, prepared in pooled slots"""
    env: tuple[tuple[str, str], ...] = ()
    """variables that the image's libraries need"""
