"""What answers where nothing was set: the same error to every call, which says what to set."""

from __future__ import annotations

from workbench.contracts.services import Completion, Found, Question
from workbench.errors import NotConfigured


class NoModel:
    """`contracts.services.LanguageModel`."""

    def __init__(self, why: str) -> None:
        self._why = why

    async def complete(self, question: Question) -> Completion:
        """Raises: NotConfigured."""
        del question
        raise NotConfigured(self._why)

    async def aclose(self) -> None:
        """There is nothing to close."""


class NoSearch:
    """`contracts.services.WebSearch`."""

    def __init__(self, why: str) -> None:
        self._why = why

    async def search(self, query: str) -> tuple[Found, ...]:
        """Raises: NotConfigured."""
        del query
        raise NotConfigured(self._why)

    async def aclose(self) -> None:
        """There is nothing to close."""
