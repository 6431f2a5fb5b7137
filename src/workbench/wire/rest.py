"""The shapes of REST, shared by the server and the SDK: what is sent is strict, what is answered may grow."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from workbench.model.access import Scope
from workbench.model.corrections import SWITCHES
from workbench.model.execution import DEFAULT_LIMIT_S, MAX_CODE_BYTES, CorrectionKind, MemoryState, Outcome, PieceKind
from workbench.model.packages import PackagePolicy
from workbench.model.process import Limit
from workbench.model.records import CellKind, CellStatus
from workbench.model.runtime import PYTHON

Size = Literal["standard", "medium", "large", "xlarge"]
Mode = Literal["await", "stream", "detach"]
_ID = r"^[a-z0-9][a-z0-9_-]*$"
SessionName = Annotated[str, Field(min_length=1, max_length=40, pattern=_ID, examples=["ses-5f1c0a9b7d3e"])]
# Names are shown in lines and kept in stores that take no NUL.
_LINE = r"^[^\x00-\x1f\x7f-\x9f]*$"
_TEXT = r"^[^\x00]*$"
UserName = Annotated[str, Field(min_length=1, max_length=200, pattern=_LINE, examples=["user_123"])]
Line = Annotated[str, Field(max_length=200, pattern=_LINE)]
Words = Annotated[str, Field(pattern=_TEXT)]
Folder = Annotated[str, Field(max_length=4096, pattern=r"^/[^\x00]*$")]
RuntimeName = Annotated[str, Field(min_length=1, max_length=40)]
_VARIABLE = r"^[^\x00=]+$"
VariableName = Annotated[str, Field(min_length=1, pattern=_VARIABLE)]


def whole(number: object) -> object:
    """JSON has no integers: 5.0 is one as well."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


Whole = Annotated[int, BeforeValidator(whole)]
# Constraints stand before the validator: behind it schemas do not know them.
Seconds = Annotated[int, Field(ge=0, le=366 * 24 * 3600), BeforeValidator(whole)]
KeySeconds = Annotated[int, Field(ge=1, le=3660 * 24 * 3600), BeforeValidator(whole)]


class Sent(BaseModel):
    """What a caller sends: a field that we do not know is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Answered(BaseModel):
    """What we answer: a client ignores fields that it does not know."""

    model_config = ConfigDict(extra="ignore", frozen=True, from_attributes=True)


class Problem(Answered):
    """What went wrong, and what to do next. Nothing ran."""

    code: str = Field(description="Stable; every code is in the reference of errors.", examples=["not_found"])
    message: str = Field(description="For people: names the thing and the next step.")
    context: dict[str, str] = Field(default_factory=dict, description="What the message is about, by name.")
    retryable: bool = Field(default=False, description="Whether the same request may succeed later.")
    request_id: str = Field(default="", description="By which the server's log knows the request.")


class ProblemAnswer(Answered):
    """The body of every answer that is not a success."""

    error: Problem


def _named_variables(schema: dict[str, Any]) -> None:
    """What is checked of names, in the words that schemas have for it."""
    schema.pop("patternProperties", None)
    schema["propertyNames"] = {"pattern": _VARIABLE, "minLength": 1}
    schema["additionalProperties"] = {"type": "string", "pattern": _TEXT}


def _sandbox_or_workbench(schema: dict[str, Any]) -> None:
    """One thing with two names, of which one may be given."""
    names = schema["properties"]
    names["workbench"] = {**names["sandbox"], "description": "Another name for `sandbox`."}
    if "sandbox" in schema.get("required", ()):
        del schema["required"]
        schema["oneOf"] = [{"required": ["sandbox"]}, {"required": ["workbench"]}]
    else:
        schema["not"] = {"required": ["sandbox", "workbench"]}


class Idle(Sent):
    """What happens when nothing happens; null is the server's setting, 0 is never."""

    freeze_after_s: Seconds | None = Field(
        default=None, description="Stand still after so long without a call; the next call goes on as if nothing was."
    )
    end_after_s: Seconds | None = Field(
        default=None, description="End the sandbox after so long; variables are lost, files in /mnt/files are kept."
    )


class Sandbox(Sent):
    """What the session's sandbox is like."""

    sandbox_size: Size = Field(default="standard", description="vCPUs and memory: 1/1, 2/2, 4/4 or 8/8 GiB.")
    env: dict[VariableName, Words] = Field(
        default_factory=dict,
        description="Variables of everything that runs in it.",
        json_schema_extra=_named_variables,
    )
    start_up: Words = Field(
        default="", max_length=MAX_CODE_BYTES, description="Run in every new memory before its first cell."
    )
    working_folder: Folder = Field(
        default="/home/user",
        description="Where cells start; made if missing, and /home/user if it cannot be used, which is then said.",
    )
    snapshots: bool = Field(default=True, description="Keep its memory between cells: for undo, branches and crashes.")
    enable: bool = Field(
        default=True,
        description="Without, nothing can be run in it here: its files, links and helpers are for a box that you run.",
    )
    enable_tool_execution: bool = Field(
        default=True, description="Have helpers for tools, the model and the web search ready for its code."
    )
    packages: PackagePolicy | None = Field(
        default=None, description="Which packages its code may have installed, within what the server allows."
    )
    corrections: dict[str, bool] = Field(
        default={},
        max_length=len(SWITCHES),
        description="Which mistakes of its code are corrected, by switch, where it is otherwise than the server's.",
        examples=[{"keys": False, "single_element": True}],
        json_schema_extra={
            "properties": {name: {"type": "boolean"} for name in SWITCHES},
            "additionalProperties": False,
        },
    )
    idle: Idle = Field(default_factory=Idle)


class CreateSession(Sent):
    """A new session."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, json_schema_extra=_sandbox_or_workbench
    )

    user_id: UserName = Field(default="local", description="Whose session it is: your user, in your words.")
    id: SessionName | None = Field(default=None, description="Its name; chosen by the server unless given.")
    sandbox: Sandbox = Field(
        default_factory=Sandbox,
        validation_alias=AliasChoices("sandbox", "workbench"),
        description="What its sandbox is like. `workbench` is taken for the same.",
    )
    runtime: RuntimeName = Field(
        default=PYTHON, description="Its language, which it keeps. Other names of it, such as `javascript`, will do."
    )
    eager: bool = Field(default=False, description="Make the sandbox and run the start-up code before the answer.")


class SandboxChange(Sent):
    """What of a sandbox can change while it lives; what is left out stays."""

    sandbox_size: Size | None = Field(default=None, description="At once, with its memory kept.")
    snapshots: bool | None = None
    idle: Idle | None = None


class ChangeSession(Sent):
    """Changes of a session."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, json_schema_extra=_sandbox_or_workbench
    )

    sandbox: SandboxChange = Field(validation_alias=AliasChoices("sandbox", "workbench"))


class _Said(Sent):
    limit_s: float = Field(
        default=DEFAULT_LIMIT_S, gt=0, allow_inf_nan=False, description="After this many seconds it is interrupted."
    )
    mode: Mode = Field(
        default="await",
        description=(
            "`await` answers with the end, and keeps the connection alive with white space until then; `stream` sends "
            "events as they come; `detach` answers at once, and the work goes on whoever listens."
        ),
    )
    thought: Words = Field(default="", max_length=10_000, description="Why the agent does this; kept with the cell.")
    current_step: Words = Field(default="", max_length=200, description="Where the agent is, in a word or two.")
    current_step_metric: Words = Field(default="", max_length=200, examples=["10/100 emails"])


class RunCell(_Said):
    """Code for the session's kernel."""

    code: Words = Field(max_length=MAX_CODE_BYTES, examples=["import pandas as pd\npd.__version__"])
    store_history: bool = Field(default=True, description="Count it, and keep it and its value in In and Out.")


class RunCommand(_Said):
    """A command line for bash, beside what the kernel does."""

    command: Words = Field(max_length=MAX_CODE_BYTES, examples=["ls -la /mnt/files"])
    cwd: Folder = "/home/user"


class Undo(Sent):
    """Back over the last cells."""

    cells: Whole = Field(default=1, ge=1, le=1000)


class Branch(Sent):
    """A second session with the same memory."""

    id: SessionName | None = Field(default=None, description="Its name; chosen by the server unless given.")
    copy_: bool = Field(
        default=False,
        alias="copy",
        description="In a sandbox of its own with copies of files and variables; else in the same sandbox.",
    )


class CreateContext(Sent):
    """A further kernel of a session."""

    id: SessionName | None = Field(default=None, description="Its name; chosen by the server unless given.")
    runtime: RuntimeName | None = Field(default=None, description="Its language; the session's unless given.")
    working_folder: Folder | None = Field(
        default=None, description="Where its cells start; the session's unless given."
    )


class CreateToken(Sent):
    """A token for one session only."""

    lifetime_s: Whole = Field(default=3600, ge=1, le=30 * 24 * 3600)


class CreateLocalSandbox(Sent):
    """A box that you run, for a session whose sandbox is off."""

    expires_in_s: Whole = Field(
        default=24 * 3600, ge=1, le=30 * 24 * 3600, description="For how long its token is good; a day unless given."
    )


class CreateKey(Sent):
    """A new key of the caller's project."""

    label: Line = Field(default="", description="What it is for, for people.")
    scopes: list[Scope] = Field(default=[Scope.SESSIONS], min_length=1, max_length=3)
    lifetime_s: KeySeconds | None = Field(default=None, description="null: it does not expire.")


class RotateKey(Sent):
    """A new key in place of this one."""

    overlap_s: Whole = Field(default=24 * 3600, ge=0, le=90 * 24 * 3600, description="How long the old one stays good.")


class SnapshotState(Answered):
    """What would be left of the memory if it ended."""

    kept: int = 0
    current: bool = Field(default=False, description="The newest is of the memory as it is.")
    cost_s: float = 0.0
    reason: str = Field(default="", description="Why there is none, or none that is current.")


class QueuedCell(Answered):
    """One that waits or runs."""

    cell: str
    origin: str = Field(description="`session`, or `attached` for what a Jupyter client sent.")
    running: bool
    for_s: float
    first_line: str


class Progress(Answered):
    """What the latest cells said about where they are."""

    thought: str = ""
    current_step: str = ""
    current_step_metric: str = ""


class SandboxShown(Answered):
    """What the session's sandbox is like."""

    sandbox_size: Size
    env_names: list[str] = Field(description="Names of its variables; their values are not shown.")
    start_up: str
    working_folder: str
    snapshots: bool
    enable: bool = True
    enable_tool_execution: bool = True
    packages: PackagePolicy | None = Field(default=None, description="None is what the server allows.")
    corrections: dict[str, bool] = {}
    idle: Idle


class Session(Answered):
    """A session as it is now."""

    id: str
    user_id: str
    project: str
    runtime: str = Field(default=PYTHON, description="Its language, by the name of its runtime.")
    sandbox: SandboxShown
    state: str = Field(
        description=(
            "`cold` (no sandbox yet), `idle`, `busy`, `frozen` (thawed by the next call), `lost` (the next call makes "
            "a new sandbox), `unreachable`, `unfinished` (a branch in the making) or `ending`."
        )
    )
    detail: str = Field(default="", description="Why, for `lost` and `unreachable`.")
    epoch: int = Field(description="Another number means another memory: variables are not those of before.")
    execution_count: int = 0
    queue: list[QueuedCell] = []
    memory_bytes: int = 0
    start_up_error: str = ""
    warning: str = Field(default="", description="What is weak about its isolation.")
    snapshots: SnapshotState = SnapshotState()
    shared_with: list[str] = Field(default=[], description="Branches and contexts in the same sandbox.")
    parent: str | None = None
    context_of: str | None = Field(default=None, description="The session that it is a further kernel of.")
    progress: Progress = Progress()
    created_at: str
    used_at: str


class SessionPage(Answered):
    """Some sessions, by name."""

    items: list[Session]
    next_cursor: str | None = Field(default=None, description="Where the next page begins; null if there is none.")


class Contexts(Answered):
    """The further kernels of a session, each a session by its name."""

    items: list[Session]


class Text(Answered):
    """What is shown of a stream, and where the whole is."""

    text: str = Field(default="", description="All of it, or head and tail with a line between that says so.")
    characters: int = 0
    lines: int = 0
    file_path: str | None = Field(default=None, description="Where the whole is, inside the sandbox.")
    note: str = ""


class Display(Answered):
    """One rich output: the same thing in several formats."""

    data: dict[str, str] = Field(description="By mime type; pictures in base64, JSON types as JSON text.")
    metadata: str = "{}"
    display_id: str = ""
    is_result: bool = False
    is_update: bool = Field(default=False, description="Of something that an earlier cell displayed under this id.")
    files: dict[str, str] = Field(
        default={}, description="By mime type: where a format is that is too large to be in `data`."
    )


class CellError(Answered):
    """What the code raised."""

    name: str
    message: str
    traceback: str


class HelperUse(Answered):
    """What the code asked of the workbench by its helpers."""

    calls: int = 0
    failed: int = 0
    prompt_tokens: int = Field(default=0, description="Sent to a language model.")
    completion_tokens: int = Field(default=0, description="That it answered.")


class Correction(Answered):
    """Something that was done for the code, or that it is told, beyond what it asked for."""

    kind: CorrectionKind
    rule: str = Field(description="Its stable name.")
    text: str = Field(description="A sentence for the agent.")
    line: int = Field(default=0, description="Of the code, from 1; 0 if it belongs to none.")
    packages: list[str] = Field(default=[], description="`name==version` of what was installed.")
    seconds: float = Field(default=0.0, description="That it took.")
    times: int = Field(default=1, description="That it happened there.")


class RuleCount(Answered):
    """How often a rule of the corrections had something to do."""

    rule: str
    acted: int = Field(description="Something else was done than was written.")
    declined: int = Field(description="It looked like the mistake, and there was a reason to leave it.")
    hinted: int = Field(description="Told without doing anything.")
    repeated: int = Field(description="Acted on the same again in the next cell.")
    undone: int = Field(description="The next cell was to run as it is, or bound the name to something else.")


class RuleCounts(Answered):
    """Of a project."""

    items: list[RuleCount]


class Receipt(Answered):
    """What the call did to the state."""

    epoch: int = Field(description="One number per kernel memory; another one means other variables.")
    execution_count: int = 0
    state: MemoryState = MemoryState.INTACT
    reason: str = ""
    added: list[str] = []
    removed: list[str] = []
    rebound: list[str] = []
    more_names: int = 0
    working_folder: str = ""
    peak_memory_bytes: int = 0
    cpu_s: float = 0.0
    wall_s: float = 0.0
    snapshot: SnapshotState = SnapshotState()
    helpers: HelperUse = HelperUse()
    corrections: list[str] = []
    installs: list[str] = []


class Result(Answered):
    """How something that began came to its end."""

    outcome: Outcome
    results: Text = Field(default=Text(), description="The text of the last value; for cells.")
    stdout: Text = Text()
    stderr: Text = Text()
    error: CellError | None = Field(default=None, description="What the code raised; for cells.")
    exit_code: int | None = Field(default=None, description="For commands, as bash has it.")
    explanation: str = Field(default="", description="What happened and what to do next, unless it just ended.")
    displays: list[Display] = []
    displays_left_out: int = 0
    displays_file_path: str | None = None
    displays_note: str = ""
    limits: list[Limit] = Field(default=[], description="Caps of the tier that were met.")
    corrections: list[Correction] = Field(
        default=[], description="What was done otherwise, what was installed, and hints."
    )
    corrections_left_out: int = Field(default=0, description="Beyond those.")
    receipt: Receipt


class Cell(Answered):
    """A cell or a command. With a `result` it began; with an `error` it never did."""

    id: str
    session_id: str
    kind: CellKind
    status: CellStatus
    code: str = Field(description="Or the command line.")
    limit_s: float
    thought: str = ""
    current_step: str = ""
    current_step_metric: str = ""
    created_at: str
    ended_at: str | None = None
    result: Result | None = None
    error: Problem | None = None


class CellPage(Answered):
    """Some cells and commands of a session, in the order they were accepted."""

    items: list[Cell]
    next_cursor: str | None = None


class Piece(Answered):
    """The data of an event `piece`: output as it came. The event's id is the offset behind it; pieces that came at once
    have one id together, at the last of them.
    """

    kind: PieceKind
    text: str = ""
    wait: bool = Field(default=False, description="Of `clear`: only once something else comes.")
    display: Display | None = None
    error: CellError | None = None


class Dropped(Answered):
    """The data of an event `dropped`: the host could not keep so much of the output."""

    bytes: int


class Stopped(Answered):
    """Whether there was something to stop."""

    stopped: bool


class Undone(Answered):
    """A session that went back."""

    session: Session
    not_carried: str = Field(default="", description="What of the earlier memory no snapshot can carry.")


class Branched(Answered):
    """A new session, and what of the memory it has not."""

    session: Session
    carried: list[str] = Field(default=[], description="For copies: variables that arrived.")
    not_carried: str = ""
    not_carried_names: dict[str, str] = Field(default={}, description="For copies: variables that did not, and why.")
    files_note: str = ""


class Variable(Answered):
    """One name of the kernel's memory."""

    name: str
    type: str
    size: str
    preview: str


class Variables(Answered):
    """Names of the kernel's memory; none if it has no memory now."""

    items: list[Variable]


class BackgroundProcess(Answered):
    """Something that runs in the sandbox and is neither the kernel nor a command under way."""

    pid: int
    command: str
    for_s: float
    memory_bytes: int


class BackgroundProcesses(Answered):
    """What runs in the background of a session."""

    items: list[BackgroundProcess]


class Key(Answered):
    """A key, without its secret."""

    id: str
    project: str
    label: str
    scopes: list[Scope]
    session_id: str | None = Field(default=None, description="For tokens: the one that it is good for.")
    created_at: str
    expires_at: str | None = None
    revoked_at: str | None = None
    replaced_by: str | None = None


class NewKey(Key):
    """A key, with what is shown this once."""

    key: str = Field(description="Send it as `Authorization: Bearer …` or `x-api-key`. It is not kept here.")


class Keys(Answered):
    """Keys of the caller's project, oldest first."""

    items: list[Key]


class AddToolkit(Sent):
    """A toolkit for the caller's project. It comes from exactly one of `url`, `composio` and `openapi`; `command` and
    `functions` run what lies on the server's machine, and only who runs it adds those."""

    slug: str = Field(max_length=100, description="Small letters, digits and _: what its tools begin with.")
    url: str | None = Field(default=None, max_length=4000, description="Of an MCP server (streamable HTTP).")
    headers: dict[str, str] | None = Field(default=None, description="Sent to that server alone; kept sealed.")
    bearer: str | None = Field(default=None, max_length=16_000, description="The same, as `Authorization: Bearer …`.")
    composio: list[str] | None = Field(default=None, description="Slugs of toolkits of Composio's.")
    key: str | None = Field(default=None, max_length=16_000, description="Your own key of Composio's; kept sealed.")
    address: str | None = Field(default=None, max_length=4000, description="Where Composio is, if it is elsewhere.")
    openapi: str | None = Field(default=None, max_length=4000, description="URL of a document of OpenAPI 3.")
    base_url: str | None = Field(default=None, max_length=4000, description="Where its service is, if not as it says.")
    command: list[str] | None = Field(default=None, description="Refused here; see `workbench toolkits add`.")
    functions: str | None = Field(default=None, max_length=4000, description="Refused here as well.")
    name: str | None = Field(default=None, max_length=200)
    description: str | None = Field(default=None, max_length=4000)
    timeout_s: Whole | None = Field(default=None, ge=1, le=3600, description="For one call.")
    test: bool = Field(default=True, description="Keep it only if its tools can be listed now.")


class ToolkitTool(Answered):
    """A tool of a toolkit that was added."""

    slug: str
    name: str
    description: str
    tags: list[str]


class AddedToolkit(Answered):
    """A toolkit that was added, without its secrets."""

    slug: str
    kind: str = Field(description="Where its tools come from: `command`, `url`, `functions`, `composio`, `openapi`.")
    project: str | None = Field(description="null: for all.")
    from_file: bool = Field(description="It is in the settings file.")
    added_at: str | None
    secrets: list[str] = Field(description="Names of what is kept sealed of it.")
    tool_count: int
    problem: str = Field(description="Why it cannot be used now; empty if it can.")
    refused: dict[str, str] = Field(description="Tools that it has and that are not used, with the reason.")


class AddedToolkitWithTools(AddedToolkit):
    """The same, with its tools."""

    tools: list[ToolkitTool]


class AddedToolkits(Answered):
    """Those of the caller's project and those for all."""

    items: list[AddedToolkit]


class Token(Answered):
    """A token for one session."""

    id: str = Field(description="By which it can be revoked, like a key.")
    token: str
    session_id: str
    expires_at: str


class LocalSandbox(Answered):
    """What a box that you run needs; its token is shown this once."""

    helper_source: str = Field(description="A Python module, to be written there as composio_helper.py.")
    env: dict[str, str] = Field(description="Variables for what runs there. The credential is a token of the session.")
    token_id: str = Field(description="By which the token can be revoked, like a key.")
    expires_at: str


class UserDeleted(Answered):
    """What was deleted with a user."""

    sessions: int = Field(description="How many there were.")


class AuditEntry(Answered):
    """Who did what."""

    at: str
    key: str | None = Field(default=None, description="null for the owner of the data folder.")
    session: str | None = None
    user: str = ""
    action: str
    outcome: str
    detail: str = ""


class Audit(Answered):
    """Newest first."""

    items: list[AuditEntry]


class Health(Answered):
    """How the server is."""

    status: Literal["ok", "unavailable"]
    version: str
    checks: dict[str, str] = Field(default_factory=dict, description="For readiness: `ok`, or what is wrong.")


Notebook = dict[str, Any]
