"""One operation of a document: where its arguments go, and the schema of all of them together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

from workbench.model.toolkit import Json
from workbench.toolkits.building import FILE_SCHEMA
from workbench.toolkits.compiling.document import BrokenReference, Document, entries, table, text
from workbench.toolkits.compiling.schemas import Budget, Schemas
from workbench.toolkits.operations import Body, BodyField, BodyKind, Parameter, Place, Style

_PLACES = ("path", "query", "header", "cookie")
_STYLES: dict[str, tuple[str, ...]] = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
# Of the connection, or filled in from the account and the body.
_NOT_ARGUMENTS = frozenset(
    ("accept", "content-type", "authorization", "host", "content-length", "transfer-encoding", "connection", "cookie",
     "user-agent", "accept-encoding", "expect", "te", "upgrade", "proxy-authorization")
)  # fmt: skip
_KEYS = ("idempotency-key", "x-idempotency-key")
_WHOLE = "body"
_MOST_ARGUMENTS = 200


@dataclass
class Arguments:
    """What an operation takes, while it is found out."""

    parameters: list[Parameter] = field(default_factory=list)
    properties: Json = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    body: Body | None = None
    idempotency_header: str = ""

    def named(self, name: str, place: str) -> str:
        """A name that no other argument has."""
        if name not in self.properties:
            return name
        number = 2
        named = f"{place}_{name}"
        while named in self.properties:
            named = f"{place}_{name}_{number}"
            number += 1
        return named

    def add(self, name: str, schema: Json, *, is_required: bool) -> None:
        """One more."""
        self.properties[name] = schema
        if is_required:
            self.required.append(name)

    def schema(self) -> Json:
        """Of all of them."""
        made: Json = {"type": "object", "properties": self.properties}
        return {**made, "required": self.required} if self.required else made


class Requests:
    """Of one document."""

    def __init__(self, document: Document, schemas: Schemas) -> None:
        self._document = document
        self._schemas = schemas

    def arguments(self, path: str, shared: Any, told: Json) -> Arguments:
        """Of one operation; `shared` are parameters of its whole path.

        Raises:
            BrokenReference: it cannot be called as it is described.
        """
        found = Arguments()
        budget = Budget()
        for parameter in self._parameters(path, [*entries(shared), *entries(told.get("parameters"))]):
            self._add(found, parameter, budget)
        if "requestBody" in told:
            self._add_body(found, self._document.followed(told["requestBody"])[0], budget)
        return found

    def _parameters(self, path: str, told: list[Any]) -> list[Json]:
        """Each once: what an operation says of one stands above what its path says."""
        found: dict[tuple[str, str], Json] = {}
        for one in told[: 2 * _MOST_ARGUMENTS]:
            parameter, _ = self._document.followed(one)
            name, place = text(parameter.get("name"), 200), parameter.get("in")
            if name and place in _PLACES:
                found[place, name] = parameter
        holes = [part.partition("}")[0] for part in path.split("{")[1:]]
        for hole in holes:
            if ("path", hole) not in found:
                found["path", hole] = {"name": hole, "in": "path", "required": True, "schema": {"type": "string"}}
        ordered = sorted(found.values(), key=lambda one: one.get("required") is not True and one["in"] != "path")
        return [one for one in ordered if one["in"] != "path" or one["name"] in holes][:_MOST_ARGUMENTS]

    def _add(self, found: Arguments, told: Json, budget: Budget) -> None:
        name, place = text(told.get("name"), 200), cast("Place", told["in"])
        if place == "header" and name.lower() in _NOT_ARGUMENTS:
            return
        if place == "header" and name.lower() in _KEYS:
            found.idempotency_header = name
            return
        is_required = place == "path" or told.get("required") is True
        content = table(told.get("content"))
        schema = table(next(iter(content.values()))).get("schema", {}) if content else told.get("schema", {})
        style = "json" if content else _style(told.get("style"), place)
        explode = told.get("explode")
        argument = found.named(name, place)
        found.parameters.append(
            Parameter(
                name=name,
                place=place,
                argument="" if argument == name else argument,
                style=cast("Style", style),
                explode=explode if isinstance(explode, bool) else style == "form",
                required=is_required,
            )
        )
        written = self._schemas.written(schema, "request", budget)
        if said := text(told.get("description"), 600):
            written = {**written, "description": said}
        found.add(argument, written, is_required=is_required)

    def _add_body(self, found: Arguments, told: Json, budget: Budget) -> None:
        kind, content_type, schema, encoding = self._chosen(table(told.get("content")))
        is_required = told.get("required") is True
        written = self._schemas.written(schema, "request", budget)
        properties = table(written.get("properties"))
        is_file = written.get("file_uploadable") is True or (kind is BodyKind.RAW and content_type != "text/plain")
        can_be_spread = (
            not is_file
            and kind is not BodyKind.RAW
            and bool(properties)
            and written.get("type") == "object"
            and not any(name in written for name in ("oneOf", "anyOf", "additionalProperties"))
            and len(properties) + len(found.properties) <= _MOST_ARGUMENTS
        )
        if kind is BodyKind.MULTIPART and not can_be_spread:
            raise BrokenReference("its multipart body has no fields that could be told apart")
        if can_be_spread:
            fields = self._spread(found, kind, written, encoding, is_required=is_required)
            found.body = Body(
                kind=kind, content_type=_told_type(kind, content_type), fields=fields, required=is_required
            )
            return
        argument = found.named(_WHOLE, "request")
        found.add(argument, dict(FILE_SCHEMA) if is_file else written, is_required=is_required)
        found.body = Body(
            kind=kind,
            content_type=_told_type(kind, content_type),
            whole=argument,
            is_file=is_file,
            required=is_required,
        )

    def _spread(
        self, found: Arguments, kind: BodyKind, written: Json, encoding: Json, *, is_required: bool
    ) -> tuple[BodyField, ...]:
        """Fields of the body as arguments of their own."""
        fields = []
        wanted = entries(written.get("required"))
        for name, schema in written["properties"].items():
            argument = found.named(name, _WHOLE)
            how = table(encoding.get(name))
            style = _style(how.get("style"), "query") if kind is BodyKind.FORM else "form"
            if kind is BodyKind.FORM and "style" not in how and schema.get("type") == "object":
                # Services that take objects in forms take them so; OpenAPI's own word for it loses what is nested.
                style = "deepObject"
            explode = how.get("explode")
            is_file = schema.get("file_uploadable") is True or table(schema.get("items")).get("file_uploadable") is True
            fields.append(
                BodyField(
                    name=name,
                    argument="" if argument == name else argument,
                    is_file=is_file,
                    content_type=text(how.get("contentType"), 100) if "," not in str(how.get("contentType")) else "",
                    style=cast("Style", style),
                    explode=explode if isinstance(explode, bool) else style == "form",
                )
            )
            found.add(argument, schema, is_required=is_required and name in wanted)
        return tuple(fields)

    def _chosen(self, content: Json) -> tuple[BodyKind, str, Any, Json]:
        """The kind of body that says the most: JSON, then forms, then files."""
        found: list[tuple[int, BodyKind, str, Json]] = []
        for name, media in content.items():
            kind = name.partition(";")[0].strip().lower()
            rank = _rank(kind)
            if rank is not None and isinstance(media, dict):
                found.append((rank[0], rank[1], kind, media))
        if not found:
            kinds = ", ".join(map(str, list(content)[:3])) or "nothing"
            raise BrokenReference(f"its body is of a kind that is not written here: {kinds[:100]}")
        _, kind_of, name, media = min(found, key=lambda one: one[0])
        return kind_of, name, media.get("schema", {}), table(media.get("encoding"))


def _rank(kind: str) -> tuple[int, BodyKind] | None:
    if kind in ("application/json", "*/*"):
        return 0, BodyKind.JSON
    if kind.endswith("+json"):
        return 1, BodyKind.JSON
    if kind == "application/x-www-form-urlencoded":
        return 2, BodyKind.FORM
    if kind == "multipart/form-data":
        return 3, BodyKind.MULTIPART
    if kind.startswith("multipart/") or "/" not in kind:
        return None
    return 4, BodyKind.RAW


def _told_type(kind: BodyKind, content_type: str) -> str:
    """What differs from the usual."""
    if kind is BodyKind.JSON:
        return content_type if content_type.endswith("+json") else ""
    return content_type if kind is BodyKind.RAW and "*" not in content_type else ""


def _style(told: Any, place: str) -> str:
    allowed = _STYLES[place]
    return told if told in allowed else allowed[0]
