"""The async client has the same names with the same parameters."""

from __future__ import annotations

import inspect

import pytest

from workbench.client import aio, aio_files, aio_session, aio_toolkits, cells, files, session, sync, toolkits

PAIRS = [
    (sync.Workbench, aio.AsyncWorkbench),
    (sync.Keys, aio.AsyncKeys),
    (toolkits.Toolkits, aio_toolkits.AsyncToolkits),
    (toolkits.Connections, aio_toolkits.AsyncConnections),
    (toolkits.AuthConfigs, aio_toolkits.AsyncAuthConfigs),
    (session.Session, aio_session.AsyncSession),
    (files.Files, aio_files.AsyncFiles),
    (files.RemoteFile, aio_files.AsyncRemoteFile),
    (cells.Cell, cells.AsyncCell),
    (cells.Stream, cells.AsyncStream),
]


def public(kind: type) -> dict[str, object]:
    return {name: getattr(kind, name) for name in dir(kind) if not name.startswith("_")}


@pytest.mark.parametrize(("plain", "other"), PAIRS, ids=lambda kind: kind.__name__)
def test_both_have_the_same_names(plain: type, other: type) -> None:
    assert public(plain).keys() == public(other).keys()


@pytest.mark.parametrize(("plain", "other"), PAIRS, ids=lambda kind: kind.__name__)
def test_both_take_the_same_and_give_the_same(plain: type, other: type) -> None:
    methods = {"__init__": plain.__init__, **{name: it for name, it in public(plain).items() if callable(it)}}  # type: ignore[misc]
    for name, method in methods.items():
        twin = getattr(other, name)
        assert callable(method)
        ours, theirs = inspect.signature(method), inspect.signature(twin)
        mine = [(p.name, p.kind, p.default, str(p.annotation)) for p in ours.parameters.values()]
        its = [(p.name, p.kind, p.default, str(p.annotation).replace("Async", "")) for p in theirs.parameters.values()]
        assert mine == its, name
        assert str(ours.return_annotation) == str(theirs.return_annotation).replace("Async", ""), name


@pytest.mark.parametrize(("plain", "other"), PAIRS, ids=lambda kind: kind.__name__)
def test_everything_public_is_described(plain: type, other: type) -> None:
    for kind in (plain, other):
        assert [name for name, it in public(kind).items() if callable(it) and not inspect.getdoc(it)] == []
