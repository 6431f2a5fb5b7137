"""What the calls of `session.files` do, step by step: the same for both clients."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

from workbench.client import _local_files, _transfers
from workbench.client._local_files import Sendable
from workbench.client._transfers import LinkT, Place, Steps


def upload(place: Place[LinkT], source: Sendable, remote_path: str | None, mimetype: str | None) -> Steps[LinkT]:
    """From this machine, or from a URL by the server."""
    if _local_files.is_url(source):
        return (yield from _transfers.fetch(place, cast("str", source), remote_path or ""))
    path = _local_files.remote_name(source, remote_path, mimetype)
    with _local_files.opened(source) as opened:
        return (yield from _transfers.upload(place, opened, path))


def read(place: Place[LinkT], link: LinkT) -> Steps[tuple[LinkT, bytes]]:
    """Into memory."""
    kept = _local_files.Kept()
    link = yield from _transfers.download(place, link, kept)
    return link, kept.whole()


def save(place: Place[LinkT], link: LinkT, path: str | os.PathLike[str] | None) -> Steps[tuple[LinkT, Path]]:
    """Into a file of this machine."""
    target = _local_files.place_for(path, link.path.rpartition("/")[2])
    with _local_files.saved(target) as part:
        link = yield from _transfers.download(place, link, part)
    return link, target
