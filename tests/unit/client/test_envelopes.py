"""Refusals of the sessions API become errors of our tree."""

from __future__ import annotations

import json
from typing import Any

import pytest

from workbench.client._answers import is_away, refusal
from workbench.errors import (
    Conflict,
    Denied,
    InternalError,
    InvalidRequest,
    NotFound,
    QuotaExceeded,
    ServerUnavailable,
    Unauthenticated,
    WorkbenchError,
    leaves,
)
from workbench.wire.composio_problems import api_problem


def envelope(status: int, slug: str = "Brand_New", **more: Any) -> bytes:
    told = {"message": "no", "code": 1, "slug": slug, "status": status, **more}
    return json.dumps({"error": told}).encode()


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, InvalidRequest), (404, NotFound), (409, Conflict), (418, InvalidRequest), (500, InternalError)],
)
def test_a_slug_that_nobody_knows_is_taken_by_its_status(status: int, kind: type[WorkbenchError]) -> None:
    assert type(refusal("http://x", status, envelope(status))) is kind


@pytest.mark.parametrize("kind", [InvalidRequest, Unauthenticated, Denied, NotFound, QuotaExceeded])
def test_what_our_server_refuses_is_the_same_class_here(kind: type[WorkbenchError]) -> None:
    told = api_problem(kind("m", {"a": "b"}), "req-1").model_dump_json().encode()
    assert type(refusal("http://x", 400, told)) is kind


def test_every_error_of_the_tree_comes_back_as_one_that_may_be_tried_again_only_if_it_may() -> None:
    for kind in leaves():
        told = api_problem(kind("m; do this"), "req-1")
        back = refusal("http://x", told.error.status, told.model_dump_json().encode())
        assert back.context["request_id"] == "req-1"
        assert back.message.endswith("m; do this")
        if kind.retryable:
            assert back.retryable, kind


def test_the_next_step_is_in_the_message_once() -> None:
    assert refusal("x", 404, envelope(404, suggested_fix="look there")).message == "no; look there"
    assert refusal("x", 404, envelope(404, suggested_fix="no")).message == "no"


def test_what_went_wrong_is_told_with_its_slug_and_the_request() -> None:
    raised = refusal("x", 404, envelope(404, "ToolRouterV2_SessionNotFound", request_id="req_1"))
    assert raised.context == {"slug": "ToolRouterV2_SessionNotFound", "status": "404", "request_id": "req_1"}


def test_a_server_that_is_leaving_is_known_in_this_envelope_as_well() -> None:
    assert is_away(503, envelope(503))
    assert not is_away(502, envelope(502, "HTTP_BadGateway"))


def test_what_has_neither_envelope_is_not_our_server() -> None:
    assert isinstance(refusal("http://x", 404, b'{"error": {"message": "no"}}'), ServerUnavailable)
