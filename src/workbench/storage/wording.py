"""What every store says in the same words."""

from __future__ import annotations

from workbench.model.connection import AccountId, AuthConfigId
from workbench.model.ids import CellId, KeyId, SessionId


def exists_already(session: SessionId) -> str:
    """For a name that is taken."""
    return f"there is a session {session!r} already; use it, delete it first, or choose another name"


def no_such_session(session: SessionId) -> str:
    """For a name that nobody has."""
    return f"no session {session!r}: it was never made, or is deleted; `workbench sessions ls` lists those there are"


def files_in_use(session: SessionId) -> str:
    """For a name whose files have outlived it."""
    return (
        f"the files of an earlier session {session!r} are still those of its branches; delete them first "
        "(`workbench sessions ls` lists them), or choose another name"
    )


def no_such_cell(session: SessionId, cell: CellId) -> str:
    """For a cell or command that a session does not have."""
    return (
        f"session {session!r} has no cell or command {cell!r}: it was never accepted, or is older than what is kept; "
        "the session's history lists those there are"
    )


def no_such_key(key: KeyId) -> str:
    """For a key that nobody has."""
    return f"no key {key!r}; `workbench keys list` lists those there are"


def key_exists_already(key: KeyId) -> str:
    """For a name that is taken."""
    return f"there is a key {key!r} already; make one with another name"


def toolkit_exists_already(slug: str) -> str:
    """For a name that is taken."""
    return f"there is a toolkit {slug!r} already; remove it by `workbench toolkits remove {slug}`, or take another name"


def no_such_account(account: AccountId) -> str:
    """For a connected account that nobody has."""
    return f"no connected account {account[:60]!r}; `workbench connections list` lists those there are"


def account_exists_already(account: AccountId) -> str:
    """For an id that is taken."""
    return f"there is a connected account {account!r} already; make one with another id"


def no_such_config(config: AuthConfigId) -> str:
    """For an auth config that nobody has."""
    return f"no auth config {config[:60]!r}; `workbench auth-configs list` lists those there are"


def config_exists_already(config: AuthConfigId) -> str:
    """For an id that is taken."""
    return f"there is an auth config {config!r} already; make one with another id"


def no_such_link() -> str:
    """For a link that we did not make, or that is over."""
    return "no such link: it was never made, is over, or its account was removed; ask for a new one"


def begins_of(toolkit: str | None) -> str:
    """With what the names of its tools begin; with nothing, if it is any."""
    return "" if toolkit is None else f"{toolkit.upper()}_"
