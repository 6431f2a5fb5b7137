"""What a runtime image is: an interpreter with libraries, and which of them every sandbox finds already imported."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmSet:
    """Modules that are worth an interpreter of their own which has imported them, for those who ask for it."""

    name: str
    modules: tuple[str, ...]


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
    late: str = ""
    """the file that is there once what arrives after the image has arrived; empty if nothing does"""
    warm: tuple[WarmSet, ...] = ()
    """what a second zygote may have imported besides; of what is late, once that is there"""

    def warm_set(self, name: str) -> WarmSet | None:
        """By its name, if the image has it."""
        return next((one for one in self.warm if one.name == name), None)
