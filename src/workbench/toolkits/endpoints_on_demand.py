"""Token endpoints that are made for the first request: most commands ask none, and its libraries load slowly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.contracts.connections import TokenAnswer, TokenRequest
from workbench.egress.policy import AddressPolicy

if TYPE_CHECKING:
    from workbench.toolkits.token_endpoints import GuardedTokenEndpoints

TOOLKITS_ALLOW = "WORKBENCH_TOOLKITS_ALLOW"


class EndpointsOnDemand:
    """`contracts.connections.TokenEndpoints` with the usual times. `aclose` it."""

    def __init__(self, policy: AddressPolicy) -> None:
        self._policy = policy
        self._endpoints: GuardedTokenEndpoints | None = None

    async def ask(self, request: TokenRequest) -> TokenAnswer:
        """As the contract has it."""
        if self._endpoints is None:
            from workbench.toolkits.token_endpoints import GuardedTokenEndpoints

            self._endpoints = GuardedTokenEndpoints(self._policy)
        return await self._endpoints.ask(request)

    async def aclose(self) -> None:
        """As the contract has it."""
        endpoints, self._endpoints = self._endpoints, None
        if endpoints is not None:
            await endpoints.aclose()
