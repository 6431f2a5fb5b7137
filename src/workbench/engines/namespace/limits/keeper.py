"""The contract between the engine and whatever holds its sandboxes to their tiers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from workbench.contracts.engine import Usage
from workbench.model.capability import Capability
from workbench.model.tier import Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """How often the kernel, or the watchdog, has refused something; compared before and after a process."""

    memory_kills: int = 0
    process_refusals: int = 0


class LimitGroup(Protocol):
    """One sandbox's limits. Made before its first process, removed after its last."""

    @property
    def join(self) -> Literal["none", "v1", "v2"]:
        """How a new sandbox enters it."""
        ...

    @property
    def rlimits(self) -> dict[str, int]:
        """Limits that pid 1 sets on itself, by their names in `resource`."""
        ...

    @property
    def cpus(self) -> tuple[int, ...]:
        """CPUs that pid 1 binds itself to before it starts anything; empty where a control group caps the CPU."""
        ...

    def open_to_join(self) -> list[int]:
        """Descriptors that the new sandbox joins by; the caller closes them."""
        ...

    def adopt(self, pid: int) -> None:
        """Told once, when pid 1 exists, with its pid on the host."""
        ...

    def count_folders(self, folders: list[int]) -> None:
        """Told once, when they are mounted: folders whose files are the sandbox's memory, as descriptors.

        They stay the caller's, who closes them when the sandbox has ended.
        """
        ...

    def apply(self, tier: Tier) -> None:
        """Hold the sandbox to `tier` from now on.

        Raises:
            QuotaExceeded: it uses more memory than that; the limits are as before.
        """
        ...

    def usage(self) -> Usage:
        """What it uses now."""
        ...

    def counters(self) -> Counters:
        """Refusals so far."""
        ...

    def watch(self) -> str | None:
        """Called every WATCH_INTERVAL_S: end what goes too far. A reason means that the whole sandbox must end."""
        ...

    def freeze(self) -> bool:
        """Let nothing inside run; True once nothing does. Called again until then, or given up by `thaw`.

        Raises:
            OSError: it cannot be done here.
        """
        ...

    def thaw(self) -> None:
        """Let everything go on that `freeze` stopped. May be called at any time: what is frozen cannot end on v1.

        Raises:
            OSError: it cannot be done.
        """
        ...

    def remove(self) -> bool:
        """Free it; False if something is still inside. May be called again, and after it worked."""
        ...


class LimitKeeper(Protocol):
    """A way of holding limits on this host."""

    @property
    def kind(self) -> str:
        """As a sandbox's description says it."""
        ...

    @property
    def watches(self) -> bool:
        """Whether `LimitGroup.watch` needs calling."""
        ...

    @property
    def capabilities(self) -> tuple[Capability, ...]:
        """Memory, CPU, processes."""
        ...

    def group(self, name: str) -> LimitGroup:
        """A new group; its limits are unset until `apply`."""
        ...

    def close(self) -> None:
        """Remove what was made for the host as a whole. All groups are removed before."""
        ...
