"""The client of an S3-compatible store: what it is told, and what it must not look at."""

from __future__ import annotations

import functools
import os
import threading
from dataclasses import dataclass, field
from typing import Any

from workbench.errors import StoreUnavailable

_CONNECT_S, _READ_S = 5.0, 30.0
TRIES = 3
_CONNECTIONS = 32
# Gives up what was begun: the one call that is still of use at the end.
_EVEN_STOPPED = "AbortMultipartUpload"


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketAddress:
    """Where it is, and by which credentials."""

    bucket: str
    prefix: str = ""
    """of all keys; empty, or with a slash at its end"""
    endpoint: str = ""
    """of a store that is not Amazon's"""
    region: str = ""
    access_key: str
    secret_key: str = field(repr=False)
    session_token: str = field(default="", repr=False)

    @property
    def place(self) -> str:
        """Which objects are meant, whoever asks for them."""
        return "\n".join((self.endpoint, self.bucket, self.prefix))


def connect(address: BucketAddress, stopped: threading.Event) -> Any:
    """A client, which begins no request and no further try of one after the event."""
    # Here: it takes half a second to import, and many commands end without having needed it.
    from botocore.config import Config

    config = Config(
        connect_timeout=_CONNECT_S,
        read_timeout=_READ_S,
        retries={"mode": "standard", "total_max_attempts": TRIES},
        max_pool_connections=_CONNECTIONS,
        ignore_configured_endpoint_urls=True,
        # A store of one's own has seldom a name for each bucket.
        s3={"addressing_style": "path" if address.endpoint else "auto"},
        # The newer checksums are Amazon's; others answer them with errors.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    with _session_lock:
        client = _session().create_client(
            "s3",
            region_name=address.region or "us-east-1",
            endpoint_url=address.endpoint or None,
            aws_access_key_id=address.access_key,
            aws_secret_access_key=address.secret_key,
            aws_session_token=address.session_token or None,
            config=config,
        )

    def check(event_name: str, **_: object) -> None:
        if stopped.is_set() and not event_name.endswith(_EVEN_STOPPED):
            raise ending()

    client.meta.events.register("before-send.s3", check)
    return client


def ending() -> StoreUnavailable:
    """For what is not begun any more."""
    return StoreUnavailable("this process is ending, and sends no more files to the object store")


_session_lock = threading.Lock()


@functools.cache
def _session() -> Any:
    """One for all: it holds what it read about the service, and no credentials."""
    from botocore.session import Session

    # BARRIER: nothing but our settings decides who we are; files of the user's home and the machine's own identity are
    # not asked; held by tests/mounts/test_object_store.py.
    nowhere = (None, None, os.devnull, None)
    return Session({"profile": (None, None, None, None), "config_file": nowhere, "credentials_file": nowhere})
