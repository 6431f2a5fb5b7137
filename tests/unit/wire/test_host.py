"""Frames: every request and answer survives the way; everything else is refused, never crashed on."""

from __future__ import annotations

import contextlib
import random
import typing

import msgspec
import pytest

from workbench.errors import HostIncompatible
from workbench.wire import host as wire

_SAMPLES: dict[object, object] = {str: "x", int: 1, float: 1.5, bool: True, bytes: b"\0\xff"}


def sample(kind: type[msgspec.Struct]) -> msgspec.Struct:
    """An instance with every required field filled."""
    values = {}
    for field in msgspec.structs.fields(kind):
        if field.required:
            values[field.name] = _value(field.type)
    return kind(**values)


def _value(hint: object) -> object:
    if hint in _SAMPLES:
        return _SAMPLES[hint]
    origin = typing.get_origin(hint)
    if origin is tuple:
        return ()
    if origin is dict:
        return {}
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return sample(hint)
    if isinstance(hint, type) and issubclass(hint, str):
        return next(iter(hint))  # type: ignore[call-overload]
    return None


@pytest.mark.parametrize("kind", typing.get_args(wire.AnyRequest))
def test_every_request_survives_the_way(kind: type[msgspec.Struct]) -> None:
    asked = wire.Asked(number=3, request=typing.cast("wire.AnyRequest", sample(kind)))
    data = wire.frame(asked)
    assert wire.frame_length(data[:4]) == len(data) - 4
    assert wire.read_asked(data[4:]) == asked


@pytest.mark.parametrize("kind", typing.get_args(wire.AnyAnswer))
def test_every_answer_survives_the_way(kind: type[msgspec.Struct]) -> None:
    answered = wire.Answered(number=3, answer=typing.cast("wire.AnyAnswer", sample(kind)))
    assert wire.read_answered(wire.frame(answered)[4:]) == answered


def test_bytes_that_are_no_message_are_refused_in_our_own_words() -> None:
    dice = random.Random(7)
    good = wire.frame(wire.Asked(number=1, request=wire.Status()))[4:]
    for _ in range(2000):
        broken = bytearray(good)
        for _ in range(dice.randrange(1, 4)):
            broken[dice.randrange(len(broken))] = dice.randrange(256)
        with contextlib.suppress(HostIncompatible):
            wire.read_asked(bytes(broken))


def test_a_field_of_a_later_version_is_no_reason_to_refuse() -> None:
    later = msgspec.msgpack.encode({"number": 1, "request": {"type": "DescribeSandbox", "sandbox": "a", "new": 1}})
    assert wire.read_asked(later).request == wire.DescribeSandbox(sandbox="a")


def test_a_length_that_nobody_would_send_is_refused() -> None:
    with pytest.raises(HostIncompatible, match="does not speak our protocol"):
        wire.frame_length(b"\xff\xff\xff\xff")
