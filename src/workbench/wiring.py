"""Settings in, a workbench or a whole service out: the only module that knows the adapters of the core."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path

from workbench.contracts.fetching import Fetching
from workbench.contracts.mounts import MountStore
from workbench.contracts.services import LanguageModel, WebSearch
from workbench.contracts.storage import Records
from workbench.core.access import Access
from workbench.core.call_limits import CallLimiter, CallLimits
from workbench.core.caretaker import CarePolicy, Caretaker
from workbench.core.guest_calls import CallDone, GuestCalls
from workbench.core.helpers import Helpers
from workbench.core.links import LinkSigner
from workbench.core.router.basic_tools import BasicTools
from workbench.core.router.catalogue import Catalogue
from workbench.core.router.router import Router
from workbench.core.workbench import Workbench
from workbench.data_folder import DataFolder
from workbench.egress.on_demand import FetcherOnDemand
from workbench.egress.policy import AddressPolicy
from workbench.errors import HostUnavailable, WorkbenchError
from workbench.host_client.adapter import HostClient
from workbench.host_client.calls import HostCalls
from workbench.host_client.connection import HostConnection, nobody_listens
from workbench.model.ids import DEFAULT_PROJECT, ProjectId
from workbench.services.opening import ModelPlace, SearchPlace, open_language_model, open_web_search
from workbench.settings import Settings
from workbench.storage.opening import FilesPlace, open_mounts, open_records
from workbench.storage.secret import kept_secret

# Whoever asks whether we are ready asks again soon.
_CHECK_S = 3.0
_MEMORY = Path("/proc/meminfo")
# A server has to leave soon, and the next one goes on where it was; after a command there may be nobody for long.
_SAVING_S, _SAVING_ALONE_S = 3.0, 60.0


class SystemClock:
    """The machine's."""

    def now_iso(self) -> str:
        """As the contract has it."""
        return _iso(datetime.datetime.now(datetime.UTC))

    def after(self, seconds: float) -> str:
        """As the contract has it."""
        return _iso(datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds))

    def monotonic(self) -> float:
        """As the contract has it."""
        return time.monotonic()

    async def pause(self, seconds: float) -> None:
        """As the contract has it."""
        await asyncio.sleep(seconds)


def _iso(moment: datetime.datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Service:
    """Everything that a server offers: a workbench for each project, who may use it, and who looks after it.

    Owned by `open_service`. Ending it ends no cell and no session.
    """

    def __init__(
        self,
        settings: Settings,
        host: HostClient,
        records: Records,
        mounts: MountStore,
        fetcher: Fetching,
        model: LanguageModel,
        search: WebSearch,
    ) -> None:
        self._settings = settings
        self._data = DataFolder(settings.data_dir)
        self._host = host
        self._records = records
        self._mounts = mounts
        self._fetcher = fetcher
        self._model = model
        self._search = search
        self._signer = LinkSigner(lambda: kept_secret(self._data.links_key))
        self._clock = SystemClock()
        self.access = Access(records=records, clock=self._clock)
        # One for whatever a session asks, from inside or from outside.
        limits = CallLimits(a_minute=settings.calls_per_minute, a_cell=settings.calls_per_cell)
        self._limiter = CallLimiter(limits, self._clock)
        self.router = Router(
            catalogue=Catalogue([BasicTools(model=model, search=search, clock=self._clock)]),
            limiter=self._limiter,
            audit=records.audit,
            clock=self._clock,
            mounts_of=lambda project: self.workbench(project).mounts,
        )
        self.caretaker = Caretaker(
            host=host,
            records=records,
            mounts=self._mounts,
            clock=self._clock,
            policy=CarePolicy(
                freeze_after_s=settings.freeze_after_s,
                end_after_s=settings.end_after_s,
                keep_cells_days=settings.keep_cells_days,
                keep_audit_days=settings.keep_audit_days,
                memory_reserve_percent=settings.memory_reserve_percent,
            ),
            free_memory_percent=lambda: free_memory_percent(_MEMORY),
        )

    def workbench(self, project: ProjectId = DEFAULT_PROJECT) -> Workbench:
        """That of a project; there is nothing to close."""
        return Workbench(
            host=self._host,
            records=self._records,
            mounts=self._mounts,
            fetching=self._fetcher,
            signer=self._signer,
            clock=self._clock,
            project=project,
        )

    async def answer_calls(
        self, *, address: str = "", beside: bool = False, tell: Callable[[CallDone], None] = lambda _: None
    ) -> None:
        """Until it is cancelled: answer what code in sandboxes asks. `address` is where links to files lead.

        Who does it `beside` something else is only asked while no server runs.
        """
        await HostCalls(self._data, rank=1 if beside else 0).serve(self.guest_calls(address, tell).answer)

    def guest_calls(self, address: str = "", tell: Callable[[CallDone], None] = lambda _: None) -> GuestCalls:
        """Who answers them, wherever they come from."""
        helpers = Helpers(
            model=self._model,
            search=self._search,
            router=self.router,
            mounts_of=lambda project: self.workbench(project).mounts,
            address=address,
        )
        return GuestCalls(records=self._records, clock=self._clock, helpers=helpers, limiter=self._limiter, tell=tell)

    @contextlib.asynccontextmanager
    async def answering_beside(self) -> AsyncIterator[None]:
        """Meanwhile helpers are answered by this process, if no server is there for it."""
        answering = asyncio.create_task(self.answer_calls(beside=True), name="calls from sandboxes")
        try:
            yield
        finally:
            answering.cancel()
            await asyncio.wait([answering])

    async def check(self) -> dict[str, str]:
        """How what we stand on is: `ok`, or what is wrong, for `records` and `host`. Takes seconds at most.

        Starts no host: none is needed before the first cell.
        """
        return {"records": await _checked(self._check_records()), "host": await _checked(self._check_host())}

    async def _check_records(self) -> str:
        await self._records.check()
        return "ok"

    async def _check_host(self) -> str:
        try:
            async with await HostConnection.open(self._data.socket):
                return "ok"
        except HostUnavailable as problem:
            if nobody_listens(problem) and self._settings.start_host:
                return "ok: none runs yet; it is started with the first cell"
            raise


async def _checked(looking: Awaitable[str]) -> str:
    try:
        async with asyncio.timeout(_CHECK_S):
            return await looking
    except WorkbenchError as problem:
        return problem.message
    except TimeoutError:
        return f"no answer within {_CHECK_S:.0f} s"


def free_memory_percent(meminfo: Path) -> float:
    """How much of the machine's memory programs could still have; 100 where nobody tells."""
    try:
        lines = meminfo.read_text(encoding="ascii").splitlines()
        told = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
        return 100.0 * told["MemAvailable"] / told["MemTotal"]
    except (OSError, ValueError, LookupError, ZeroDivisionError):
        return 100.0


@contextlib.asynccontextmanager
async def open_service(
    settings: Settings, environ: Mapping[str, str], *, saving_s: float = _SAVING_S
) -> AsyncIterator[Service]:
    """All of it, on the records and hosts that the settings name; nothing is opened or started before it is needed.

    `environ` is what a host is started with, as far as a host may have it. The end waits up to `saving_s` for files
    that are on their way to an object store.
    """
    host = HostClient(settings, environ)
    records = open_records(DataFolder(settings.data_dir).records, settings.database_url)
    mounts = open_mounts(DataFolder(settings.data_dir), _files_place(settings), close_s=saving_s)
    fetcher = FetcherOnDemand(AddressPolicy.parse(settings.fetch_allow))
    model, search = open_language_model(_model_place(settings)), open_web_search(_search_place(settings))
    try:
        yield Service(settings, host, records, mounts, fetcher, model, search)
    finally:
        await model.aclose()
        await search.aclose()
        # First: it may wait for files that are being saved.
        await mounts.aclose()
        await fetcher.aclose()
        await host.aclose()
        await records.aclose()


def _files_place(settings: Settings) -> FilesPlace:
    return FilesPlace(
        url=settings.files_url,
        endpoint=settings.files_endpoint,
        region=settings.files_region,
        access_key=settings.files_access_key,
        secret_key=settings.files_secret_key,
        session_token=settings.files_session_token,
    )


def _model_place(settings: Settings) -> ModelPlace:
    return ModelPlace(
        provider=settings.llm_provider,
        url=settings.llm_url,
        key=settings.llm_key,
        model=settings.llm_model,
        timeout_s=settings.llm_timeout_s,
        max_tokens=settings.llm_max_tokens,
    )


def _search_place(settings: Settings) -> SearchPlace:
    return SearchPlace(engine=settings.search_engine, url=settings.search_url, key=settings.search_key)


@contextlib.asynccontextmanager
async def open_workbench(settings: Settings, environ: Mapping[str, str]) -> AsyncIterator[Workbench]:
    """That of the default project, for whoever owns the data folder and needs no key."""
    async with open_service(settings, environ, saving_s=_SAVING_ALONE_S) as service:
        yield service.workbench()
