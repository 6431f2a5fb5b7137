"""Every store of cells, keys and the audit passes the contract."""

from __future__ import annotations

from tests.contract.stores import InMemory, InPostgres, InSqlite

from workbench.testing.cell_contract import CellStoreContract
from workbench.testing.key_contract import HousekeepingContract, KeyStoreContract


class TestMemoryRecords(InMemory, CellStoreContract, KeyStoreContract, HousekeepingContract):
    pass


class TestSqliteRecords(InSqlite, CellStoreContract, KeyStoreContract, HousekeepingContract):
    pass


class TestPostgresRecords(InPostgres, CellStoreContract, KeyStoreContract, HousekeepingContract):
    pass
