"""What the parts of a store in memory share."""

from __future__ import annotations

from dataclasses import dataclass, field

from workbench.model.access import Key
from workbench.model.configuration import ConfigurationRecord
from workbench.model.ids import CellId, KeyId, SessionId
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

    def drop_with_session(self, session: SessionId) -> None:
        """What goes with its record."""
        self.past_configurations.pop(session, None)
        for name in [name for name in self.cells if name[0] == session]:
            del self.cells[name]
        for key in [key for key in self.keys.values() if key.session == session]:
            del self.keys[key.id]
