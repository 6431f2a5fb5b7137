"""A bucket of an S3-compatible store: objects put, fetched, listed and deleted. For threads.

Nothing here holds more of a file in memory than one that is small, and no request waits for longer than its timeouts
and its tries allow. What the store refuses is told in words that name the setting to look at, never with a secret.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from workbench.errors import InvalidRequest, StoreUnavailable
from workbench.storage.objects.connecting import TRIES, BucketAddress, connect, ending
from workbench.storage.objects.pieces import Window, read_whole, write_piece

# One that is so small is read before it is sent, so that what is sent belongs together.
_WHOLE_BYTES = 2 * 1024 * 1024
# Stores take 5 MiB to 5 GiB, and 10,000 of them.
_PART_BYTES, _MOST_PARTS = 8 * 1024 * 1024, 10_000
_PARTS_AT_ONCE, _PARTS_OF_ONE = 8, 4
_DELETED_AT_ONCE = 1000
_PIECE = 1024 * 1024
_MOST_KEY_BYTES = 1024

_BY_KEY = {"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken",
           "InvalidClientTokenId", "AuthorizationHeaderMalformed", "403", "401"}  # fmt: skip
_OF_ONE_OBJECT = {"KeyTooLongError", "EntityTooLarge", "InvalidObjectName", "BadDigest", "XAmzContentSHA256Mismatch",
                  "ExistingObjectIsDirectory", "ExistingObjectIsFile", "IncompleteBody"}  # fmt: skip
_NO_SUCH_CALL = {"NotImplemented", "MethodNotAllowed", "501", "405", "MissingContentMD5", "InvalidRequest"}
# A name that XML has no words for: by itself, in an address, it can be deleted.
_NOT_SO_MANY = {"MalformedXML"}


# In the context of an error: others may be taken all the same. No class of its own, which would be one of the tree.
_THIS_ONE = {"refused": "this file"}


def is_of_one_object(problem: StoreUnavailable) -> bool:
    """Whether the store does not take this one, and may take others."""
    return problem.context == _THIS_ONE


class NoSuchObject(Exception):
    """Not an error of the store: somebody has deleted it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file to be sent."""

    descriptor: int
    size: int
    metadata: Mapping[str, str]
    is_unchanged: Callable[[], bool]
    """whether what was read so far belongs together"""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One in a listing."""

    key: str
    modified_at: datetime.datetime


class Bucket:
    """A bucket, reached when it is first needed. Every method raises StoreUnavailable if the store does not do it."""

    def __init__(self, address: BucketAddress) -> None:
        self._address = address
        self._client: Any = None
        self._lock = threading.Lock()
        self._parts = ThreadPoolExecutor(_PARTS_AT_ONCE, "files-parts")
        self.stopped = threading.Event()
        """set by `stop`, for who waits for something else meanwhile"""
        self._deletes_many = True

    @property
    def prefix(self) -> str:
        """Of all keys."""
        return self._address.prefix

    @property
    def place(self) -> str:
        """Which objects these are."""
        return self._address.place

    def check_key(self, key: str) -> None:
        """Before anything is sent. Raises: InvalidRequest."""
        if len(key.encode()) > _MOST_KEY_BYTES:
            raise InvalidRequest(_too_long(key))

    def put(self, key: str, source: Source) -> bool:
        """Under that key, whole and at once; False, and nothing is changed, if the file was written to meanwhile.

        Raises:
            StoreUnavailable: also, as `is_of_one_object` tells, if it is not taken under any circumstances.
            OSError: the file cannot be read.
        """
        if len(key.encode()) > _MOST_KEY_BYTES:
            raise StoreUnavailable(_too_long(key), _THIS_ONE)
        if source.size > _WHOLE_BYTES:
            return self._put_in_parts(key, source)
        body = read_whole(source.descriptor, source.size)
        if len(body) != source.size or not source.is_unchanged():
            return False
        with self._told():
            self._connected().put_object(**self._named(key), Body=body, Metadata=dict(source.metadata))
        return True

    def _put_in_parts(self, key: str, source: Source) -> bool:
        with self._told():
            begun = self._connected().create_multipart_upload(**self._named(key), Metadata=dict(source.metadata))
        named = self._named(key) | {"UploadId": begun["UploadId"]}
        try:
            parts = self._sent(named, source)
            if not parts or not source.is_unchanged():
                self._abort(named)
                return False
            with self._told():
                self._connected().complete_multipart_upload(**named, MultipartUpload={"Parts": parts})
        except BaseException:
            self._abort(named)
            raise
        return True

    def _sent(self, named: Mapping[str, str], source: Source) -> list[dict[str, object]]:
        """All parts, several at once; none if the file was written to."""
        size = max(_PART_BYTES, -(-source.size // _MOST_PARTS))
        starts = range(0, source.size, size)

        def send(number: int, start: int) -> dict[str, object] | None:
            if failed.is_set() or not source.is_unchanged():
                return None
            body = Window(source.descriptor, start, min(size, source.size - start))
            try:
                with self._told():
                    told = self._connected().upload_part(**named, PartNumber=number, Body=body)
                if body.problem is not None:
                    raise body.problem
            except BaseException:
                failed.set()
                raise
            return {"PartNumber": number, "ETag": told["ETag"]}

        failed = threading.Event()
        sent: list[dict[str, object]] = []
        numbered = list(enumerate(starts, 1))
        # A few of one file at a time: a small one does not wait behind all of a large one.
        for first in range(0, len(numbered), _PARTS_OF_ONE):
            wave = [self._parts.submit(send, *one) for one in numbered[first : first + _PARTS_OF_ONE]]
            if problems := [problem for one in wave if (problem := one.exception()) is not None]:
                raise problems[0]
            parts = [part for one in wave if (part := one.result()) is not None]
            if len(parts) < len(wave):
                return []
            sent += parts
        return sent

    def _abort(self, named: Mapping[str, str]) -> None:
        with contextlib.suppress(BotoCoreError, ClientError, StoreUnavailable):
            self._connected(even_stopped=True).abort_multipart_upload(**named)

    def fetch(self, key: str, descriptor: int) -> dict[str, str]:
        """What is in it, into an empty file; and its metadata.

        Raises:
            NoSuchObject: it is gone.
            WriteFailed: the file cannot be written.
        """
        tries_left = TRIES
        while True:
            tries_left -= 1
            os.ftruncate(descriptor, 0)
            os.lseek(descriptor, 0, os.SEEK_SET)
            try:
                with self._told():
                    return self._fetch(key, descriptor)
            except StoreUnavailable:
                # A stream that broke off is not tried again by the client itself.
                if not tries_left or self.stopped.is_set():
                    raise

    def _fetch(self, key: str, descriptor: int) -> dict[str, str]:
        try:
            told = self._connected().get_object(**self._named(key))
        except ClientError as problem:
            if _code(problem) in {"NoSuchKey", "404"}:
                raise NoSuchObject(key) from problem
            raise
        with contextlib.closing(told["Body"]) as body:
            while piece := body.read(_PIECE):
                write_piece(descriptor, piece)
                self._check_running()
        return dict(told.get("Metadata") or {})

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        """All whose key begins so."""
        asked: dict[str, str] = {"Bucket": self._address.bucket, "Prefix": prefix}
        while True:
            with self._told():
                page = self._connected().list_objects_v2(**asked)
            for one in page.get("Contents", ()):
                yield StoredObject(one["Key"], one["LastModified"])
            if not page.get("IsTruncated"):
                return
            asked["ContinuationToken"] = page["NextContinuationToken"]

    def delete(self, keys: Sequence[str]) -> None:
        """All of them; those that are not there are no problem."""
        for start in range(0, len(keys), _DELETED_AT_ONCE):
            some = keys[start : start + _DELETED_AT_ONCE]
            if len(some) == 1 or not self._delete_many(some):
                for key in some:
                    with self._told():
                        self._connected().delete_object(**self._named(key))

    def _delete_many(self, keys: Sequence[str]) -> bool:
        """False if the store has no such call, as some have not, or not for these."""
        if not self._deletes_many:
            return False
        wanted = {"Objects": [{"Key": key} for key in keys], "Quiet": True}
        with self._told():
            try:
                told = self._connected().delete_objects(Bucket=self._address.bucket, Delete=wanted)
            except ClientError as problem:
                if _code(problem) not in _NO_SUCH_CALL | _NOT_SO_MANY:
                    raise
                self._deletes_many = _code(problem) in _NOT_SO_MANY
                return False
        if left := [one for one in told.get("Errors", ()) if one.get("Code") != "NoSuchKey"]:
            raise StoreUnavailable(f"the object store did not delete {len(left)} objects: {left[0].get('Code')}")
        return True

    def abort_uploads(
        self, prefix: str, *, before: datetime.datetime | None = None, mounts: frozenset[str] | None = None
    ) -> int:
        """Drop what came of uploads that never ended, begun before that moment; how many there were. Of these mounts,
        if they are given: a bucket may be others' as well.
        """
        asked: dict[str, str] = {"Bucket": self._address.bucket, "Prefix": prefix}
        aborted = 0
        while True:
            with self._told():
                try:
                    page = self._connected().list_multipart_uploads(**asked)
                except ClientError as problem:
                    if _code(problem) in _NO_SUCH_CALL:
                        return aborted
                    raise
            for one in page.get("Uploads", ()):
                mount, _, path = one["Key"].removeprefix(prefix).partition("/")
                is_ours = one["Key"].startswith(prefix) and (mounts is None or (path and mount in mounts))
                if is_ours and (before is None or one["Initiated"] < before):
                    self._abort(self._named(one["Key"]) | {"UploadId": one["UploadId"]})
                    aborted += 1
            if not page.get("IsTruncated") or not page.get("NextKeyMarker"):
                return aborted
            asked |= {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page.get("NextUploadIdMarker", "")}

    def stop(self) -> None:
        """What is being sent ends soon, and nothing begins any more. May be called twice."""
        self.stopped.set()

    def close(self) -> None:
        """After all threads have left. May be called twice."""
        self.stop()
        self._parts.shutdown()
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _named(self, key: str) -> dict[str, str]:
        return {"Bucket": self._address.bucket, "Key": key}

    def _check_running(self) -> None:
        if self.stopped.is_set():
            raise ending()

    def _connected(self, *, even_stopped: bool = False) -> Any:
        if not even_stopped:
            self._check_running()
        with self._lock:
            if self._client is None:
                self._client = connect(self._address, self.stopped)
            return self._client

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except ClientError as problem:
            raise self._refused(_code(problem)) from problem
        except (BotoCoreError, OSError) as problem:
            where = self._address.endpoint or "Amazon S3"
            raise StoreUnavailable(
                f"the object store at {where} does not answer ({type(problem).__name__}); look whether it runs, and at "
                "WORKBENCH_FILES_ENDPOINT",
                {"setting": "WORKBENCH_FILES_ENDPOINT"},
            ) from problem

    def _refused(self, code: str) -> StoreUnavailable:
        if code in _BY_KEY:
            return StoreUnavailable(
                f"the object store refuses our credentials ({code}); look at WORKBENCH_FILES_ACCESS_KEY and "
                f"WORKBENCH_FILES_SECRET_KEY, and whether they may read and write {self._address.bucket!r}",
                {"setting": "WORKBENCH_FILES_ACCESS_KEY"},
            )
        if code in {"NoSuchBucket", "InvalidBucketName", "PermanentRedirect", "404"}:
            return StoreUnavailable(
                f"the object store has no bucket {self._address.bucket!r} ({code}): make it, or look at "
                "WORKBENCH_FILES_URL and WORKBENCH_FILES_REGION",
                {"setting": "WORKBENCH_FILES_URL"},
            )
        if code in _OF_ONE_OBJECT:
            return StoreUnavailable(f"the object store does not take this file ({code})", _THIS_ONE)
        return StoreUnavailable(f"the object store answers {code}; its log tells more")


def _code(problem: ClientError) -> str:
    return str(problem.response.get("Error", {}).get("Code", "an error without a name"))


def _too_long(key: str) -> str:
    return (
        f"an object store takes names of {_MOST_KEY_BYTES} bytes, and this file would need {len(key.encode())}: "
        "shorten its path"
    )
