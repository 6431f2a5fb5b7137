"""A service on loopback in the place of all shipped ones, and their tools."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from tests.toolkits.service import Asked, Handler, Service, calling, serving
from tests.unit.core.router.sources import session

from workbench.model.connection import Credential, Secret
from workbench.model.toolkit import AuthKind, AuthScheme, ToolCall, ToolResult
from workbench.toolkits.shipped.services import SERVICES
from workbench.toolkits.shipped.source import ShippedTools

VALUES = {
    "api_key": "key-canary-1",
    "token": "token-canary-2",
    "access_token": "granted-canary-3",
    "username": "AC0123456789abcdef0123456789abcdef",
    "password": "password-canary-4",
    "subdomain": "acme",
    "cloud_id": "11223344-a1b2-3b33-c444-def123456789",
}
"""of accounts"""
_OWN = {AuthKind.OAUTH2: ("access_token",), AuthKind.BASIC: ("username", "password")}


def credential(scheme: AuthScheme) -> Credential:
    """Of an account that was connected in this way."""
    names = (*_OWN.get(scheme.kind, ()), *(one.name for one in scheme.fields))
    return Credential(
        kind=scheme.kind, scheme=scheme, values={name: Secret(VALUES[name]) for name in names}, account="ca_1"
    )


class World:
    """The service and the tools."""

    def __init__(self, service: Service, tools: ShippedTools) -> None:
        self.service = service
        self.tools = tools

    async def run(
        self, slug: str, arguments: Mapping[str, Any], *, way: int = 0, files: Mapping[str, bytes] | None = None
    ) -> ToolResult:
        """A call with an account that was connected in one of the toolkit's ways."""
        tool = next(one for one in await self.tools.tools() if one.slug == slug)
        toolkit = next(one for one in await self.tools.toolkits() if one.slug == tool.toolkit)
        call = ToolCall(
            slug=slug,
            arguments=dict(arguments),
            session=session(),
            credential=credential(toolkit.auth[way]),
            idempotency_key="once-1",
            files=files or {},
        )
        return await self.tools.run(call)

    @property
    def last(self) -> Asked:
        return self.service.seen[-1]


@contextlib.asynccontextmanager
async def shipped(handler: Handler) -> AsyncIterator[World]:
    """All toolkits, at one address."""
    async with serving(handler) as service, calling(most_bytes=64 * 2**20) as caller:
        moved = {one.slug: f"{service.url}/{one.slug}" for one in SERVICES}
        yield World(service, ShippedTools(caller, moved=moved))


def answering(*answers: Any) -> Handler:
    """One after the other; the last one again and again."""
    left = list(answers)

    async def handler(asked: Asked) -> None:
        answer = left.pop(0) if len(left) > 1 else left[0]
        await asked.json(json.dumps(answer))

    return handler
