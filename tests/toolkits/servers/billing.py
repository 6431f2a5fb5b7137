"""Functions as whoever runs a workbench writes them."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from workbench.toolkits.functions import Caller, Toolkit

toolkit = Toolkit(name="Billing", description="Invoices of the shop.")
other = Toolkit("stock")


class Line(BaseModel):
    item: str
    price: Annotated[float, Field(ge=0)]


@toolkit.tool(read_only=True)
def total(lines: list[Line], currency: Literal["EUR", "USD"] = "EUR") -> float:
    """Sum up an invoice.

    More about it.

    Args:
        lines: what was bought,
            all of it
        currency: in which

    Returns:
        the sum
    """
    print("this goes nowhere that matters")
    os.write(1, b"neither does this\n")
    return sum(one.price for one in lines)


@toolkit.tool(destructive=False, idempotent=True)
async def whoami(caller: Caller, note: str | None = None) -> dict[str, str | None]:
    """Who calls."""
    await asyncio.sleep(0)
    return {"user": caller.user, "session": caller.session, "note": note}


@toolkit.tool(timeout_s=1)
def sleeps(mark: str) -> None:
    """Takes for ever."""
    Path(mark).write_text(str(os.getpid()), encoding="utf-8")
    time.sleep(600)


@toolkit.tool
def fails() -> None:
    """Raises."""
    _deeper()


def _deeper() -> None:
    raise LookupError(f"no invoice, and the key is {os.environ['BILLING_KEY']}")


@toolkit.tool
def leaves() -> None:
    """Ends its process."""
    print("good bye", file=sys.stderr, flush=True)
    os._exit(7)


@toolkit.tool
def exits() -> None:
    """Raises SystemExit."""
    sys.exit("enough")


@toolkit.tool
def lies() -> int:
    """Says a number, gives a word."""
    return "word"  # type: ignore[return-value]


@toolkit.tool
def large(size: int) -> str:
    """So many characters."""
    return "x" * size


@other.tool(name="count", description="How many there are.")
def anything(item: str) -> int:
    return len(item)
