"""Calls to services by a caller that is made for the first one: most commands make none, and it loads slowly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.contracts.service_calls import ServiceAnswer, ServiceOrder
from workbench.egress.policy import AddressPolicy

if TYPE_CHECKING:
    from workbench.toolkits.sending import ServiceCaller


class CallsOnDemand:
    """`contracts.service_calls.ServiceCalls` with the usual times. `aclose` it."""

    def __init__(self, policy: AddressPolicy) -> None:
        self._policy = policy
        self._caller: ServiceCaller | None = None

    async def call(self, order: ServiceOrder) -> ServiceAnswer:
        """As the contract has it."""
        if self._caller is None:
            from workbench.toolkits.sending import ServiceCaller

            self._caller = ServiceCaller(self._policy)
        return await self._caller.call(order)

    async def aclose(self) -> None:
        """May be called twice."""
        caller, self._caller = self._caller, None
        if caller is not None:
            await caller.aclose()
