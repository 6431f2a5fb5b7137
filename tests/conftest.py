"""What tests of every kind share: the image, short folders, options for an engine."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from workbench.engines.options import EngineOptions
from workbench.errors import NotFound
from workbench.guest_trees import remove_tree
from workbench.images.build import find_image
from workbench.images.recipe import load_recipe
from workbench.model.image import Image

MakeEngineOptions = Callable[[Path], EngineOptions]

# A shell starts what it runs beside other things with interrupts ignored, and so would be every program that is started
# from here, to be interrupted by a test.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)


# Whole files that `make test` leaves to `make test-all`: each runs for half a minute or more on two cores, and what it
# holds is touched by others that stay. What is long by itself carries the mark where it stands.
_LONG = {
    "cli/test_cells.py",
    "cli/test_connections.py",
    "cli/test_kernel.py",
    "cli/test_mcp.py",
    "cli/test_run.py",
    "cli/test_sessions.py",
    "cli/test_state.py",
    "composio/tools/test_joining.py",
    "composio/tools/test_leaving.py",
    "docs/test_snippets.py",
    "doors/test_behaviours.py",
    "doors/test_contexts.py",
    "doors/test_other_languages.py",
    "extract/test_scans.py",
    "helpers/test_attacks.py",
    "helpers/test_end_to_end.py",
    "helpers/test_faults.py",
    "host/test_copies.py",
    "host/test_copying.py",
    "host/test_hostile_kernels.py",
    "host/test_pitfalls.py",
    "host/test_restore.py",
    "host/test_snapshot_memory.py",
    "host/test_storm.py",
    "kernel/test_attach.py",
    "kernel/test_jupyter_kernel_test.py",
    "kernel/test_parity.py",
    "local_sandbox/test_end_to_end.py",
    "local_sandbox/test_leaked_token.py",
    "local_sandbox/test_npm.py",
    "mcp/http/test_files.py",
    "mcp/http/test_leftovers.py",
    "mcp/http/test_limits.py",
    "mcp/http/test_restart.py",
    "mcp/http/test_transport.py",
    "mcp/test_files.py",
    "mcp/test_recovery.py",
    "mounts/test_object_losses.py",
    "mounts/test_object_sessions.py",
    "mounts/test_object_store.py",
    "mounts/test_object_waits.py",
    "packages/test_plots.py",
    "restart/test_followers.py",
    "restart/test_idle.py",
    "restart/test_killed.py",
    "runtimes/programs/test_programs.py",
    "sdk/test_composio.py",
    "sdk/test_local.py",
    "sdk/test_restart.py",
    "security/test_proof.py",
    "server/test_schema.py",
    "server/test_serving.py",
    "server/test_watching.py",
    "unit/images/test_additions.py",
}
_HERE = Path(__file__).resolve().parent


# What measures comes first, and says when it has: CI waits for that before it runs still more beside.
_MEASURING = _HERE / "spec"
_MEASURED = Path(told, "measured") if (told := os.environ.get("WB_GATES")) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before the mark is chosen by."""
    items.sort(key=lambda item: not _measures(item))
    for item in items:
        if item.path.is_relative_to(_HERE) and str(item.path.relative_to(_HERE)) in _LONG:
            item.add_marker(pytest.mark.long)


def _measures(item: pytest.Item) -> bool:
    return item.path.is_relative_to(_MEASURING)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Of the last one that measures."""
    if _MEASURED is not None and _measures(item) and (nextitem is None or not _measures(nextitem)):
        _MEASURED.touch()


# A host of their own is what these wait for most: theirs imports no library before its first sandbox.
_WITH_SMALL_HOSTS = {
    "cli", "composio", "composio_sdks", "connections", "doors", "helpers", "host", "local_sandbox", "mcp", "mounts",
    "product_documents", "restart", "sdk", "server", "toolkits",
}  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before any fixture is made."""
    inside = item.path.is_relative_to(_HERE) and item.path.relative_to(_HERE).parts[0] in _WITH_SMALL_HOSTS
    if inside and item.get_closest_marker("as_shipped") is None:
        os.environ["WORKBENCH_PRELOAD"] = "false"
    else:
        os.environ.pop("WORKBENCH_PRELOAD", None)


def images_dir() -> Path:
    """Where set-up put the images, unless the environment says otherwise."""
    if told := os.environ.get("WORKBENCH_IMAGES_DIR"):
        return Path(told)
    return Path("/var/lib/workbench/images") if os.geteuid() == 0 else Path.home() / ".local/share/workbench/images"


@pytest.fixture(scope="session")
def image() -> Image:
    """The Python image, built beforehand: tests never install anything."""
    try:
        return find_image(images_dir(), load_recipe("python"))
    except NotFound as problem:
        pytest.fail(f"{problem.message}; looked in {images_dir()}, set WORKBENCH_IMAGES_DIR for another place")


@contextlib.contextmanager
def _short_folder() -> Iterator[Path]:
    # Sockets have room for 108 bytes of path, and pytest's own folders take most of them.
    folder = Path(tempfile.mkdtemp(prefix="wb-", dir="/tmp"))
    try:
        yield folder
    finally:
        assert remove_tree(folder)


@pytest.fixture
def short_dir() -> Iterator[Path]:
    """A folder with a short path, removed afterwards."""
    with _short_folder() as folder:
        yield folder


@pytest.fixture(scope="class")
def class_dir() -> Iterator[Path]:
    """The same, for all tests of a class."""
    with _short_folder() as folder:
        yield folder


@pytest.fixture(scope="session")
def make_engine_options(image: Image) -> MakeEngineOptions:
    """Options for an engine that keeps everything below the folder it is given."""

    def make(folder: Path) -> EngineOptions:
        return EngineOptions(
            image=image,
            run_dir=folder / "run",
            files_root=folder / "files",
            packages_root=folder / "packages",
            group_name=f"workbench-test-{secrets.token_hex(4)}",
            pool_size=2,
        )

    return make


def listed_skips() -> list[str]:
    """Names of tests that tests/SKIPS.md allows to be skipped."""
    lines = (Path(__file__).parent / "SKIPS.md").read_text(encoding="utf-8").splitlines()
    return [line.split("|")[1].strip().strip("`") for line in lines if line.startswith("| `")]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A skip that nobody wrote down is a hole in the suite, and named as one."""
    for report in unlisted(terminalreporter):
        terminalreporter.write_line(f"SKIPPED BUT NOT LISTED in tests/SKIPS.md: {report.nodeid}", red=True)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """And fails the run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if (
        isinstance(reporter, pytest.TerminalReporter)
        and unlisted(reporter)
        and session.exitstatus == pytest.ExitCode.OK
    ):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def unlisted(reporter: pytest.TerminalReporter) -> list[pytest.TestReport]:
    """Skipped tests that the list does not name."""
    allowed = listed_skips()
    return [
        report for report in reporter.stats.get("skipped", []) if not any(name in report.nodeid for name in allowed)
    ]
