"""Charts of altair as the specification that they are."""

from __future__ import annotations

import re
from typing import Any

_SCHEMA = re.compile(r"/vega-lite/v(\d+)")
_LAST_KNOWN = "5"


def of_chart(chart: Any) -> tuple[str, Any]:
    """Under the name by which notebooks know it."""
    made = chart.to_dict(context={"pre_transform": False})
    version = _SCHEMA.search(str(made.get("$schema", "")))
    return f"application/vnd.vegalite.v{version[1] if version else _LAST_KNOWN}+json", made
