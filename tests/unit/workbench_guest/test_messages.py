"""Messages cross unchanged; bytes that are none raise ValueError and nothing else."""

from __future__ import annotations

import dataclasses
import json
import random
import string
import types
import typing
from typing import Any

import pytest

from workbench_guest import messages
from workbench_guest.messages import Bind, Message, SlotPlan, Start, ZygotePlan, decode, encode

KINDS: tuple[type[Any], ...] = typing.get_args(Message)
EXITED = {
    "kind": "Exited", "process": "p", "status": 0, "cpu_s": 0.5, "peak_bytes": 1, "scratch_free_bytes": 1,
    "scratch_free_inodes": 1,
}  # fmt: skip


def _value(hint: Any, luck: random.Random) -> Any:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType:
        return luck.choice([None, _value(args[0], luck)])
    if origin is typing.Literal:
        return luck.choice(args)
    if origin is dict:
        return {_value(str, luck): _value(args[1], luck) for _ in range(3)}
    if origin is tuple:
        inner = [args[0]] * luck.randrange(4) if args[-1] is Ellipsis else args
        return tuple(_value(one, luck) for one in inner)
    if hint is Bind:
        return Bind(source=_value(str, luck), target=_value(str, luck))
    made = {
        str: "".join(luck.choices(string.printable + "é\udcff\x00\u2028", k=luck.randrange(12))),
        int: luck.randrange(-(2**40), 2**40),
        float: luck.random(),
        bool: luck.random() < 0.5,
    }
    return made[hint]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_comes_back_as_it_went(kind: type[Any]) -> None:
    luck = random.Random(kind.__name__)
    for _ in range(50):
        message = kind(**{name: _value(hint, luck) for name, hint in typing.get_type_hints(kind).items()})
        assert decode(encode(message)) == message


@pytest.mark.parametrize("kind", KINDS)
def test_no_field_takes_a_value_of_another_kind(kind: type[Any]) -> None:
    luck = random.Random(kind.__name__)
    whole = {name: _value(hint, luck) for name, hint in typing.get_type_hints(kind).items()}
    wrong: list[Any] = [["a", {}], {"a": {}}, [[[1]]]]
    for field in dataclasses.fields(kind):
        for value in wrong:
            fields = {**json.loads(encode(kind(**whole))), field.name: value}
            with pytest.raises(ValueError, match=r"."):
                decode(json.dumps(fields).encode())


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{", b"[]", b"null", b"1", b'"text"', b"\xff\xfe", b"{}", b'{"kind": null}', b'{"kind": []}',
        b'{"kind": {}}', b'{"kind": "object"}', b'{"kind": "Message"}', b'{"kind": "Done", "pid": "1"}',
        b'{"kind": "Done", "pid": true}', b'{"kind": "Done", "pid": 1.5}', b'{"kind": "Done", "more": 1}',
        b'{"kind": "Done", "__class__": 1}', b'{"kind": "Exited"}', b"[" * 100_000, b'{"kind":' * 50_000,
        b'{"kind": "Done", "pid": ' + b"9" * 5000 + b"}",
    ],
)  # fmt: skip
def test_bytes_that_are_no_message_raise_value_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(data)


@pytest.mark.parametrize("value", [10**400, "1", None, []])
def test_a_number_that_is_too_large_or_none_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="not a message"):
        decode(json.dumps({**EXITED, "cpu_s": value}).encode())


def test_a_pair_must_be_a_pair() -> None:
    plan = ZygotePlan(
        binds=(Bind(source="a", target="b"),), links=(("a", "b"),), texts=(), devices=(), preload=(),
        entry=None, guest_root="g",
        staging="s", files_root="f", packages_root="p",
    )  # fmt: skip
    wrong: list[Any] = [[["a"]], [["a", "b", "c"]], [[]], [["a", 1]]]
    for links in wrong:
        fields = {**json.loads(encode(plan)), "links": links}
        with pytest.raises(ValueError, match=r"."):
            decode(json.dumps(fields).encode())
    for wrong_bind in ({"source": 1, "target": "b"}, {"source": "a"}, {"source": "a", "target": "b", "more": "c"}):
        with pytest.raises(ValueError, match=r"."):
            decode(json.dumps({**json.loads(encode(plan)), "binds": [wrong_bind]}).encode())


def test_a_word_that_is_not_among_the_few_is_refused() -> None:
    plan = SlotPlan(slot="s", outside_uid=None, join="v1", scratch_bytes=1, scratch_inodes=1, shm_bytes=1,
                    rlimits={}, open_files=1, cpus=())  # fmt: skip
    for wrong in ("v3", "", None, 1, ["v1"]):
        with pytest.raises(ValueError, match="not a message"):
            decode(json.dumps({**json.loads(encode(plan)), "join": wrong}).encode())


def test_random_json_raises_value_error_or_is_a_message() -> None:
    luck = random.Random(20)
    names = [kind.__name__ for kind in KINDS]
    fields = sorted({field.name for kind in KINDS for field in dataclasses.fields(kind)})
    for _ in range(20_000):
        thing: Any = _junk(luck, 3)
        if luck.random() < 0.8:
            thing = {"kind": luck.choice(names), **{luck.choice(fields): _junk(luck, 2) for _ in range(3)}}
        data = bytearray(json.dumps(thing).encode())
        if luck.random() < 0.3:
            data[luck.randrange(len(data))] = luck.randrange(256)
        try:
            message = decode(bytes(data))
        except ValueError:
            continue
        assert isinstance(message, KINDS)


def test_looking_at_every_kind_once_is_harmless() -> None:
    messages.warm_up()
    messages.warm_up()
    assert decode(encode(Start(process="p"))) == Start(process="p")


def _junk(luck: random.Random, depth: int) -> Any:
    simple = [None, True, 0, -1, 2**70, 10**400, 1.5, float("inf"), float("nan"), "", "v1", "text"]
    if depth == 0 or luck.random() < 0.5:
        return luck.choice(simple)
    if luck.random() < 0.5:
        return [_junk(luck, depth - 1) for _ in range(luck.randrange(4))]
    return {luck.choice(["source", "target", "a", ""]): _junk(luck, depth - 1) for _ in range(luck.randrange(4))}
