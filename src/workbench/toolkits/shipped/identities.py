"""Where services say who an account is, for those that say it without a right of its own to be asked for."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.model.toolkit import Identity

IDENTITIES: Mapping[str, Identity] = {
    "asana": Identity(url="https://app.asana.com/api/1.0/users/me", names=("data.email", "data.name")),
    "bitbucket": Identity(url="https://api.bitbucket.org/2.0/user", names=("username", "display_name")),
    "box": Identity(url="https://api.box.com/2.0/users/me", names=("login", "name")),
    "digital_ocean": Identity(url="https://api.digitalocean.com/v2/account", names=("account.email",)),
    "figma": Identity(url="https://api.figma.com/v1/me", names=("email", "handle")),
    "github": Identity(url="https://api.github.com/user", names=("login",)),
    "gmail": Identity(url="https://gmail.googleapis.com/gmail/v1/users/me/profile", names=("emailAddress",)),
    "googlecalendar": Identity(url="https://www.googleapis.com/calendar/v3/calendars/primary", names=("id",)),
    "googledrive": Identity(
        url="https://www.googleapis.com/drive/v3/about?fields=user", names=("user.emailAddress", "user.displayName")
    ),
    "notion": Identity(
        url="https://api.notion.com/v1/users/me",
        names=("bot.owner.user.person.email", "bot.workspace_name", "name"),
        headers=(("notion-version", "2022-06-28"),),
    ),
    "slack": Identity(url="https://slack.com/api/auth.test", names=("user", "team")),
    "spotify": Identity(url="https://api.spotify.com/v1/me", names=("display_name", "id")),
    "stripe": Identity(url="https://api.stripe.com/v1/account", names=("email", "id")),
    "zoom": Identity(url="https://api.zoom.us/v2/users/me", names=("email", "display_name")),
}
