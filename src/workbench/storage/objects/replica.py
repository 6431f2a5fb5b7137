"""The copy of one mount in the object store: brought up to what lies here, and brought back where nothing lies here.

    file here --send--> object, and its mark in the manifest
    file gone --drop--> no object, and nothing in the manifest

Before an object is touched the manifest says that its state is unknown, so that whoever is killed leaves nothing that
is taken for saved. A manifest belongs to one folder and to one place in a bucket. A folder that is not here, or another
one than that, is a loss and not a deletion: what it lacks is brought back, and nothing is dropped.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor

from workbench.data_folder import DataFolder
from workbench.errors import StoreUnavailable
from workbench.model.ids import MountId
from workbench.storage.objects.bucket import Bucket, Source
from workbench.storage.objects.copying import MOST_HOLES, Copy, Saved, let_changes_show, metadata_of
from workbench.storage.objects.incarnation import incarnation_of
from workbench.storage.objects.keys import name_of, path_of
from workbench.storage.objects.locks import CopyLocks, MountGone
from workbench.storage.objects.manifest import Binding, Kept, Manifest, Mark, remove_manifest
from workbench.storage.objects.restoring import Restored, Stored, add_missing, restore_into
from workbench.storage.objects.walking import Walk, What, changes
from workbench.storage.staging import TOP, sync_folder

# As the disk's store gives them.
_UPLOAD_MODE = 0o644
# Of a file that is sent, or of a save or a restore of another process; a large file takes minutes.
_PATH_WAIT_S, _SAVER_WAIT_S, _REMOVE_WAIT_S = 300.0, 600.0, 300.0
# Who sends a file notices soon that it was deleted.
_DROP_WAIT_S = 30.0


class Replica:
    """Of one mount. For threads; costs nothing to make."""

    def __init__(self, data: DataFolder, mount: MountId, bucket: Bucket, sending: Executor) -> None:
        self._folder = data.files / mount
        self._staging = data.replicas / f"{mount}.restoring"
        self._manifest_path = data.replicas / f"{mount}.db"
        self._locks = CopyLocks(data.replicas / f"{mount}.lock", bucket.stopped)
        self._bucket = bucket
        self._prefix = f"{bucket.prefix}{mount}/"
        self._sending = sending

    def incarnation(self) -> str | None:
        """Of the working copy; None if there is none."""
        with self._top() as top:
            return None if top is None else incarnation_of(top)

    def check_path(self, path: bytes) -> None:
        """Whether a file of that path can be kept. Raises: InvalidRequest."""
        self._bucket.check_key(self._prefix + name_of(path))

    def restore(self, is_wanted: Callable[[], bool] = lambda: True) -> str | None:
        """Have the folder, with everything that the object store has of it; its incarnation then. Nothing happens if
        it is not wanted any more.

        Raises:
            StoreUnavailable: it cannot be brought; there is none then, or only what was here before.
        """
        with self._locks.restorer(wait_s=_SAVER_WAIT_S):
            if not is_wanted():
                return None
            with self._copy() as copy:
                if copy is not None and self._bind(copy):
                    return copy.binding.folder
            with Manifest(self._manifest_path) as manifest, Restored(self._staging) as top:
                kept = restore_into(top, self._objects(), self._bucket, self._sending)
                # First: a folder without it would be sent again as a whole.
                made = incarnation_of(top)
                manifest.fill(kept, Binding(self._bucket.place, made))
                try:
                    self._folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    os.rename(self._staging, self._folder)
                    sync_folder(self._folder.parent)
                except OSError as problem:
                    raise StoreUnavailable(f"{self._folder} cannot be made: {problem.strerror}") from problem
                return made

    def _bind(self, copy: Copy) -> bool:
        """Have the manifest tell of this folder: one that was here before the object store was, came from elsewhere, or
        was made by somebody else when the last one was lost; or what was known of it got lost. False if the folder is
        gone by now.
        """
        if copy.is_there() and not copy.is_bound():
            stored = self._objects()
            # Of none of them is known that this folder had it, nor of any file here that it is there.
            copy.manifest.fill((Kept(one.path, None, ours=False) for one in stored), None)
            with Restored(self._staging) as staging:
                for path, mark in add_missing(copy.top, staging, stored, self._bucket, self._sending):
                    copy.manifest.saved(path, mark)
            copy.manifest.bind(copy.binding)
        return copy.is_there()

    def _objects(self) -> list[Stored]:
        return [
            Stored(one.key, path_of(one.key.removeprefix(self._prefix)), one.modified_at)
            for one in self._bucket.objects(self._prefix)
            if not one.key.endswith("/")
        ]

    def save(self) -> Saved:
        """Send what is new or has changed, and drop what is gone. What changes meanwhile comes the next time.

        Raises:
            StoreUnavailable: the object store does not answer; some of it may have been done.
        """
        if not self._folder.is_dir():
            return Saved()
        try:
            with self._locks.saver(wait_s=_SAVER_WAIT_S), self._copy() as copy:
                return copy.save() if copy is not None and self._bind(copy) else Saved()
        except MountGone:
            return Saved()

    def drop(self, path: bytes) -> None:
        """What was deleted here, a file or a folder. Raises: StoreUnavailable."""
        with contextlib.suppress(MountGone), self._copy() as copy:
            if copy is None:
                return
            if not copy.is_bound():
                raise StoreUnavailable("what the object store has of it is not known yet: delete it again")
            copy.drop_all(copy.manifest.beneath(path), wait_s=_DROP_WAIT_S)

    @contextlib.contextmanager
    def putting(self, path: bytes, descriptor: int, size: int) -> Iterator[None]:
        """Send a file that is not in its place yet; it gets there within the context, or not.

        Raises:
            StoreUnavailable: the object store did not take it, or did not say so.
        """
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(self._locks.path(path, wait_s=_PATH_WAIT_S))
            except MountGone:
                # With all that was staged: whoever puts it in its place says so.
                yield
                return
            if not os.fstat(descriptor).st_nlink:
                yield
                return
            manifest = held.enter_context(Manifest(self._manifest_path))
            try:
                mark = self._put(manifest, path, descriptor, size)
            except OSError as problem:
                raise StoreUnavailable(f"what came of the upload cannot be read: {problem.strerror}") from problem
            try:
                yield
            except BaseException:
                self._take_back(path)
                raise
            # That of what was sent: code may have written to it since it got its name.
            manifest.saved(path, mark)

    def _put(self, manifest: Manifest, path: bytes, descriptor: int, size: int) -> Mark:
        """Which mark it has when it is in its place."""
        if old := manifest.in_the_way(path):
            with contextlib.suppress(MountGone), self._copy() as copy:
                if copy is not None:
                    copy.drop(old)
        manifest.begin(path, is_here=False)
        let_changes_show(descriptor)
        mark = Mark.of(os.fstat(descriptor))._replace(size=size, mode=_UPLOAD_MODE)
        source = Source(
            descriptor=descriptor,
            size=size,
            metadata=metadata_of(mark),
            is_unchanged=lambda: os.fstat(descriptor).st_nlink > 0,
        )
        self._bucket.put(self._prefix + name_of(path), source)
        return mark

    def _take_back(self, path: bytes) -> None:
        """What was sent and then found no place here; what is here instead is sent by the next save."""
        with contextlib.suppress(StoreUnavailable), self._copy() as copy:
            if copy is not None:
                copy.drop_held([path])

    def unsaved(self) -> int:
        """How many files are here that the object store has not, or not as they are."""
        with self._top() as top:
            if top is None:
                return 0
            if not self._manifest_path.exists():
                return sum(one.mark is not None for one in Walk(top))
            with Manifest(self._manifest_path) as manifest:
                is_bound = manifest.binding == Binding(self._bucket.place, incarnation_of(top))
                kept = manifest.kept() if is_bound else iter(())
                found = changes(Walk(top), kept, most_holes=MOST_HOLES)
                return sum(one.what is not What.DROP for one in found)

    def remove(self) -> None:
        """Every object, and what is known of them; the folder is gone already. Raises: StoreUnavailable."""
        with self._locks.all(wait_s=_REMOVE_WAIT_S):
            self._bucket.abort_uploads(self._prefix)
            self._bucket.delete([one.key for one in self._bucket.objects(self._prefix)])
            remove_manifest(self._manifest_path)

    @contextlib.contextmanager
    def _copy(self) -> Iterator[Copy | None]:
        with self._top() as top:
            if top is None:
                yield None
                return
            with Manifest(self._manifest_path) as manifest:
                yield Copy(
                    folder=self._folder,
                    top=top,
                    manifest=manifest,
                    bucket=self._bucket,
                    prefix=self._prefix,
                    locks=self._locks,
                    sending=self._sending,
                )

    @contextlib.contextmanager
    def _top(self) -> Iterator[int | None]:
        try:
            top = os.open(self._folder, TOP)
        except FileNotFoundError:
            yield None
            return
        except OSError as problem:
            raise StoreUnavailable(f"{self._folder} cannot be read: {problem.strerror}") from problem
        try:
            yield top
        finally:
            os.close(top)
