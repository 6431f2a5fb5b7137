"""The requests about toolkits that were added and about connected accounts, as `_requests` has the others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from workbench.client._requests import Request, check_names, given, json_of, part_of_address
from workbench.wire import rest
from workbench.wire import rest_connections as wire

# Whoever asks others on our behalf waits for them.
_OTHERS_S = 120.0
_PAGE = 100


def add_toolkit(slug: str, options: dict[str, Any]) -> Request[rest.AddedToolkitWithTools]:
    """One more."""
    check_names("a toolkit", options, rest.AddToolkit)
    return Request(
        method="POST",
        path="/v1/toolkits",
        body=json_of(rest.AddToolkit, {"slug": slug, **given(options)}),
        parse=rest.AddedToolkitWithTools.model_validate,
        silence_s=_OTHERS_S,
    )


def list_toolkits() -> Request[list[rest.AddedToolkit]]:
    """All of them."""
    return Request(
        method="GET",
        path="/v1/toolkits",
        parse=lambda found: rest.AddedToolkits.model_validate(found).items,
        again=True,
        silence_s=_OTHERS_S,
    )


def show_toolkit(slug: str) -> Request[rest.AddedToolkitWithTools]:
    """One, with its tools."""
    return Request(
        method="GET",
        path=_toolkit(slug),
        parse=rest.AddedToolkitWithTools.model_validate,
        again=True,
        silence_s=_OTHERS_S,
    )


def test_toolkit(slug: str) -> Request[rest.AddedToolkitWithTools]:
    """Tried now."""
    return Request(
        method="POST",
        path=f"{_toolkit(slug)}/test",
        parse=rest.AddedToolkitWithTools.model_validate,
        silence_s=_OTHERS_S,
    )


def remove_toolkit(slug: str) -> Request[None]:
    """Gone."""
    return Request(method="DELETE", path=_toolkit(slug), parse=_nothing)


def begin_connection(
    toolkit: str, user_id: str, callback_url: str | None, alias: str, auth_config_id: str | None
) -> Request[wire.ConnectionBegun]:
    """A link for a person."""
    asked = given(
        {
            "toolkit": toolkit,
            "user_id": user_id,
            "callback_url": callback_url,
            "alias": alias or None,
            "auth_config_id": auth_config_id,
        }
    )
    return Request(
        method="POST",
        path="/v1/connections",
        body=json_of(wire.BeginConnection, asked),
        parse=wire.ConnectionBegun.model_validate,
    )


def list_connections(user_id: str | None, toolkit: str | None, cursor: str | None) -> Request[wire.ConnectionPage]:
    """A page of them."""
    query = given({"user_id": user_id, "toolkit": toolkit, "cursor": cursor, "limit": str(_PAGE)})
    return Request(
        method="GET", path="/v1/connections", query=query, parse=wire.ConnectionPage.model_validate, again=True
    )


def get_connection(id: str) -> Request[wire.Connection]:  # noqa: A002  (the field's name)
    """How it is."""
    return Request(method="GET", path=_connection(id), parse=wire.Connection.model_validate, again=True)


def refresh_connection(id: str) -> Request[wire.Connection]:  # noqa: A002  (the field's name)
    """With a new token."""
    return Request(
        method="POST", path=f"{_connection(id)}/refresh", parse=wire.Connection.model_validate, silence_s=_OTHERS_S
    )


def remove_connection(id: str) -> Request[bool]:  # noqa: A002  (the field's name)
    """Gone; whether the service was told."""
    return Request(
        method="DELETE",
        path=_connection(id),
        parse=lambda told: wire.ConnectionRemoved.model_validate(told).told_service,
        silence_s=_OTHERS_S,
    )


def create_auth_config(
    toolkit: str, client_id: str, client_secret: str, scopes: Iterable[str]
) -> Request[wire.AuthConfig]:
    """As which client accounts are connected."""
    asked = {"toolkit": toolkit, "client_id": client_id, "client_secret": client_secret, "scopes": list(scopes)}
    return Request(
        method="POST",
        path="/v1/auth-configs",
        body=json_of(wire.CreateAuthConfig, asked),
        parse=wire.AuthConfig.model_validate,
    )


def list_auth_configs() -> Request[list[wire.AuthConfig]]:
    """All of them."""
    return Request(
        method="GET",
        path="/v1/auth-configs",
        parse=lambda found: wire.AuthConfigs.model_validate(found).items,
        again=True,
    )


def remove_auth_config(id: str) -> Request[None]:  # noqa: A002  (the field's name)
    """Gone."""
    return Request(method="DELETE", path=f"/v1/auth-configs/{part_of_address(id)}", parse=_nothing)


def _toolkit(slug: str) -> str:
    return f"/v1/toolkits/{part_of_address(slug)}"


def _connection(id: str) -> str:  # noqa: A002  (the field's name)
    return f"/v1/connections/{part_of_address(id)}"


def _nothing(_answer: Any) -> None:
    return None
