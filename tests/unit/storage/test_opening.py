"""Which store the settings ask for, and what is said if it cannot be had."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from workbench.data_folder import DataFolder
from workbench.errors import InvalidSetting, StoreUnavailable
from workbench.storage.disk import DiskMountStore
from workbench.storage.opening import FilesPlace, open_mounts, open_records


@pytest.mark.parametrize("url", ["mysql://u:hunter2@host/db", "/some/file", "sqlite:///x?hunter2"])
def test_a_url_of_another_database_is_refused_without_its_password(tmp_path: Path, url: str) -> None:
    with pytest.raises(InvalidSetting, match="must begin with postgresql://") as raised:
        open_records(tmp_path / "workbench.db", url)
    assert "hunter2" not in raised.value.message


def test_a_url_that_cannot_be_read_is_refused_without_its_password(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="cannot be read; write it as postgresql://") as raised:
        open_records(tmp_path / "workbench.db", "postgresql://u:hunter2@host:port:more/db?nonsense=1")
    assert "hunter2" not in raised.value.message
    assert raised.value.__suppress_context__


def test_without_its_driver_the_command_that_installs_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg_pool", None)
    monkeypatch.delitem(sys.modules, "workbench.storage.postgres", raising=False)
    with pytest.raises(InvalidSetting, match=r"pip install 'open-workbench\[postgres\]'"):
        open_records(tmp_path / "workbench.db", "postgresql://host/db")


async def test_a_server_that_does_not_answer_is_named_without_the_password(tmp_path: Path) -> None:
    records = open_records(tmp_path / "workbench.db", "postgresql://u:hunter2@127.0.0.1:1/records")
    with pytest.raises(StoreUnavailable, match=r"PostgreSQL at 127\.0\.0\.1:1/records cannot be used") as raised:
        await records.check()
    assert "hunter2" not in raised.value.message
    assert "WORKBENCH_DATABASE_URL" in raised.value.message
    await records.aclose()


def test_records_in_a_file_need_no_driver_of_another_database(tmp_path: Path) -> None:
    code = (
        "import asyncio, pathlib, sys\n"
        "from workbench.storage.opening import open_records\n"
        "records = open_records(pathlib.Path(sys.argv[1]))\n"
        "asyncio.run(records.check())\n"
        "assert not [name for name in sys.modules if name.startswith('psycopg')]\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "workbench.db")], check=True, timeout=60)


def test_files_are_on_the_disk_unless_a_bucket_is_named(tmp_path: Path) -> None:
    assert isinstance(open_mounts(DataFolder(tmp_path), FilesPlace()), DiskMountStore)


@pytest.mark.parametrize("url", ["gs://bucket", "s3://", "/some/folder"])
def test_a_url_of_another_store_of_files_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(InvalidSetting, match="WORKBENCH_FILES_URL must be like s3://bucket/prefix"):
        open_mounts(DataFolder(tmp_path), FilesPlace(url=url, access_key="key", secret_key="secret"))


def test_a_bucket_without_credentials_is_refused_and_they_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="WORKBENCH_FILES_ACCESS_KEY and WORKBENCH_FILES_SECRET_KEY"):
        open_mounts(DataFolder(tmp_path), FilesPlace(url="s3://bucket", access_key="key"))


def test_without_the_client_of_object_stores_the_command_that_installs_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InvalidSetting, match=r"pip install 'open-workbench\[s3\]'"):
        open_mounts(DataFolder(tmp_path), FilesPlace(url="s3://bucket", access_key="key", secret_key="secret"))


def test_files_on_the_disk_need_no_client_of_an_object_store() -> None:
    code = (
        "import sys\n"
        "import workbench.wiring\n"
        "assert not [name for name in sys.modules if name.startswith('botocore')]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
