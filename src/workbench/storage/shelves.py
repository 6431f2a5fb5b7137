"""What the parts of a store in memory share."""

from __future__ import annotations

from dataclasses import dataclass, field

from workbench.contracts.added import KeptToolkit
from workbench.contracts.connections import KeptAccount
from workbench.model.access import Key
from workbench.model.approval import ApprovalMark, SeenShape
from workbench.model.configuration import ConfigurationRecord
from workbench.model.connection import AccountId, AuthConfig, AuthConfigId, PendingLink
from workbench.model.execution import RuleCount
from workbench.model.ids import CellId, KeyId, ProjectId, SessionId
from workbench.model.records import AuditEntry, CellRecord
from workbench.model.session import Session


@dataclass(slots=True)
class Shelves:
    """All records there are."""

    sessions: dict[SessionId, Session] = field(default_factory=dict)
    past_configurations: dict[SessionId, list[ConfigurationRecord]] = field(default_factory=dict)
    cells: dict[tuple[SessionId, CellId], CellRecord] = field(default_factory=dict)
    keys: dict[KeyId, Key] = field(default_factory=dict)
    audit: list[AuditEntry] = field(default_factory=list)
    accounts: dict[AccountId, KeptAccount] = field(default_factory=dict)
    holders: dict[AccountId, tuple[str, str]] = field(default_factory=dict)
    """who holds an account, and until when"""
    auth_configs: dict[AuthConfigId, tuple[AuthConfig, bytes]] = field(default_factory=dict)
    links: dict[str, tuple[PendingLink, bytes]] = field(default_factory=dict)
    added: dict[str, KeptToolkit] = field(default_factory=dict)
    """by project and name"""
    marks: dict[SessionId, dict[str, ApprovalMark]] = field(default_factory=dict)
    rules: dict[tuple[ProjectId, str], RuleCount] = field(default_factory=dict)
    shapes: dict[tuple[ProjectId, str], SeenShape] = field(default_factory=dict)

    def drop_with_session(self, session: SessionId) -> None:
        """What goes with its record."""
        self.past_configurations.pop(session, None)
        self.marks.pop(session, None)
        for name in [name for name in self.cells if name[0] == session]:
            del self.cells[name]
        for key in [key for key in self.keys.values() if key.session == session]:
            del self.keys[key.id]

    def drop_account(self, account: AccountId) -> bool:
        """With its links; whether there was one."""
        for digest in [digest for digest, (link, _) in self.links.items() if link.account == account]:
            del self.links[digest]
        self.holders.pop(account, None)
        return self.accounts.pop(account, None) is not None
