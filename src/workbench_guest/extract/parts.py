"""An Office file: zipped parts of XML, and which of them belongs to which."""

from __future__ import annotations

import posixpath
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from workbench_guest.extract import limits
from workbench_guest.extract.safe_xml import Event, Start, events
from workbench_guest.extract.values import Source, Unreadable

_ENCRYPTED = 0x1


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A part that another one refers to; never one outside of the file."""

    id: str
    kind: str
    target: str


class Parts:
    """The parts of one file, read one at a time."""

    def __init__(self, source: Source) -> None:
        self._name = source.name
        try:
            self._archive = zipfile.ZipFile(source.file)
        except (zipfile.BadZipFile, ValueError, NotImplementedError):
            raise Unreadable(f"{source.name} is broken or cut off: get it again") from None
        members = self._archive.infolist()
        if len(members) > limits.MAX_PARTS:
            raise Unreadable(f"{source.name} has {len(members)} parts, which no document has: it is not unpacked")
        # Pictures and films are not read, and so do not count.
        unpacked = sum(member.file_size for member in members if member.filename.endswith((".xml", ".rels")))
        if unpacked > limits.MAX_UNPACKED_BYTES:
            raise Unreadable(
                f"{source.name} would unpack to {unpacked // limits.MIB} MB, and at most "
                f"{limits.MAX_UNPACKED_BYTES // limits.MIB} MB are unpacked: split it"
            )
        self._members = {member.filename: member for member in members}

    @property
    def names(self) -> list[str]:
        """Of all parts."""
        return list(self._members)

    def has(self, name: str) -> bool:
        """Whether there is such a part."""
        return name in self._members

    def events(self, name: str) -> Iterator[Event]:
        """What is in that part.

        Raises:
            Unreadable: it is missing, encrypted or broken.
        """
        member = self._members.get(name)
        if member is None:
            raise Unreadable(f"{self._name} is broken: its part {name} is missing; save it again where it was made")
        if member.flag_bits & _ENCRYPTED:
            raise Unreadable(f"{self._name} is encrypted: save it without a password, and give that")
        try:
            with self._archive.open(member) as stream:
                yield from events(stream, f"{self._name} ({name})")
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as problem:
            raise Unreadable(f"{self._name} is broken in its part {name} ({problem}): get it again") from None

    def relations(self, name: str) -> list[Relation]:
        """What that part refers to inside of the file, in order."""
        folder, base = posixpath.split(name)
        listing = posixpath.join(folder, "_rels", f"{base}.rels")
        if not self.has(listing):
            return []
        return [
            Relation(
                id=event.attributes.get("Id", ""),
                kind=event.attributes.get("Type", "").rpartition("/")[2],
                target=posixpath.normpath(posixpath.join("/", folder, event.attributes.get("Target", ""))).lstrip("/"),
            )
            for event in self.events(listing)
            # What lies outside is not followed, whatever it is.
            if isinstance(event, Start)
            and event.name == "Relationship"
            and event.attributes.get("TargetMode") != "External"
        ]

    def main(self) -> str:
        """The part that the file is about."""
        for relation in self.relations(""):
            if relation.kind == "officeDocument" and self.has(relation.target):
                return relation.target
        raise Unreadable(f"{self._name} is broken: it does not say where its text is; save it again where it was made")
