"""The page by which a person connects an account: plain HTML, which works without scripts, fonts or anything from
elsewhere. Whatever is shown on it came from somebody, and is escaped.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from urllib.parse import urlencode, urlsplit, urlunsplit

from workbench.core.connection_requests import DeviceView, LinkView, Way
from workbench.model.connection import ConnectedAccount, ConnectionStatus
from workbench.model.toolkit import AuthField, AuthKind

# BARRIER: nothing on these pages may run, be fetched, be framed, or send what is filled in to anybody else; held by
# tests/connections/test_page.py.
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    # The address of the page is a secret.
    "referrer-policy": "no-referrer",
}
_STYLE = """
:root{color-scheme:light dark;--line:#8886;--mark:#0a7;--bad:#c33}
body{font:16px/1.5 system-ui,sans-serif;margin:0 auto;max-width:34rem;padding:1.5rem}
fieldset{border:1px solid var(--line);border-radius:6px;margin:1rem 0;padding:.8rem 1rem}
label{display:block;margin:.6rem 0}
input{box-sizing:border-box;display:block;font:inherit;padding:.4rem;width:100%}
button,.button{background:var(--mark);border:0;border-radius:6px;color:#fff;cursor:pointer;display:inline-block;
font:inherit;padding:.5rem 1rem;text-decoration:none}
.bad{border-left:4px solid var(--bad);padding-left:.8rem}
.code{font:2rem ui-monospace,monospace;letter-spacing:.15em}
small{opacity:.75}
"""
_KINDS = {
    AuthKind.API_KEY: "With an API key",
    AuthKind.BEARER_TOKEN: "With a token",
    AuthKind.BASIC: "With a user name and a password",
    AuthKind.OAUTH2: "With your account",
}


def choosing(view: LinkView, token: str, problem: str = "") -> str:
    """The page of a link that was not used yet."""
    name = html.escape(view.toolkit.name)
    parts = [_heading(view)]
    if not problem and view.account.status is ConnectionStatus.FAILED:
        problem = f"The last try failed: {view.account.status_reason}."
    if problem:
        parts.append(f"<p class=bad id=problem role=alert>{html.escape(problem)}</p>")
    parts += [_way(way, name, token, is_ready=view.is_ready(way)) for way in view.ways]
    parts.append(
        "<p><small>What you enter is kept encrypted on this server, and is sent to "
        f"{html.escape(', '.join(view.toolkit.hosts) or view.toolkit.name)} only.</small></p>"
    )
    return _page(f"Connect {view.toolkit.name}", parts)


def device(view: LinkView, shown: DeviceView) -> str:
    """What is typed in elsewhere; it looks again by itself."""
    where = html.escape(shown.verification_uri)
    there = html.escape(shown.complete_uri or shown.verification_uri)
    parts = [
        _heading(view),
        f"<p>Open <a href='{there}' target=_blank rel='noopener noreferrer'>{where}</a> on any device, and enter:</p>",
        f"<p class=code id=user-code>{html.escape(shown.user_code)}</p>",
        "<p><small>This page notices by itself when you are done. <a href=''>Look now</a></small></p>",
    ]
    return _page(f"Connect {view.toolkit.name}", parts, refresh=f"{shown.interval_s + 1}")


def finished(view: LinkView) -> str:
    """The end of it, and the way back."""
    account = view.account
    if account.is_active:
        parts = [f"<h1 id=done>{html.escape(view.toolkit.name)} is connected</h1>", _account(account)]
    else:
        parts = [
            f"<h1 id=failed>{html.escape(view.toolkit.name)} is not connected</h1>",
            f"<p class=bad role=alert>{html.escape(account.status_reason or account.status.lower())}</p>",
            "<p>Open the link that you were given again to have another try.</p>",
        ]
    back = way_back(view)
    if back:
        host = html.escape(urlsplit(back).netloc)
        parts.append(f"<p><a class=button id=back href='{html.escape(back)}'>Go back to {host}</a></p>")
    else:
        parts.append("<p>You can close this window.</p>")
    return _page(view.toolkit.name, parts, refresh=f"2;url={back}" if back and account.is_active else "")


def failed(message: str) -> str:
    """A page of which nothing came."""
    return _page("Not connected", [f"<h1>Not connected</h1><p class=bad role=alert>{html.escape(message)}</p>"])


def way_back(view: LinkView) -> str:
    """Where whoever asked for the link wants the person to be sent, with how it went; empty if nowhere."""
    if not view.link.callback_url:
        return ""
    parts = urlsplit(view.link.callback_url)
    said = urlencode(
        {
            "status": "success" if view.account.is_active else "failed",
            "connected_account_id": view.account.id,
            "toolkit": view.toolkit.slug,
        }
    )
    return urlunsplit(parts._replace(query=f"{parts.query}&{said}" if parts.query else said))


def _heading(view: LinkView) -> str:
    alias = f" as <b>{html.escape(view.account.alias)}</b>" if view.account.alias else ""
    return (
        f"<h1>Connect {html.escape(view.toolkit.name)}</h1><p>For the user "
        f"<b id=user>{html.escape(view.account.user)}</b>{alias} of this workbench, whose agents can then act with it. "
        "If that is not you, close this page.</p>"
    )


def _way(way: Way, name: str, token: str, *, is_ready: bool) -> str:
    legend = f"<legend>{_KINDS[way.kind]}</legend>"
    fields = "".join(_field(one) for one in way.fields)
    if way.kind is AuthKind.OAUTH2:
        first = f"<form method=post autocomplete=off>{fields}<button id=go-on name=kind value={way.kind}>Go on</button>"
        if not is_ready:
            return f"<fieldset>{legend}{first}</form></fieldset>"
        parts = []
        # Links, not forms: a browser holds forms against `form-action` wherever the service sends on to.
        if way.by_browser:
            parts.append(f"<p><a class=button id=authorize href='{token}/authorize'>Continue to {name}</a></p>")
        if way.by_device:
            parts.append(f"<p><a id=device href='{token}/device'>Enter a code on another device</a></p>")
        if way.fields:
            parts.append(f"<details><summary>Change what was filled in</summary>{first}</form></details>")
        return f"<fieldset>{legend}{''.join(parts)}</fieldset>"
    return (
        f"<form method=post autocomplete=off><fieldset>{legend}{fields}"
        f"<button name=kind value={way.kind}>Connect</button></fieldset></form>"
    )


def _field(field: AuthField) -> str:
    kind = "password" if field.is_secret else "text"
    required = " required" if field.is_required and not field.default else ""
    told = f"<small>{html.escape(field.description)}</small>" if field.description else ""
    return (
        f"<label>{html.escape(field.label)}<input type={kind} name='field.{html.escape(field.name)}' "
        f"value='{html.escape(field.default)}' autocomplete=off spellcheck=false{required}>{told}</label>"
    )


def _account(account: ConnectedAccount) -> str:
    label = f" ({html.escape(account.label)})" if account.label else ""
    return f"<p>The account <code id=account>{html.escape(account.id)}</code>{label} can be used from now on.</p>"


def _page(title: str, parts: Sequence[str], refresh: str = "") -> str:
    again = f"<meta http-equiv=refresh content='{html.escape(refresh)}'>" if refresh else ""
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"{again}<title>{html.escape(title)}</title><style>{_STYLE}</style><main>{''.join(parts)}</main></html>"
    )
