"""Files that do not go through messages: fetched from other servers, and given out by links that anyone can open."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass

from workbench.core import mount_requests
from workbench.core.links import address_of
from workbench.errors import InvalidRequest, WorkbenchError
from workbench.mcp.visit import Visit
from workbench.model.ids import SessionId
from workbench.model.mounts import INSIDE, LinkAction, MountFile


@dataclass(frozen=True, slots=True)
class DownloadLink:
    """For whoever has it, for a while."""

    url: str
    expires_at: str


async def fetched(visit: Visit, session: SessionId, url: str, destination: str) -> MountFile:
    """What another server has, put under /mnt/files; the destination may be a folder that ends with a slash.

    Raises:
        InvalidRequest: the destination is elsewhere.
    """
    # Taken step by step as the shell would, as it is compared with a path and not opened by it.
    where = posixpath.normpath(destination) if destination else INSIDE
    if not destination:
        destination = f"{INSIDE}/"
    elif where != INSIDE and not where.startswith(f"{INSIDE}/"):
        raise InvalidRequest(
            f"what a URL leads to is put under {INSIDE}, not at {destination[:200]!r}: give a `destination` there, "
            f"such as {INSIDE}/data/, and copy it inside if it is needed elsewhere"
        )
    return await visit.bench.mounts.fetch(mount_requests.FetchFile(session=session, url=url, path=destination))


async def download_link(visit: Visit, session: SessionId, path: str) -> DownloadLink | None:
    """To a file under /mnt/files, if there is a server to ask for it; None for any other."""
    if not visit.address or not path.startswith(f"{INSIDE}/"):
        return None
    wanted = mount_requests.MakeLink(session=session, path=path, action=LinkAction.DOWNLOAD)
    try:
        made = await visit.bench.mounts.link(wanted)
    except WorkbenchError:
        # Read inside it is a file; from outside it may be a link, which nobody follows there. It is exported all the
        # same.
        return None
    return DownloadLink(visit.address + address_of(made), made.expires_at)
