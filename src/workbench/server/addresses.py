"""Which addresses are this machine's own, and by which one a caller reaches it."""

from __future__ import annotations

import ipaddress
import re

from starlette.datastructures import Headers
from starlette.types import Scope

from workbench.server.service import ServerOptions

_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?")


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def without_port(host: str) -> str:
    """The name or address in a Host header."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def reached_by(scope: Scope, options: ServerOptions) -> str:
    """The address of the server for the caller of this request: the public one, or else that which it asked."""
    if options.public_url:
        return options.public_url
    host = Headers(scope=scope).get("host", "")
    return f"{scope['scheme']}://{host}" if _HOST.fullmatch(host) else options.url


def links_lead_to(scope: Scope, options: ServerOptions) -> str:
    """The address that links to files begin with, for the caller of this request."""
    return options.links_url or reached_by(scope, options)
