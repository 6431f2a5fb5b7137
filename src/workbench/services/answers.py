"""Answers of services, read into typed values: what is not asked for is skipped, and never made into objects."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from workbench.errors import UpstreamBadAnswer
from workbench.services.asking import Service
from workbench.services.excerpts import excerpt

T = TypeVar("T")


def read(body: bytes, shape: type[T], service: Service) -> T:
    """Raises: UpstreamBadAnswer."""
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        what = "has another shape" if isinstance(problem, msgspec.ValidationError) else "is no JSON"
        said = excerpt(body, service.secrets)
        where = f"; check {service.url_setting}" if service.url_setting else ""
        raise UpstreamBadAnswer(
            f"the answer of {service} {what} ({problem}): {said}{where}", {"service": service.name}
        ) from problem
