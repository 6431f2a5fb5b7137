"""What Python itself would suggest: by its own words, and on 3.11 also what it says only from 3.12 on."""

from __future__ import annotations

import builtins
import contextlib
import difflib
import io
import re
import sys
import traceback
import types

_SUGGESTING = (NameError, AttributeError, ImportError)
_NEWER = sys.version_info >= (3, 12)
_FROM = re.compile(r"cannot import name '([^']+)' from '([^']+)'")
_CLOSE = 0.7
# As far as Python looks, too.
_MOST_NAMES = 750


def suggestion(value: BaseException | None) -> str:
    """What is added to the message, like `. Did you mean: 'x'?`, or nothing. IPython's own tracebacks leave it out."""
    if not isinstance(value, _SUGGESTING):
        return ""
    said = _said(value)
    return said if _NEWER else _with_newer(value, said)


def _said(value: BaseException) -> str:
    plain = f"{type(value).__name__}: {value}"
    for line in reversed(_last_lines(value)):
        if line.startswith(plain):
            return line[len(plain) :] or _of_many(value)
    return ""


def _of_many(value: BaseException) -> str:
    """Where Python gives up, as there are too many names: a long session has several for each of its cells."""
    last = _last(value)
    if not isinstance(value, NameError) or isinstance(value, UnboundLocalError) or last is None or not value.name:
        return ""
    names = {**vars(builtins), **last.f_globals, **last.f_locals}
    if len(names) < _MOST_NAMES:
        return ""
    near = close(value.name, [one for one in names if not one.startswith("_")])
    return f". Did you mean: '{near[0]}'?" if near else ""


def _last(value: BaseException) -> types.FrameType | None:
    last = value.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return last.tb_frame if last is not None else None


def _last_lines(value: BaseException) -> list[str]:
    if _NEWER:
        return "".join(traceback.TracebackException.from_exception(value).format_exception_only()).splitlines()
    # Before 3.12 only the interpreter's own printer knows it.
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        sys.__excepthook__(type(value), value, value.__traceback__)
    return said.getvalue().splitlines()


def _with_newer(value: BaseException, said: str) -> str:
    if isinstance(value, NameError) and not isinstance(value, UnboundLocalError):
        own = _of_self(value)
        if own:
            return f". Did you mean: 'self.{own}'?"
        if value.name in sys.stdlib_module_names:
            if not said:
                return f". Did you forget to import '{value.name}'?"
            return f"{said.removesuffix('?')}? Or did you forget to import '{value.name}'?"
    if isinstance(value, ImportError) and not said and (found := _FROM.search(str(value))) is not None:
        module = sys.modules.get(found[2])
        near = close(found[1], dir(module)) if module is not None else []
        return f". Did you mean: '{near[0]}'?" if near else ""
    return said


def _of_self(value: NameError) -> str:
    """An attribute of that name of the object whose method it is."""
    last = _last(value)
    if last is None or "self" not in last.f_locals or not value.name:
        return ""
    own = last.f_locals["self"]
    # Looked at without running anything of its own.
    try:
        fields = object.__getattribute__(own, "__dict__")
    except AttributeError:
        fields = {}
    return value.name if value.name in fields or value.name in vars(type(own)) else ""


def close(name: str, names: list[str], most: int = 3) -> list[str]:
    """Those that look like it."""
    if len(names) > _MOST_NAMES:
        names = [one for one in names if one[:1].lower() == name[:1].lower()][:_MOST_NAMES]
    return [one for one in difflib.get_close_matches(name, names, n=most, cutoff=_CLOSE) if one != name]
