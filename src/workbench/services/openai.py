"""LanguageModel by any endpoint that speaks OpenAI's chat completions: OpenAI's own, gateways, most model servers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import msgspec

from workbench.contracts.services import Completion, Question
from workbench.errors import UpstreamBadAnswer, UpstreamRefused
from workbench.services.answers import read
from workbench.services.asking import Ask, Asking, Bounds, Service
from workbench.services.fences import unfenced

OPENAI_URL = "https://api.openai.com/v1"
# What everybody knows, and what OpenAI's newer models want instead.
_LIMIT, _NEWER_LIMIT = "max_tokens", "max_completion_tokens"
_CUT_SHORT = "length"
_WRONG_PARAMETER = (400, 422)


class _Part(msgspec.Struct):
    text: str | None = None


class _Message(msgspec.Struct):
    content: str | list[_Part] | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Answer(msgspec.Struct):
    choices: list[_Choice]
    model: str | None = None
    usage: _Usage | None = None


class OpenAiModel:
    """`contracts.services.LanguageModel`. `aclose` it."""

    def __init__(
        self, service: Service, bounds: Bounds, *, model: str, key: str, max_tokens: int, socket_path: str = ""
    ) -> None:
        self._service = service
        self._asking = Asking(service, bounds, socket_path=socket_path)
        self._model = model
        self._key = key
        self._max_tokens = max_tokens
        self._limit = _LIMIT

    async def complete(self, question: Question) -> Completion:
        """As `LanguageModel` has it."""
        with self._told_of_parameters(question):
            limit = self._limit
            try:
                body = await self._asking.ask(self._ask(question, limit))
            except UpstreamRefused as problem:
                if limit == _NEWER_LIMIT or _NEWER_LIMIT not in problem.message:
                    raise
                # For all questions to come: it is a matter of the model.
                self._limit = _NEWER_LIMIT
                body = await self._asking.ask(self._ask(question, _NEWER_LIMIT))
        return self._completion(read(body, _Answer, self._service))

    async def aclose(self) -> None:
        """As `LanguageModel` has it."""
        await self._asking.aclose()

    def _ask(self, question: Question, limit: str) -> Ask:
        system = [{"role": "system", "content": question.system}] if question.system else []
        said: dict[str, object] = {
            "model": self._model,
            "messages": [*system, {"role": "user", "content": question.query}],
            limit: self._max_tokens,
        }
        if question.reasoning_effort:
            said["reasoning_effort"] = question.reasoning_effort
        headers = {"Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        return Ask(
            method="POST",
            url=f"{self._service.url}/chat/completions",
            headers=headers,
            body=msgspec.json.encode(said),
        )

    @contextlib.contextmanager
    def _told_of_parameters(self, question: Question) -> Iterator[None]:
        """Endpoints that do not know reasoning_effort refuse the whole question, and not all say for what."""
        try:
            yield
        except UpstreamRefused as problem:
            if not question.reasoning_effort or int(problem.context.get("status", "0")) not in _WRONG_PARAMETER:
                raise
            raise UpstreamRefused(
                f"{problem.message}; reasoning_effort={question.reasoning_effort} was passed on, which not every "
                "model takes: ask without it",
                problem.context,
            ) from problem

    def _completion(self, answer: _Answer) -> Completion:
        if not answer.choices:
            raise UpstreamBadAnswer(f"{self._service} answered without a choice", {"service": self._service.name})
        choice = answer.choices[0]
        text, cut_short = unfenced(_text(choice.message)), choice.finish_reason == _CUT_SHORT
        if not text and cut_short:
            raise UpstreamBadAnswer(
                f"{self._service} used up {self._max_tokens:,} tokens before it came to an answer; raise "
                "WORKBENCH_LLM_MAX_TOKENS, or ask with less reasoning_effort",
                {"service": self._service.name},
            )
        usage = answer.usage or _Usage()
        return Completion(
            text=text,
            model=answer.model or self._model,
            prompt_tokens=usage.prompt_tokens or 0,
            completion_tokens=usage.completion_tokens or 0,
            cut_short=cut_short,
        )


def _text(message: _Message) -> str:
    if isinstance(message.content, list):
        return "".join(part.text or "" for part in message.content)
    return message.content or message.refusal or ""
