"""Asking the person at the client: by the protocol's elicitation, in whichever of its two ways the client has."""

from __future__ import annotations

import asyncio
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from workbench.core.router.approving import Answers
from workbench.mcp.visit import Ask
from workbench.model.approval import InputRequired

# As long as an answer is good.
_PATIENCE_S = 600.0


class AskFirst(Exception):
    """The client is to ask, and to make the call once more with the answer."""

    def __init__(self, asked: InputRequired) -> None:
        super().__init__(asked.message)
        self.asked = asked

    def result(self) -> types.InputRequiredResult:
        """As the protocol has it."""
        request = types.ElicitRequest(params=_params(self.asked))
        return types.InputRequiredResult(input_requests={self.asked.request: request}, request_state=self.asked.state)


def _params(asked: InputRequired) -> types.ElicitRequestFormParams:
    return types.ElicitRequestFormParams(message=asked.message, requested_schema=dict(asked.schema))


def answers_of(params: types.CallToolRequestParams) -> Answers:
    """What came back with a call."""
    responses = {
        name: {"action": one.action, "content": dict(one.content or {})}
        for name, one in (params.input_responses or {}).items()
        if isinstance(one, types.ElicitResult)
    }
    return Answers(state=params.request_state or "", responses=responses)


def way_to_ask(context: ServerRequestContext[Any, Any]) -> Ask | None:
    """How the person at this client is asked; None if they cannot be."""
    capabilities = context.session.client_capabilities
    if capabilities is None or capabilities.elicitation is None:
        return None
    if context.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
        return _ask_later

    async def ask(asked: InputRequired) -> Answers | None:
        params = _params(asked)
        try:
            async with asyncio.timeout(_PATIENCE_S):
                said = await context.session.elicit_form(params.message, params.requested_schema, context.request_id)
        except (MCPError, NoBackChannelError, TimeoutError):
            return None
        response = {"action": said.action, "content": dict(said.content or {})}
        return Answers(state=asked.state, responses={asked.request: response})

    return ask


async def _ask_later(asked: InputRequired) -> Answers | None:
    raise AskFirst(asked)
