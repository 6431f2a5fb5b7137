"""Engines by name. The only module that knows every engine there is."""

from __future__ import annotations

from collections.abc import Callable

from workbench.contracts.engine import Engine
from workbench.engines.namespace.engine import NamespaceEngine
from workbench.engines.options import EngineOptions
from workbench.engines.process import ProcessEngine
from workbench.errors import InvalidSetting

_ENGINES: dict[str, Callable[[EngineOptions], Engine]] = {
    NamespaceEngine.name: NamespaceEngine,
    ProcessEngine.name: ProcessEngine,
}
KNOWN = tuple(_ENGINES)


def make_engine(name: str, options: EngineOptions) -> Engine:
    """The engine of that name, not started yet. The caller starts and closes it.

    Raises:
        InvalidSetting: there is none; the message lists those there are.
    """
    try:
        make = _ENGINES[name]
    except KeyError:
        raise InvalidSetting(f"no such engine: {name!r}; choose one of {', '.join(KNOWN)}") from None
    return make(options)
