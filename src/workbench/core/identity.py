"""Who an account is, asked of its service: what is sent, and what the answer means. Who sends it is left to others."""

from __future__ import annotations

from workbench.contracts.service_calls import ServiceAnswer, ServiceOrder
from workbench.model.connection import Credential
from workbench.model.toolkit import Identity, Toolkit

MOST_LABEL = 100
"""characters"""


def order(toolkit: Toolkit, identity: Identity, credential: Credential) -> ServiceOrder:
    """What is asked. It goes to the hosts of the toolkit, as every call does."""
    return ServiceOrder(
        method="GET",
        url=identity.url,
        headers=(("accept", "application/json"), *identity.headers),
        hosts=toolkit.hosts,
        credential=credential,
    )


def label_of(identity: Identity, answer: ServiceAnswer) -> str:
    """What it calls the account; empty if it did not say, or not in a way that could be shown."""
    if answer.status is None or not 200 <= answer.status < 300:
        return ""
    for name in identity.names:
        found = answer.data
        for part in name.split("."):
            found = found.get(part) if isinstance(found, dict) else None
        if isinstance(found, str) and found.strip() and found.isprintable():
            return found.strip()[:MOST_LABEL]
    return ""
