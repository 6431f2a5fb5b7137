"""Renews what the tests know of providers, from the packages: `python -m tests.toolkits.shipped.excerpts FOLDER`.

FOLDER is `unpacked` in what `scripts/compile-toolkits` was given. Of OpenAPI documents the operations of the samples
are kept, as the provider describes them but for words; of Google's, what its own client sends for the samples, for
which `google-api-python-client` has to be installed.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.toolkits.shipped.samples import GOOGLE, OTHERS, Sample

from workbench.toolkits.compiling.document import Document, parsed
from workbench.toolkits.shipped.services import SERVICES

HERE = Path(__file__).parent
DESCRIPTIONS = HERE / "descriptions"
GOOGLE_REQUESTS = HERE / "google_requests.json"
_SERVICES = {one.slug: one for one in SERVICES}
_WORDS = {"description", "title", "example", "examples", "x-examples", "externalDocs", "termsOfService", "contact"}


def main(folder: Path) -> None:
    DESCRIPTIONS.mkdir(exist_ok=True)
    for slug, sample in OTHERS.items():
        found = json.dumps(excerpt(_document(folder, slug), sample), ensure_ascii=False, sort_keys=True)
        (DESCRIPTIONS / f"{slug}.json").write_text(found + "\n", encoding="utf-8")
    requests = {slug: sent_by_google(_document(folder, slug), sample) for slug, sample in GOOGLE.items()}
    GOOGLE_REQUESTS.write_text(json.dumps(requests, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _document(folder: Path, slug: str) -> dict[str, Any]:
    service = _SERVICES[slug]
    return parsed((folder / service.package.replace("/", "__") / service.path).read_bytes())


def excerpt(document: dict[str, Any], sample: Sample) -> dict[str, Any]:
    """One path, and what it refers to."""
    made: dict[str, Any] = {
        "openapi": document["openapi"],
        "info": {"title": document["info"]["title"], "version": "1"},
        "paths": {sample.path: _lean(_placed(document, document["paths"][sample.path]))},
    }
    waiting, kept = list(_references(made)), set[str]()
    while waiting:
        reference = waiting.pop()
        if reference in kept or not reference.startswith("#/components/"):
            continue
        kept.add(reference)
        _, _, kind, name = reference.split("/", 3)
        part = _lean(_placed(document, document["components"][kind][name.replace("~1", "/")]))
        made.setdefault("components", {}).setdefault(kind, {})[name.replace("~1", "/")] = part
        waiting += _references(part)
    return made


def _placed(document: dict[str, Any], value: Any) -> Any:
    """With what is referred to in other paths in its place."""
    if isinstance(value, list):
        return [_placed(document, one) for one in value]
    if not isinstance(value, dict):
        return value
    if str(value.get("$ref", "")).startswith("#/paths/"):
        return _placed(document, Document(document).followed(value)[0])
    return {name: _placed(document, one) for name, one in value.items()}


def _lean(value: Any, within: str = "") -> Any:
    """Without words, and without what the service answers."""
    if isinstance(value, list):
        return [_lean(one) for one in value]
    if not isinstance(value, dict):
        return value
    named = within in {"properties", "schemas", "parameters"}
    made = {
        name: _lean(one, name)
        for name, one in value.items()
        if named or not (name in _WORDS or name.startswith("x-") or name in {"security", "servers", "callbacks"})
    }
    if "responses" in made and within != "properties":
        made["responses"] = {"200": {"description": "It."}}
    return made


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for one in value:
            yield from _references(one)
    elif isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for one in value.values():
            yield from _references(one)


def sent_by_google(document: dict[str, Any], sample: Sample) -> dict[str, Any]:
    """What Google's own client makes of the same arguments."""
    building, http = importlib.import_module("googleapiclient.discovery"), importlib.import_module("httplib2")
    method, parents = _method(document, sample.path)
    resource = building.build_from_document(json.dumps(document), http=http.Http())
    for name in parents:
        resource = getattr(resource, name)()
    described = {**method.get("parameters", {}), **document.get("parameters", {})}
    given = {name: one for name, one in sample.arguments.items() if name in described}
    for name, one in method.get("parameters", {}).items():
        if one.get("location") == "path" and name not in given:
            given[name] = one["default"]
    body = {name: one for name, one in sample.arguments.items() if name not in described}
    keywords = {name.replace(".", "_"): one for name, one in given.items()}
    request = getattr(resource, sample.path.rsplit(".", 1)[-1])(**keywords, **({"body": body} if body else {}))
    return {"method": request.method, "uri": request.uri, "body": json.loads(request.body) if request.body else None}


def _method(resource: dict[str, Any], identity: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    for one in resource.get("methods", {}).values():
        if one["id"] == identity:
            return one, ()
    for name, inner in resource.get("resources", {}).items():
        try:
            found, parents = _method(inner, identity)
        except LookupError:
            continue
        return found, (name, *parents)
    raise LookupError(identity)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
