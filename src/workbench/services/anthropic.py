"""LanguageModel by Anthropic's messages, or by whoever speaks them."""

from __future__ import annotations

import msgspec

from workbench.contracts.services import Completion, Question
from workbench.errors import UpstreamBadAnswer, UpstreamRefused
from workbench.services.answers import read
from workbench.services.asking import Ask, Asking, Bounds, Service
from workbench.services.fences import unfenced

ANTHROPIC_URL = "https://api.anthropic.com"
# The version of the protocol; there is no newer one.
_VERSION = "2023-06-01"
_CUT_SHORT = "max_tokens"
_WRONG_PARAMETER = (400, 422)


class _Block(msgspec.Struct):
    type: str
    text: str | None = None


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class _Answer(msgspec.Struct):
    content: list[_Block]
    model: str | None = None
    stop_reason: str | None = None
    usage: _Usage | None = None


class AnthropicModel:
    """`contracts.services.LanguageModel`. `aclose` it."""

    def __init__(self, service: Service, bounds: Bounds, *, model: str, key: str, max_tokens: int) -> None:
        self._service = service
        self._asking = Asking(service, bounds)
        self._model = model
        self._key = key
        self._max_tokens = max_tokens

    async def complete(self, question: Question) -> Completion:
        """As `LanguageModel` has it."""
        try:
            body = await self._asking.ask(self._ask(question))
        except UpstreamRefused as problem:
            if not question.reasoning_effort or int(problem.context.get("status", "0")) not in _WRONG_PARAMETER:
                raise
            raise UpstreamRefused(
                f"{problem.message}; reasoning_effort={question.reasoning_effort} was passed on as output_config, "
                "which not every model takes: ask without it",
                problem.context,
            ) from problem
        return self._completion(read(body, _Answer, self._service))

    async def aclose(self) -> None:
        """As `LanguageModel` has it."""
        await self._asking.aclose()

    def _ask(self, question: Question) -> Ask:
        said: dict[str, object] = {
            "model": self._model,
            "max_tokens": self._max_tokens,
            "messages": [{"role": "user", "content": question.query}],
        }
        if question.system:
            said["system"] = question.system
        if question.reasoning_effort:
            said["output_config"] = {"effort": question.reasoning_effort}
        return Ask(
            method="POST",
            url=f"{self._service.url}/v1/messages",
            headers={"Content-Type": "application/json", "x-api-key": self._key, "anthropic-version": _VERSION},
            body=msgspec.json.encode(said),
        )

    def _completion(self, answer: _Answer) -> Completion:
        text = unfenced("".join(block.text or "" for block in answer.content if block.type == "text"))
        cut_short = answer.stop_reason == _CUT_SHORT
        if not text and cut_short:
            raise UpstreamBadAnswer(
                f"{self._service} used up {self._max_tokens:,} tokens before it came to an answer; raise "
                "WORKBENCH_LLM_MAX_TOKENS",
                {"service": self._service.name},
            )
        usage = answer.usage or _Usage()
        # They count what they had read before apart.
        read_before = (usage.cache_creation_input_tokens or 0) + (usage.cache_read_input_tokens or 0)
        return Completion(
            text=text,
            model=answer.model or self._model,
            prompt_tokens=(usage.input_tokens or 0) + read_before,
            completion_tokens=usage.output_tokens or 0,
            cut_short=cut_short,
        )
