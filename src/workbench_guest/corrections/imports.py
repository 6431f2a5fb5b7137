"""What is done to a library once it has been imported, by whoever and whenever. A mere question does nothing."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

Patch = Callable[[Any], None]


class AfterImport(importlib.abc.MetaPathFinder):
    """First of all finders: leaves the finding to the others, and looks at what they found."""

    def __init__(self, patches: dict[str, Patch]) -> None:
        self._patches = patches

    def install(self) -> None:
        """For what comes, and at once for what is there."""
        for name, patch in self._patches.items():
            if (module := sys.modules.get(name)) is not None:
                patch(module)
        sys.meta_path.insert(0, self)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """As the others have it."""
        patch = self._patches.get(name)
        if patch is None:
            return None
        for finder in sys.meta_path:
            look = getattr(finder, "find_spec", None)
            if finder is not self and look is not None and (spec := look(name, path, target)) is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, patch)
                return spec  # type: ignore[no-any-return]  # a finder's answer
        return None


class _Loader(importlib.abc.Loader):
    """The real one, and then the patch; the module keeps nothing of this."""

    def __init__(self, real: Any, patch: Patch) -> None:
        self._real = real
        self._patch = patch

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        """As the real one."""
        return self._real.create_module(spec)  # type: ignore[no-any-return]

    def exec_module(self, module: types.ModuleType) -> None:
        """As the real one, and then the patch."""
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._real
        self._real.exec_module(module)
        self._patch(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)
