"""What is counted, for Prometheus. Labels are route templates, outcomes and codes: nothing that callers choose."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from workbench.core.caretaker import Round
from workbench.core.guest_calls import CallDone
from workbench.model.corrections import WHATS, counts_of
from workbench.model.records import CellKind, CellRecord

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
# From a trivial cell to one that takes its whole limit.
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180, 600, 3600)


class Metrics:
    """One per app, so that two in a process do not count for each other."""

    def __init__(self) -> None:
        # When a counter began is a second series for each, which nobody asks for.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "workbench_requests", "Requests answered.", ("route", "method", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "workbench_request_seconds",
            "How long requests took, with their bodies.",
            ("route", "method"),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._cells = Counter(
            "workbench_cells", "Cells and commands that came to an end.", ("kind", "outcome"), registry=self._registry
        )
        self._rules = Counter(
            "workbench_corrections",
            "What rules of the corrections did for cells and commands.",
            ("rule", "what"),
            registry=self._registry,
        )
        self.running = Gauge(
            "workbench_cells_running",
            "Cells and commands that this server waits for, queued ones too.",
            registry=self._registry,
        )
        self._looks = Counter(
            "workbench_caretaker_looks", "Rounds of the caretaker.", ("round", "outcome"), registry=self._registry
        )
        self._calls = Counter(
            "workbench_helper_calls", "Calls of code in sandboxes.", ("operation", "outcome"), registry=self._registry
        )
        self._call_seconds = Histogram(
            "workbench_helper_call_seconds",
            "How long calls of code in sandboxes took.",
            ("operation",),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._tokens = Counter(
            "workbench_model_tokens", "Tokens that went to and came from the model.", ("kind",), registry=self._registry
        )
        self._cared = Counter("workbench_caretaker_done", "What the caretaker did.", ("what",), registry=self._registry)

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        """One was answered."""
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route, method).observe(seconds)

    def cell(self, record: CellRecord) -> None:
        """One came to its end, or never began."""
        self._cells.labels(record.kind.value, outcome_of(record)).inc()
        for counted in counts_of(record.result) if record.result is not None else ():
            for what in WHATS:
                if number := getattr(counted, what):
                    self._rules.labels(counted.rule, what).inc(number)

    def refused(self, kind: CellKind, code: str) -> None:
        """One never began."""
        self._cells.labels(kind.value, code).inc()

    def look(self, what: str, outcome: str) -> None:
        """The caretaker made a round."""
        self._looks.labels(what, outcome).inc()

    def cared(self, done: Round) -> None:
        """What the round did."""
        for what in ("settled", "frozen", "ended", "dropped_cells", "dropped_audit", "dropped_tokens"):
            self._cared.labels(what).inc(getattr(done, what))

    def call(self, done: CallDone) -> None:
        """Code in a sandbox asked for something."""
        self._calls.labels(done.operation, done.outcome).inc()
        self._call_seconds.labels(done.operation).observe(done.seconds)
        self.tokens(done.prompt_tokens, done.completion_tokens)

    def tokens(self, prompt: int, completion: int) -> None:
        """The model was asked."""
        self._tokens.labels("prompt").inc(prompt)
        self._tokens.labels("completion").inc(completion)

    def text(self) -> bytes:
        """In the format of the scrapers."""
        return generate_latest(self._registry)


def outcome_of(record: CellRecord) -> str:
    """In a word."""
    if record.result is not None:
        return record.result.outcome.value
    return record.problem.code if record.problem is not None else record.status.value
