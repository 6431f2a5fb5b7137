"""Where things lie in the data folder, and which of several hosts is the active one.

<data>/host.sock            a link to the socket of the active host
<data>/active.lock          held by the active host
<data>/hosts/<id>/          one host: lock, host.sock, journal.jsonl, spool/, root/
<data>/files/<mount>/       what /mnt/files shows; outlives hosts
<data>/mounts/<mount>.lock  held while a sandbox uses the mount
<data>/packages/<mount>/    what /mnt/packages shows, read-only: packages that were installed for those of the mount
<data>/package-store/       what was fetched of packages; overlays are links to it
<data>/uploads/<mount>/     what is on its way into a mount, unseen by the sandbox
<data>/replicas/<mount>.db  what the object store has of a mount, where there is one
<data>/links.key            what links to files are signed with
<data>/connections.key      what credentials of connected accounts are sealed with
<data>/image/<name>/        what was added to an image, and which one is in use; see images/additions.py
<data>/toolkits/<slug>/     where programs of toolkits are at home
<data>/losses.jsonl         sandboxes that ended with their host
<data>/workbench.db         records of sessions
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from workbench.model.ids import HostId, MountId

SOCKET = "host.sock"
GROUP_PREFIX = "workbench-"
# Folders below `files` that go with their sandbox, or with their host; no mount may be named so.
EPHEMERAL_PREFIX = "tmp-"


@dataclass(frozen=True, slots=True)
class DataFolder:
    """The data folder, by its parts."""

    path: Path

    def make(self) -> None:
        """Create it for its owner alone: parents of every session's files."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.path.chmod(0o700)
        for folder in (self.hosts, self.files, self.packages, self.mounts):
            folder.mkdir(exist_ok=True)
            folder.chmod(0o700)

    @property
    def hosts(self) -> Path:
        """Run folders."""
        return self.path / "hosts"

    @property
    def files(self) -> Path:
        """Mounts."""
        return self.path / "files"

    @property
    def mounts(self) -> Path:
        """A lock for each mount that is in use, held by the host that uses it."""
        return self.path / "mounts"

    def mount_lock(self, mount: MountId) -> Path:
        """Removed, while it is held, with the mount."""
        return self.mounts / f"{mount}.lock"

    def use_mount(self, mount: MountId) -> int | None:
        """The lock that says so, to be kept open; None while any host's sandbox uses it."""
        return take_lock(self.mount_lock(mount))

    @property
    def packages(self) -> Path:
        """What was installed, for each mount; its folders are seen by sandboxes, whoever they are on this machine."""
        return self.path / "packages"

    @property
    def package_store(self) -> Path:
        """On the same disk as the packages, which are links to what is in it. No sandbox sees it."""
        return self.path / "package-store"

    @property
    def uploads(self) -> Path:
        """Files that are not whole yet; on the same disk as the mounts, so that one step puts them there."""
        return self.path / "uploads"

    @property
    def replicas(self) -> Path:
        """What is known of the mounts' copies in the object store; on the same disk as the mounts, which come from
        there when they are brought back.
        """
        return self.path / "replicas"

    @property
    def links_key(self) -> Path:
        """A secret: who has it can make links to any file."""
        return self.path / "links.key"

    @property
    def approvals_key(self) -> Path:
        """A secret: who has it can make up answers to questions whether a tool may run."""
        return self.path / "approvals.key"

    @property
    def connections_key(self) -> Path:
        """A secret: who has it and the records has the credentials of every connected account."""
        return self.path / "connections.key"

    @property
    def toolkits(self) -> Path:
        """A folder for each program that a toolkit runs."""
        return self.path / "toolkits"

    @property
    def records(self) -> Path:
        """The database of sessions."""
        return self.path / "workbench.db"

    @property
    def socket(self) -> Path:
        """The active host's."""
        return self.path / SOCKET

    @property
    def losses(self) -> Path:
        """What earlier hosts took with them."""
        return self.path / "losses.jsonl"

    def run_folder(self, host: HostId) -> RunFolder:
        """Of one host."""
        return RunFolder(self.hosts / host)

    def run_folders(self) -> Iterator[RunFolder]:
        """Of all hosts, living or dead."""
        if self.hosts.is_dir():
            for child in sorted(self.hosts.iterdir()):
                yield RunFolder(child)

    def become_active(self) -> int | None:
        """The lock that says so, to be kept open; None while another host is active."""
        return take_lock(self.path / "active.lock")


@dataclass(frozen=True, slots=True)
class RunFolder:
    """One host's own folder."""

    path: Path

    @property
    def host(self) -> HostId:
        """Its id."""
        return HostId(self.path.name)

    @property
    def socket(self) -> Path:
        """Where it listens, active or draining."""
        return self.path / SOCKET

    @property
    def journal(self) -> Path:
        """What it made and what ended."""
        return self.path / "journal.jsonl"

    @property
    def spool(self) -> Path:
        """Outputs."""
        return self.path / "spool"

    @property
    def group_name(self) -> str:
        """Of its control groups."""
        return GROUP_PREFIX + self.host

    @property
    def ephemeral_prefix(self) -> str:
        """Of the folders below `files` that are of no use without this host; the engine uses it as well."""
        return f"{EPHEMERAL_PREFIX}{self.group_name}-"

    def lock(self) -> int | None:
        """Held by a living host; whoever else gets it may sweep."""
        return take_lock(self.path / "lock")


def take_lock(path: Path) -> int | None:
    """A descriptor that holds the lock until it is closed; None if someone else does, or its folder is gone."""
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        if _is_still(path, descriptor):
            return descriptor
        # Its last holder removed it between our two steps: it locks nothing any more.
        os.close(descriptor)


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def reach(socket_path: Path) -> str:
    """A name for a socket that fits the 107 bytes of an address however deep its folder is.

    The returned name holds a descriptor of the folder, which the caller closes by `release`.
    """
    folder = os.open(socket_path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    return f"/proc/self/fd/{folder}/{socket_path.name}"


def release(name: str) -> None:
    """Close what `reach` opened."""
    os.close(int(name.split("/")[4]))
