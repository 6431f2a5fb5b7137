"""The shipped catalogue, read again: every tool is sound, and there are as many as promised."""

from __future__ import annotations

import re
import time
import tracemalloc
import zipfile
from pathlib import Path

import httpx2
import jsonschema_rs
import pytest

from workbench.model.toolkit import AuthKind, Tool
from workbench.toolkits.sending import is_among
from workbench.toolkits.shipped.identities import IDENTITIES
from workbench.toolkits.shipped.packing import Packed
from workbench.toolkits.shipped.services import SERVICES
from workbench.toolkits.shipped.source import ADAPTATIONS, ARCHIVE

MOST_BYTES = 8 * 2**20
LEAST_TOOLS = 3_000
MOST_SLUG = 60
# Generous: the machine may be busy. Measured: 0.1 s.
MOST_SECONDS = 1.0
MOST_MEMORY = 40 * 2**20
_FORM = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")


@pytest.fixture(scope="module")
def packed() -> Packed:
    return Packed(ARCHIVE)


@pytest.fixture(scope="module")
def tools(packed: Packed) -> tuple[Tool, ...]:
    return (*packed.tools, *(one.tool for one in ADAPTATIONS.values()))


def test_there_are_as_many_as_promised_and_each_once(tools: tuple[Tool, ...]) -> None:
    slugs = [one.slug for one in tools]
    assert len(slugs) >= LEAST_TOOLS
    assert len(set(slugs)) == len(slugs)
    assert not [slug for slug in slugs if not _FORM.fullmatch(slug) or len(slug) > MOST_SLUG]


def test_every_tool_is_of_a_toolkit_and_is_called_after_it(packed: Packed, tools: tuple[Tool, ...]) -> None:
    known = {one.slug for one in packed.toolkits}
    assert known == {one.slug for one in SERVICES}
    assert all(one.toolkit in known and one.slug.startswith(one.toolkit.upper() + "_") for one in tools)


def test_every_schema_is_valid_json_schema_of_an_object(tools: tuple[Tool, ...]) -> None:
    """By another library than any that made them."""
    for tool in tools:
        for schema in (tool.input_schema, tool.output_schema):
            jsonschema_rs.meta.validate({**schema, "$schema": "https://json-schema.org/draft/2020-12/schema"})
            assert schema["type"] == "object"
        properties = tool.input_schema["properties"]
        assert set(tool.input_schema.get("required", ())) <= properties.keys(), tool.slug


def test_every_tool_says_what_it_does(tools: tuple[Tool, ...]) -> None:
    assert not [one.slug for one in tools if len(one.description) < 8 or not one.name or len(one.description) > 900]


def test_every_operation_fills_its_path_and_takes_what_the_tool_tells(packed: Packed) -> None:
    """No argument is lost, and none is asked for that nobody told."""
    for tool in packed.tools:
        operation = packed.operation(tool.slug)
        told = set(tool.input_schema["properties"])
        places = [one.argument or one.name for one in operation.parameters if not one.fixed]
        if operation.body is not None:
            places += [one.argument or one.name for one in operation.body.fields]
            places += [operation.body.whole] if operation.body.whole else []
        if operation.media is not None:
            places.append(operation.media.argument)
        assert sorted(set(places)) == sorted(told), tool.slug
        holes = set(re.findall(r"\{([^{}]+)\}", operation.path))
        assert holes == {one.name for one in operation.parameters if one.place == "path"}, tool.slug


def test_every_call_would_go_to_a_host_of_its_toolkit_by_https(packed: Packed) -> None:
    import httpx2

    toolkits = {one.slug: one for one in packed.toolkits}
    for tool in packed.tools:
        base = packed.operation(tool.slug).base_url.replace("{subdomain}", "acme")
        assert base.startswith("https://")
        assert is_among(httpx2.URL(base), toolkits[tool.toolkit].hosts), tool.slug


def test_every_toolkit_can_be_connected(packed: Packed) -> None:
    """By OAuth2 with addresses to ask at, or by something that a person can paste."""
    for toolkit in packed.toolkits:
        assert toolkit.auth, toolkit.slug
        for scheme in toolkit.auth:
            if scheme.kind is AuthKind.OAUTH2:
                assert scheme.oauth is not None
                assert scheme.oauth.authorize_url.startswith("https://")
                assert scheme.oauth.token_url.startswith("https://")
            else:
                assert [one for one in scheme.fields if one.is_secret], toolkit.slug


def test_what_looks_says_so_and_what_takes_away_says_so(tools: tuple[Tool, ...]) -> None:
    known = {one.slug: set(one.tags) for one in tools}
    for slug in (
        "GITHUB_GET_A_PULL_REQUEST",
        "GMAIL_FETCH_EMAILS",
        "GOOGLECALENDAR_FREEBUSY_QUERY",
        "SLACK_USERS_INFO",
    ):
        assert "readOnlyHint" in known[slug]
    for slug in ("GMAIL_DELETE_MESSAGE", "GITHUB_DELETE_A_REPOSITORY", "GOOGLECALENDAR_DELETE_EVENT"):
        assert "destructiveHint" in known[slug]
        assert "readOnlyHint" not in known[slug]
    for slug in ("SLACK_VIEWS_PUBLISH", "SLACK_CHAT_POST_MESSAGE", "GMAIL_SEND_EMAIL", "STRIPE_CREATE_CUSTOMER"):
        assert "readOnlyHint" not in known[slug]


def test_the_file_is_small_and_names_nobody_who_does_not_belong_there() -> None:
    assert ARCHIVE.stat().st_size < MOST_BYTES
    with zipfile.ZipFile(ARCHIVE) as archive:
        names = archive.namelist()
        everything = b"".join(archive.read(name) for name in names)
    for host in (b"registry.npmjs", b"files.pythonhosted", b"/simple/"):
        assert host not in everything, host
    notice = (ARCHIVE.parent / "NOTICE.md").read_text(encoding="utf-8")
    assert all(f"| {one.slug} |" in notice for one in SERVICES)


def test_it_is_read_fast_and_not_all_at_once() -> None:
    taken = []
    for _ in range(3):
        begun = time.perf_counter()
        Packed(ARCHIVE)
        taken.append(time.perf_counter() - begun)
    assert min(taken) < MOST_SECONDS
    tracemalloc.start()
    try:
        found = Packed(ARCHIVE)
        assert found.tools[0].input_schema
        assert tracemalloc.get_traced_memory()[0] < MOST_MEMORY
        for tool in found.tools[::10]:
            assert tool.input_schema["type"] == "object"
        assert tracemalloc.get_traced_memory()[0] < MOST_MEMORY
    finally:
        tracemalloc.stop()


def test_packages_and_hashes_of_all_services_are_pinned() -> None:
    script = (Path(__file__).parents[4] / "scripts" / "compile-toolkits").read_text(encoding="utf-8")
    for package in {one.package for one in SERVICES}:
        assert re.search(rf"^(wheel|tarball) {re.escape(package)} \d+\.\d+\.\d+ [0-9a-f]{{64}}$", script, re.MULTILINE)


@pytest.mark.parametrize("slug", sorted(IDENTITIES))
def test_who_an_account_is_can_be_asked_where_the_provider_says_so(packed: Packed, slug: str) -> None:
    kit = next(one for one in packed.toolkits if one.slug == slug)
    url = httpx2.URL(IDENTITIES[slug].url)
    assert is_among(url, kit.hosts)
    described = [packed.operation(one.slug) for one in packed.tools if one.toolkit == slug]
    addresses = [f"{(one.base_url or kit.base_url).rstrip('/')}{one.path}" for one in described if one.method == "GET"]
    fitting = [re.sub(r"\\\{[^}]*\\\}", "[^/]+", re.escape(one)) for one in addresses]
    assert any(re.fullmatch(one, str(url.copy_with(query=None))) for one in fitting)
