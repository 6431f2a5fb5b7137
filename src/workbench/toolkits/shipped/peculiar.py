"""What some services have that others have not, where a call is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from workbench.model.connection import API_KEY, TOKEN, USERNAME, Credential, Secret
from workbench.model.toolkit import AuthKind, Json, ToolResult
from workbench.toolkits.operations import Operation

# Where else a service is for those who came by OAuth2.
_BY_OAUTH = {"jira": "https://api.atlassian.com/ex/jira/{cloud_id}"}
# Parts of paths that are values of the account.
_OF_ACCOUNT = {"twilio": {"AccountSid": USERNAME}}


def placed(toolkit: str, operation: Operation, credential: Credential | None) -> Operation:
    """The operation at the address that is right for the account."""
    if toolkit in _BY_OAUTH and credential is not None and credential.kind is AuthKind.OAUTH2:
        return replace(operation, base_url=_BY_OAUTH[toolkit])
    return operation


def known(toolkit: str, operation: Operation, arguments: Json, credential: Credential | None) -> Json:
    """The arguments, and what the account says of those that are missing."""
    values: Mapping[str, Secret] = credential.values if credential is not None else {}
    told = {
        name: values[value].reveal()
        for name, value in _OF_ACCOUNT.get(toolkit, {}).items()
        if value in values and any(one.name == name for one in operation.parameters)
    }
    return {**told, **{name: one for name, one in arguments.items() if one is not None}}


def proved(toolkit: str, credential: Credential | None) -> Credential | None:
    """The credential as the service wants it. Trello takes two values in one header."""
    if toolkit != "trello" or credential is None or not {API_KEY, TOKEN} <= credential.values.keys():
        return credential
    key, token = (credential.values[name].reveal() for name in (API_KEY, TOKEN))
    both = Secret(f'oauth_consumer_key="{key}", oauth_token="{token}"')
    # What was there stays beside it, so that it is taken out of answers as well.
    return replace(credential, values={**credential.values, "own_key": credential.values[API_KEY], API_KEY: both})


def judged(toolkit: str, result: ToolResult) -> ToolResult:
    """The result, failed if the service says so in an answer that looks well."""
    if toolkit == "slack" and not result.error and result.data.get("ok") is False:
        why = str(result.data.get("error") or "it did not say why")[:300]
        return replace(result, error=f"Slack refused: {why}")
    return result
