"""Settings in, a workbench or a whole service out: the only module that knows the adapters of the core."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

from workbench.contracts.added import ToolkitHouse
from workbench.contracts.connections import TokenEndpoints, Vault
from workbench.contracts.fetching import Fetching
from workbench.contracts.mounts import MountStore
from workbench.contracts.search import Meaning
from workbench.contracts.service_calls import ServiceCalls
from workbench.contracts.services import LanguageModel, WebSearch
from workbench.contracts.storage import Records
from workbench.contracts.tools import ToolSource
from workbench.core.access import Access
from workbench.core.call_limits import CallLimiter, CallLimits
from workbench.core.caretaker import CarePolicy, Caretaker
from workbench.core.connection_links import ConnectionLinks
from workbench.core.connections import Connections
from workbench.core.guest_calls import CallDone, GuestCalls
from workbench.core.helpers import Helpers
from workbench.core.installs import Installs
from workbench.core.languages import Languages
from workbench.core.links import LinkSigner
from workbench.core.router.accounts import UserAccounts
from workbench.core.router.basic_tools import BasicTools
from workbench.core.router.catalogue import Catalogue
from workbench.core.router.router import Router
from workbench.core.toolkits import AddedRecords, Toolkits
from workbench.core.workbench import Workbench
from workbench.data_folder import DataFolder
from workbench.egress.on_demand import FetcherOnDemand
from workbench.egress.policy import AddressPolicy
from workbench.errors import HostUnavailable, WorkbenchError
from workbench.host_client.adapter import HostClient
from workbench.host_client.calls import HostCalls
from workbench.host_client.connection import HostConnection, nobody_listens
from workbench.images.additions import ChosenImage
from workbench.model.ids import DEFAULT_PROJECT, ProjectId
from workbench.model.runtime import Runtimes
from workbench.model.toolkit import Toolkit
from workbench.packages.limits import InstallLimits
from workbench.packages.opening import PackagesPlace, open_installers, open_lists
from workbench.runtimes.loading import load_runtimes
from workbench.services.opening import ModelPlace, SearchPlace, open_language_model, open_web_search
from workbench.settings import Settings
from workbench.storage.opening import FilesPlace, open_mounts, open_records
from workbench.storage.secret import kept_secret
from workbench.storage.vault import vault_of
from workbench.toolkits.calls_on_demand import CallsOnDemand
from workbench.toolkits.configured import Configured
from workbench.toolkits.endpoints_on_demand import TOOLKITS_ALLOW, EndpointsOnDemand
from workbench.toolkits.meaning.sentences import Sentences
from workbench.toolkits.opening import Ground, Opener
from workbench.toolkits.shipped.on_demand import ShippedOnDemand

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


@dataclass(frozen=True, slots=True)
class Adapters:
    """What a service stands on: each an adapter of one contract of the core. Owned by `open_service`."""

    host: HostClient
    records: Records
    mounts: MountStore
    fetcher: Fetching
    model: LanguageModel
    search: WebSearch
    endpoints: TokenEndpoints
    services: ServiceCalls
    vault: Vault
    house: ToolkitHouse
    meaning: Meaning
    packages: PackagesPlace
    runtimes: Runtimes
    sources: Sequence[ToolSource]


class Service:
    """Everything that a server offers: a workbench for each project, who may use it, and who looks after it.

    Owned by `open_service`. Ending it ends no cell and no session.
    """

    def __init__(self, settings: Settings, on: Adapters) -> None:
        self._settings = settings
        self._data = DataFolder(settings.data_dir)
        self._on = on
        self._signer = LinkSigner(lambda: kept_secret(self._data.links_key))
        self._clock = SystemClock()
        self.access = Access(records=on.records, clock=self._clock)
        self._corrections = settings.corrections
        # One for whatever a session asks, from inside or from outside.
        limits = CallLimits(a_minute=settings.calls_per_minute, a_cell=settings.calls_per_cell)
        self._limiter = CallLimiter(limits, self._clock)
        own = [BasicTools(model=on.model, search=on.search, clock=self._clock), *on.sources]
        catalogue = Catalogue(own, on.house.sources)
        self.toolkits = Toolkits(
            records=on.records,
            kept=AddedRecords(on.records, on.vault),
            house=on.house,
            clock=self._clock,
            own=Catalogue(own),
        )
        self.installs = Installs(
            policy=settings.packages,
            lists=open_lists(on.packages),
            installers=open_installers(on.packages),
            clock=self._clock,
        )
        self.connections, self.links = self._accounts(catalogue)
        self.router = self._router(catalogue)
        self.caretaker = self._caretaker()

    def _accounts(self, catalogue: Catalogue) -> tuple[Connections, ConnectionLinks]:
        async def find(project: ProjectId, slug: str) -> Toolkit:
            return await catalogue.of(project).toolkit(slug)

        on, clock = self._on, self._clock
        store = on.records.connections
        connections = Connections(
            store=store,
            vault=on.vault,
            endpoints=on.endpoints,
            clock=clock,
            find_toolkit=find,
            services=on.services,
        )
        links = ConnectionLinks(
            store=store, vault=on.vault, endpoints=on.endpoints, clock=clock, find_toolkit=find, connections=connections
        )
        return connections, links

    def _router(self, catalogue: Catalogue) -> Router:
        return Router(
            catalogue=catalogue,
            limiter=self._limiter,
            audit=self._on.records.audit,
            memory=self._on.records.tools,
            clock=self._clock,
            mounts_of=lambda project: self.workbench(project).mounts,
            approvals_key=lambda: kept_secret(self._data.approvals_key),
            accounts=UserAccounts(self.connections, self.links),
            services=self._on.services,
            meaning=self._on.meaning,
        )

    def _caretaker(self) -> Caretaker:
        settings = self._settings
        return Caretaker(
            host=self._on.host,
            records=self._on.records,
            mounts=self._on.mounts,
            clock=self._clock,
            policy=CarePolicy(
                freeze_after_s=settings.freeze_after_s,
                end_after_s=settings.end_after_s,
                keep_cells_days=settings.keep_cells_days,
                keep_audit_days=settings.keep_audit_days,
                memory_reserve_percent=settings.memory_reserve_percent,
            ),
            free_memory_percent=lambda: free_memory_percent(_MEMORY),
            languages=Languages(self._on.runtimes),
        )

    def workbench(self, project: ProjectId = DEFAULT_PROJECT) -> Workbench:
        """That of a project; there is nothing to close."""
        return Workbench(
            host=self._on.host,
            records=self._on.records,
            mounts=self._on.mounts,
            fetching=self._on.fetcher,
            signer=self._signer,
            clock=self._clock,
            installs=self.installs,
            project=project,
            corrections=self._corrections,
            runtimes=self._on.runtimes,
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
            model=self._on.model,
            search=self._on.search,
            router=self.router,
            mounts_of=lambda project: self.workbench(project).mounts,
            address=address,
            installs=self.installs,
        )
        return GuestCalls(
            records=self._on.records, clock=self._clock, helpers=helpers, limiter=self._limiter, tell=tell
        )

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
        await self._on.records.check()
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


def runtimes_of(settings: Settings) -> Runtimes:
    """The languages that sessions may have."""
    return load_runtimes(settings.runtimes_dir)


@contextlib.asynccontextmanager
async def open_service(
    settings: Settings, environ: Mapping[str, str], *, saving_s: float = _SAVING_S, sources: Sequence[ToolSource] = ()
) -> AsyncIterator[Service]:
    """All of it, on the records and hosts that the settings name; nothing is opened or started before it is needed.

    `environ` is what a host is started with, as far as a host may have it. The end waits up to `saving_s` for files
    that are on their way to an object store. `sources` are tools beside those that the settings name; who gives them
    closes them.
    """
    data = DataFolder(settings.data_dir)
    policy = AddressPolicy.parse(settings.toolkits_allow, TOOLKITS_ALLOW)
    vault = vault_of(data.connections_key, settings.connections_key)
    # Closed in the other order, each also if another fails at it: calls end before what they are recorded in.
    async with (
        aclosing(open_records(data.records, settings.database_url)) as records,
        aclosing(HostClient(settings, environ)) as host,
        aclosing(FetcherOnDemand(AddressPolicy.parse(settings.fetch_allow))) as fetcher,
        aclosing(open_mounts(data, _files_place(settings), close_s=saving_s)) as mounts,
        aclosing(open_web_search(_search_place(settings))) as search,
        aclosing(open_language_model(_model_place(settings))) as model,
        aclosing(EndpointsOnDemand(policy)) as endpoints,
        aclosing(CallsOnDemand(policy)) as services,
        aclosing(_house(settings, environ, AddedRecords(records, vault), policy)) as house,
        aclosing(Sentences()) as meaning,
    ):
        # Last: of two tools of one name, that counts which somebody chose.
        sources = (*sources, ShippedOnDemand(services, settings.toolkits_shipped))
        yield Service(
            settings,
            Adapters(
                host=host,
                records=records,
                mounts=mounts,
                fetcher=fetcher,
                model=model,
                search=search,
                endpoints=endpoints,
                services=services,
                vault=vault,
                house=house,
                meaning=meaning,
                packages=_packages_place(settings, environ),
                runtimes=runtimes_of(settings),
                sources=sources,
            ),
        )


def _house(settings: Settings, environ: Mapping[str, str], added: AddedRecords, policy: AddressPolicy) -> Configured:
    return Configured(
        kept=added.all,
        opener=Opener(Ground(policy=policy, folder=DataFolder(settings.data_dir).toolkits)),
        file=Path(settings.toolkits_file) if settings.toolkits_file else None,
        environ=environ,
    )


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


def _packages_place(settings: Settings, environ: Mapping[str, str]) -> PackagesPlace:
    data = DataFolder(settings.data_dir)
    return PackagesPlace(
        root=data.packages,
        kept=data.package_store,
        allow=_names(settings.packages_allow),
        deny=_names(settings.packages_deny),
        index=settings.packages_index,
        registry=settings.packages_registry,
        limits=InstallLimits(
            max_bytes=settings.packages_max_mib * 2**20,
            timeout_s=float(settings.packages_timeout_s),
            min_age_days=settings.packages_min_age_days,
        ),
        environ=environ,
        image=ChosenImage(settings.data_dir, settings.images_dir).find,
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(one for one in text.split(",") if one)


def _search_place(settings: Settings) -> SearchPlace:
    return SearchPlace(engine=settings.search_engine, url=settings.search_url, key=settings.search_key)


@contextlib.asynccontextmanager
async def open_workbench(settings: Settings, environ: Mapping[str, str]) -> AsyncIterator[Workbench]:
    """That of the default project, for whoever owns the data folder and needs no key."""
    async with open_service(settings, environ, saving_s=_SAVING_ALONE_S) as service:
        yield service.workbench()
