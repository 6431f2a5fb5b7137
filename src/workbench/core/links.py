"""Links to files: good for one session, mount, path and action, for a while, and without a key in them.

What a link says is in its address, in the clear; the signature says that we said so. It is made with a secret of the
data folder that signs nothing else, so a link that leaks leaks one file until its hour has come, and no key.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable
from urllib.parse import quote, urlencode

from workbench.core.mount_requests import FileLink, SignedLink
from workbench.model.ids import DEFAULT_PROJECT

# Another one with every change of what is signed, so that nothing that was signed before means something else.
_VERSION = "workbench-link-1"


def address_of(signed: SignedLink) -> str:
    """Where the link leads, behind the address of the server."""
    link = signed.link
    path = "/".join(quote(step, safe="") for step in (link.session, link.mount, *link.path.split("/")))
    said = {"exp": str(link.expires), "sig": signed.signature}
    if link.project != DEFAULT_PROJECT:
        said["project"] = link.project
    if link.size is not None:
        said["size"] = str(link.size)
    if link.upload:
        said["upload"] = link.upload
    return f"/files/{path}?{urlencode(said)}"


class LinkSigner:
    """Signs links, and tells its own from others."""

    def __init__(self, key: Callable[[], bytes]) -> None:
        self._key = key

    def signature(self, link: FileLink, born: str) -> str:
        """Of a link to a session that was made at `born`: another of the same name is another session."""
        # Each part with its length, so that no two links are the same text.
        size = "" if link.size is None else str(link.size)
        whose = (link.project, link.session, born, link.mount, link.path)
        what = (link.action, str(link.expires), size, link.upload)
        text = "".join(f"{len(part.encode())}:{part}" for part in (_VERSION, *whose, *what))
        made = hmac.digest(self._key(), text.encode(), hashlib.sha256)
        return base64.urlsafe_b64encode(made).rstrip(b"=").decode()

    def accepts(self, link: FileLink, born: str, signature: str) -> bool:
        """Whether we made it, all of it."""
        # BARRIER: who can make one up reads and writes files of any session; held by tests/unit/core/test_links.py.
        return hmac.compare_digest(self.signature(link, born).encode(), signature.encode("utf-8", "replace"))
