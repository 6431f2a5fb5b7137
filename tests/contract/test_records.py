"""Every store of cells, keys, connected accounts and the audit passes the contract."""

from __future__ import annotations

from tests.contract.stores import InMemory, InPostgres, InSqlite

from workbench.testing.added_contract import AddedStoreContract
from workbench.testing.cell_contract import CellStoreContract
from workbench.testing.connection_contract import ConnectionStoreContract
from workbench.testing.key_contract import HousekeepingContract, KeyStoreContract
from workbench.testing.tool_memory_contract import ToolMemoryContract


class _Suites(
    CellStoreContract,
    KeyStoreContract,
    ConnectionStoreContract,
    HousekeepingContract,
    ToolMemoryContract,
    AddedStoreContract,
):
    pass


class TestMemoryRecords(InMemory, _Suites):
    pass


class TestSqliteRecords(InSqlite, _Suites):
    pass


class TestPostgresRecords(InPostgres, _Suites):
    pass
