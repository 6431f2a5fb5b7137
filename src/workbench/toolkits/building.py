"""An operation and arguments become one request. The only place that writes addresses, headers and bodies of tools."""

from __future__ import annotations

import base64
import binascii
import json
import re
import secrets
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.errors import InvalidRequest
from workbench.model.connection import Credential
from workbench.toolkits.operations import Body, BodyField, BodyKind, Operation, Parameter

_HOLE = re.compile(r"\{([^{}]{1,100})\}")
# A part of a host's name, and no more than that: nobody's account leads a call to another host.
_PART = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_JSON, _FORM, _BYTES = "application/json", "application/x-www-form-urlencoded", "application/octet-stream"
_RESERVED = "/:@!$'()*,;=~"
_MOST_HEADER = 8000
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_DELIMITERS = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}
_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,100}/[A-Za-z0-9!#$&^_.+-]{1,100}(; ?[a-z]+=[A-Za-z0-9._-]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A request, but for the credential."""

    method: str
    url: str = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    body: bytes | None = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    name: str
    content_type: str
    content: bytes = field(repr=False)


def built(
    operation: Operation,
    arguments: Mapping[str, Any],
    *,
    files: Mapping[str, bytes] | None = None,
    credential: Credential | None = None,
    idempotency_key: str = "",
) -> Built:
    """The request that these arguments ask for. What is null was not given.

    `files` are the contents of what arguments name by `s3key`. Of the credential only what is in the address is used.

    Raises:
        InvalidRequest: an argument is missing, or cannot be sent where it belongs; the message has its name.
    """
    given = {name: one for name, one in arguments.items() if one is not None}
    headers: list[tuple[str, str]] = [("Accept", operation.accept or "application/json, */*;q=0.8")]
    is_upload = operation.media is not None and operation.media.argument in given
    path = operation.media.path if operation.media is not None and is_upload else operation.path
    query: list[str] = ["uploadType=multipart"] if is_upload else []
    cookies: list[str] = []
    for parameter in operation.parameters:
        value = _value(parameter, given)
        if value is None:
            continue
        match parameter.place:
            case "path":
                path = _in_path(path, parameter, value)
            case "query":
                query += _in_query(parameter.name, value, parameter.style, explode=parameter.explode)
            case "header":
                headers.append((parameter.name, _in_header(parameter, value)))
            case "cookie":
                cookies += _in_query(parameter.name, value, "form", explode=False)
    if left := _HOLE.search(path):
        raise InvalidRequest(f"`{left[1]}` is missing: it is part of the address", {"argument": left[1]})
    if cookies:
        headers.append(("Cookie", "; ".join(cookies)))
    body, content_type = _body_of(operation, given, files or {}, is_upload=is_upload)
    if content_type:
        headers.append(("Content-Type", content_type))
    if operation.idempotency_header and idempotency_key:
        headers.append((operation.idempotency_header, idempotency_key))
    url = filled(operation.base_url, credential).rstrip("/") + path
    # Some paths have a query of their own.
    joined = "&" if "?" in url else "?"
    return Built(
        method=operation.method,
        url=url + (joined + "&".join(query) if query else ""),
        headers=tuple(headers),
        body=body,
    )


def filled(base_url: str, credential: Credential | None) -> str:
    """An address whose `{name}` are values of the connected account.

    Raises:
        InvalidRequest: the account has no such value, or it is no part of a host's name.
    """

    def put(found: re.Match[str]) -> str:
        name = found[1]
        secret = credential.values.get(name) if credential is not None else None
        value = secret.reveal().strip() if secret is not None else ""
        # BARRIER: `evil.example/` as a subdomain would take the credential to another host; held by
        # tests/unit/toolkits/test_building.py.
        if not _PART.fullmatch(value):
            raise InvalidRequest(
                f"the connected account has no {name} that is part of a host's name: connect it again with one",
                {"field": name},
            )
        return value

    return _HOLE.sub(put, base_url)


def _value(parameter: Parameter, given: Mapping[str, Any]) -> Any:
    if parameter.fixed:
        return parameter.fixed
    name = parameter.argument or parameter.name
    value = given.get(name)
    if value is None and parameter.required:
        raise InvalidRequest(f"`{name}` is missing", {"argument": name})
    return value


def _worded(name: str, value: Any) -> str:
    """One value as services write them."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _encodable(name, value)
    if isinstance(value, int | float):
        return json.dumps(value)
    if value is None:
        return ""
    return _encodable(name, json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def _encodable(name: str, text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidRequest(f"`{name}` has half a character in it", {"argument": name}) from None
    return text


def _quoted(name: str, value: Any, safe: str = "") -> str:
    return urllib.parse.quote(_worded(name, value), safe=safe)


def _in_path(path: str, parameter: Parameter, value: Any) -> str:
    name = parameter.argument or parameter.name
    text = _styled_path(parameter, name, value)
    # BARRIER: a service that tidies its addresses up would do another thing than the tool says; held by
    # tests/unit/toolkits/test_building.py.
    if not text or any(part in (".", "..") for part in text.split("/")) or _CONTROL.search(text):
        shown = repr(value)[:60]
        raise InvalidRequest(f"`{name}` is part of an address and cannot be {shown}", {"argument": name})
    hole = "{" + parameter.name + "}"
    return path.replace(hole, text).replace("{+" + parameter.name + "}", text)


def _styled_path(parameter: Parameter, name: str, value: Any) -> str:
    if parameter.style == "reserved":
        return _quoted(name, value, _RESERVED)
    if parameter.style == "json":
        return urllib.parse.quote(json.dumps(value, separators=(",", ":")), safe="")
    pairs = [(key, _quoted(name, one)) for key, one in value.items()] if isinstance(value, dict) else []
    entries = [_quoted(name, one) for one in value] if isinstance(value, list) else []
    own = urllib.parse.quote(parameter.name, safe="")
    between = {"label": ".", "matrix": ";"}.get(parameter.style, ",")
    if pairs and parameter.explode:
        text = (between if parameter.style != "simple" else ",").join(f"{_key(key)}={one}" for key, one in pairs)
    elif pairs:
        text = ",".join(f"{_key(key)},{one}" for key, one in pairs)
    elif isinstance(value, list) and parameter.explode and parameter.style == "matrix":
        text = ";".join(f"{own}={one}" for one in entries)
    elif isinstance(value, list):
        text = (between if parameter.explode else ",").join(entries)
    else:
        text = _quoted(name, value)
    if parameter.style == "label":
        return f".{text}"
    if parameter.style == "matrix":
        is_named = parameter.explode and (pairs or isinstance(value, list))
        return f";{text}" if is_named else f";{own}={text}"
    return text


def _key(key: Any) -> str:
    return _quoted("the name of a field", str(key))


def _in_query(name: str, value: Any, style: str, *, explode: bool) -> list[str]:
    own = _quoted(name, name, "[]")
    if style == "json":
        return [f"{own}={urllib.parse.quote(json.dumps(value, separators=(',', ':')), safe='')}"]
    if style == "deepObject" and isinstance(value, dict | list):
        return [f"{key}={_quoted(name, one)}" for key, one in _deep(own, value)]
    if isinstance(value, dict):
        pairs = [(_key(key), _quoted(name, one)) for key, one in value.items() if one is not None]
        if explode:
            return [f"{key}={one}" for key, one in pairs]
        return [f"{own}={','.join(part for pair in pairs for part in pair)}"] if pairs else []
    if isinstance(value, list):
        entries = [_quoted(name, one) for one in value if one is not None]
        if style == "brackets":
            return [f"{own}[]={one}" for one in entries]
        if explode:
            return [f"{own}={one}" for one in entries]
        return [f"{own}={_DELIMITERS.get(style, ',').join(entries)}"] if entries else []
    return [f"{own}={_quoted(name, value)}"]


def _deep(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """`a[b][c]=1`; entries of lists by `a[b][]=1`, as forms of the web have it, and by number if they are objects."""
    if isinstance(value, dict):
        for key, one in value.items():
            if one is not None:
                yield from _deep(f"{name}[{_key(key)}]", one)
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from _deep(f"{name}[{number if isinstance(one, dict | list) else ''}]", one)
    else:
        yield name, value


def _in_header(parameter: Parameter, value: Any) -> str:
    name = parameter.argument or parameter.name
    if isinstance(value, list):
        text = ",".join(_worded(name, one) for one in value)
    elif isinstance(value, dict) and parameter.style != "json":
        between = "=" if parameter.explode else ","
        text = ",".join(f"{key}{between}{_worded(name, one)}" for key, one in value.items())
    else:
        text = _worded(name, value)
    # BARRIER: a line break in a value would be a header of the caller's making; held by
    # tests/unit/toolkits/test_building.py.
    if _CONTROL.search(text) or len(text) > _MOST_HEADER or not text.isascii():
        raise InvalidRequest(f"`{name}` goes into a header, and cannot be what was given", {"argument": name})
    return text


def _body_of(
    operation: Operation, given: Mapping[str, Any], files: Mapping[str, bytes], *, is_upload: bool
) -> tuple[bytes | None, str]:
    """What is sent, and as what."""
    body = operation.body
    if is_upload and operation.media is not None:
        data = _json_body(body, given) if body is not None else {}
        file = _file(operation.media.argument, given[operation.media.argument], files)
        return _related({} if data is None else data, file)
    if body is None:
        return None, ""
    match body.kind:
        case BodyKind.JSON:
            data = _json_body(body, given)
            if data is None:
                return None, ""
            return json.dumps(data, ensure_ascii=False).encode("utf-8", "replace"), body.content_type or _JSON
        case BodyKind.FORM:
            return _form(body, given), body.content_type or _FORM
        case BodyKind.MULTIPART:
            return _multipart(body, given, files)
        case BodyKind.RAW:
            return _raw(body, given, files)


def _json_body(body: Body, given: Mapping[str, Any]) -> Any:
    if body.whole:
        if body.whole not in given and body.required:
            raise InvalidRequest(f"`{body.whole}` is missing: it is the body", {"argument": body.whole})
        return given.get(body.whole)
    found = dict(_fields(body, given))
    return found if found or body.required else None


def _fields(body: Body, given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for one in body.fields:
        if (one.argument or one.name) in given:
            yield one.name, given[one.argument or one.name]


def _form(body: Body, given: Mapping[str, Any]) -> bytes:
    if body.whole:
        whole = given.get(body.whole, {})
        if not isinstance(whole, dict):
            raise InvalidRequest(f"`{body.whole}` has to be an object", {"argument": body.whole})
        fields = [(BodyField(name=str(name)), one) for name, one in whole.items() if one is not None]
    else:
        fields = [(one, given[one.argument or one.name]) for one in body.fields if (one.argument or one.name) in given]
    parts = [part for one, value in fields for part in _in_query(one.name, value, one.style, explode=one.explode)]
    return "&".join(parts).encode("ascii")


def _multipart(body: Body, given: Mapping[str, Any], files: Mapping[str, bytes]) -> tuple[bytes, str]:
    limit = f"workbench-{secrets.token_hex(12)}"
    parts: list[bytes] = []
    for one in body.fields:
        value = given.get(one.argument or one.name)
        if value is None:
            continue
        for entry in value if isinstance(value, list) and one.is_file else [value]:
            head, content = _part(one, entry, files)
            parts.append(f"--{limit}\r\n{head}\r\n".encode() + content + b"\r\n")
    return b"".join(parts) + f"--{limit}--\r\n".encode(), f"multipart/form-data; boundary={limit}"


def _part(one: BodyField, value: Any, files: Mapping[str, bytes]) -> tuple[str, bytes]:
    name = _in_quotes(one.name)
    if one.is_file:
        file = _file(one.argument or one.name, value, files)
        head = f'Content-Disposition: form-data; name="{name}"; filename="{_in_quotes(file.name)}"\r\n'
        return f"{head}Content-Type: {one.content_type or file.content_type}\r\n", file.content
    kind = one.content_type or (_JSON if isinstance(value, dict | list) else "")
    head = f'Content-Disposition: form-data; name="{name}"\r\n' + (f"Content-Type: {kind}\r\n" if kind else "")
    return head, _worded(one.name, value).encode()


def _in_quotes(text: str) -> str:
    """As browsers write names in a form."""
    safe = text.encode("utf-8", "replace").decode()
    return safe.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


def _raw(body: Body, given: Mapping[str, Any], files: Mapping[str, bytes]) -> tuple[bytes | None, str]:
    value = given.get(body.whole)
    if value is None:
        if body.required:
            raise InvalidRequest(f"`{body.whole}` is missing: it is the body", {"argument": body.whole})
        return None, ""
    if not body.is_file:
        return _worded(body.whole, value).encode(), body.content_type or "text/plain; charset=utf-8"
    file = _file(body.whole, value, files)
    return file.content, body.content_type or file.content_type


def _related(data: Any, file: _File) -> tuple[bytes, str]:
    limit = f"workbench-{secrets.token_hex(12)}"
    text = json.dumps(data, ensure_ascii=False).encode("utf-8", "replace")
    head = f"--{limit}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n".encode()
    between = f"\r\n--{limit}\r\nContent-Type: {file.content_type}\r\n\r\n".encode()
    return (
        head + text + between + file.content + f"\r\n--{limit}--\r\n".encode(),
        f"multipart/related; boundary={limit}",
    )


def _file(name: str, value: Any, files: Mapping[str, bytes]) -> _File:
    """A file as arguments have them: by the key of one in the mount, as base64, or as a text."""
    if isinstance(value, str):
        if value in files:
            return _File(name=value.rpartition("/")[2] or name, content_type=_BYTES, content=files[value])
        return _File(name=name, content_type="text/plain; charset=utf-8", content=_encodable(name, value).encode())
    if not isinstance(value, dict):
        raise InvalidRequest(f"`{name}` has to be a file: {_HOW}", {"argument": name})
    kind = value.get("mimetype") or value.get("content_type") or _BYTES
    if not isinstance(kind, str) or not _TYPE.fullmatch(kind):
        raise InvalidRequest(f"`{name}.mimetype` is not the name of a type, such as text/csv", {"argument": name})
    key = value.get("s3key")
    known = value.get("name") or (key.rpartition("/")[2] if isinstance(key, str) else "") or name
    if isinstance(key, str):
        if key not in files:
            raise InvalidRequest(f"`{name}.s3key` names no file of this session: {key[:100]!r}", {"argument": name})
        return _File(name=str(known), content_type=kind, content=files[key])
    if isinstance(value.get("base64"), str):
        try:
            content = base64.b64decode(value["base64"], validate=True)
        except (binascii.Error, ValueError):
            raise InvalidRequest(f"`{name}.base64` is not base64", {"argument": name}) from None
        return _File(name=str(known), content_type=kind, content=content)
    raise InvalidRequest(f"`{name}` has to be a file: {_HOW}", {"argument": name})


_HOW = (
    'a text; {"s3key": …, "name": …, "mimetype": …} with the key of a file of the session, as upload_local_file tells '
    'it; or {"base64": …, "name": …, "mimetype": …}'
)

FILE_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "description": f"A file: {_HOW}.",
    "properties": {
        "s3key": {"type": "string", "description": "The key of a file of this session."},
        "base64": {"type": "string", "description": "The content, if there is no key."},
        "name": {"type": "string"},
        "mimetype": {"type": "string"},
    },
    "file_uploadable": True,
}
"""what tools say of an argument that is a file"""
