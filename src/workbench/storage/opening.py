"""Which store the settings ask for."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field
from pathlib import Path

from workbench.contracts.mounts import MountStore
from workbench.contracts.storage import Records
from workbench.data_folder import DataFolder
from workbench.errors import InvalidSetting
from workbench.storage.database import Database
from workbench.storage.disk import DiskMountStore
from workbench.storage.records import SqlRecords
from workbench.storage.sqlite import SqliteDatabase

_POSTGRES = ("postgresql://", "postgres://")
_S3 = "s3://"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesPlace:
    """Where the settings want files of sessions to last."""

    url: str = ""
    """`s3://bucket/prefix`; empty for this machine's disk"""
    endpoint: str = ""
    region: str = ""
    access_key: str = ""
    secret_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)


def open_mounts(data: DataFolder, place: FilesPlace, *, close_s: float = 60.0) -> MountStore:
    """Those on the disk, or those in the URL's bucket, which is reached when it is first needed.

    Closing waits up to `close_s` for what is being saved.

    Raises:
        InvalidSetting: the URL is of no store that we know, there are no credentials, or its client is not installed.
    """
    return _in_a_bucket(data, place, close_s) if place.url else DiskMountStore(data)


def _in_a_bucket(data: DataFolder, place: FilesPlace, close_s: float) -> MountStore:
    bucket, _, prefix = place.url.removeprefix(_S3).partition("/")
    if not place.url.startswith(_S3) or not bucket:
        raise InvalidSetting("WORKBENCH_FILES_URL must be like s3://bucket/prefix, or be empty for this machine's disk")
    if not place.access_key or not place.secret_key:
        raise InvalidSetting(
            "WORKBENCH_FILES_URL asks for an object store, and there are no credentials for it: set "
            "WORKBENCH_FILES_ACCESS_KEY and WORKBENCH_FILES_SECRET_KEY"
        )
    if importlib.util.find_spec("botocore") is None:
        raise InvalidSetting(
            "WORKBENCH_FILES_URL asks for an object store, whose client is not installed: "
            "pip install 'open-workbench[s3]'"
        )
    # Here, so that whoever keeps files on the disk neither needs it nor waits for it.
    from workbench.storage.objects.connecting import BucketAddress
    from workbench.storage.objects.store import ObjectMountStore

    address = BucketAddress(
        bucket=bucket,
        prefix=f"{prefix.strip('/')}/" if prefix.strip("/") else "",
        endpoint=place.endpoint,
        region=place.region,
        access_key=place.access_key,
        secret_key=place.secret_key,
        session_token=place.session_token,
    )
    return ObjectMountStore(data, address, close_s=close_s)


def open_records(path: Path, url: str = "") -> Records:
    """Those of the URL's database, or of the SQLite file at `path` without one; opened when they are first used.

    Raises:
        InvalidSetting: the URL is of no database that we know, or its driver is not installed.
    """
    return SqlRecords(_postgres(url) if url else SqliteDatabase(path))


def _postgres(url: str) -> Database:
    if not url.startswith(_POSTGRES):
        raise InvalidSetting(
            f"WORKBENCH_DATABASE_URL must begin with {_POSTGRES[0]}, or be empty for a file in the data folder"
        )
    try:
        # Here, so that whoever keeps records in a file neither needs it nor waits for it.
        from workbench.storage.postgres import PostgresDatabase
    except ImportError as problem:
        raise InvalidSetting(
            f"WORKBENCH_DATABASE_URL asks for PostgreSQL, whose driver is not installed ({problem}): "
            "pip install 'open-workbench[postgres]'"
        ) from problem
    return PostgresDatabase(url)
