"""R in this process, by its own embedding interface. What is said to it and by it is text.

R errors leave by a jump that no frame of Python's may be under: each call into R is made where R itself catches them.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable, Sequence
from ctypes import CFUNCTYPE, byref, c_char_p, c_int, c_long, c_void_p

HOMES = ("/usr/lib/R", "/usr/local/lib/R", "/usr/lib64/R")
_FOLDERS = {"R_SHARE_DIR": "share", "R_INCLUDE_DIR": "include", "R_DOC_DIR": "doc"}
# No prompt, nothing read or written beside what is said here.
_ARGUMENTS = (b"R", b"--quiet", b"--no-save", b"--no-restore", b"--no-init-file", b"--no-readline")
_UTF8 = 1
# Kinds of objects.
_STRINGS, _PROMISE = 16, 5

_Write = CFUNCTYPE(None, c_char_p, c_int, c_int)
_Read = CFUNCTYPE(c_int, c_char_p, c_void_p, c_int, c_int)
_Bridge = CFUNCTYPE(c_void_p, c_void_p, c_void_p)

_NUMBERS = {"Rf_length", "R_BindingIsActive", "TYPEOF"}
_FUNCTIONS: dict[str, list[object]] = {
    "R_tryEvalSilent": [c_void_p, c_void_p, c_void_p],
    "Rf_length": [c_void_p],
    "R_BindingIsActive": [c_void_p, c_void_p],
    "TYPEOF": [c_void_p],
    "Rf_install": [c_char_p],
    "Rf_mkCharLenCE": [c_char_p, c_int, c_int],
    "Rf_ScalarString": [c_void_p],
    "Rf_allocVector": [c_int, c_long],
    "SET_STRING_ELT": [c_void_p, c_long, c_void_p],
    "STRING_ELT": [c_void_p, c_long],
    "Rf_lang2": [c_void_p, c_void_p],
    "Rf_protect": [c_void_p],
    "Rf_unprotect": [c_int],
    "R_PreserveObject": [c_void_p],
    "R_MakeExternalPtr": [c_void_p, c_void_p, c_void_p],
    "Rf_defineVar": [c_void_p, c_void_p, c_void_p],
    "Rf_findVarInFrame": [c_void_p, c_void_p],
    "PRVALUE": [c_void_p],
    "R_lsInternal3": [c_void_p, c_int, c_int],
}


class Embedded:
    """One R; there can be no second one in a process."""

    def __init__(
        self, write: Callable[[bytes, int, int], None], read: Callable[[], None], asked: Callable[[str, list[str]], str]
    ) -> None:
        """`write` gets what R prints, its length, and 1 if it is for stderr; `read` hears that somebody
        wants input, and gets none.

        `asked` answers what R code asks by `.Call(bridge, kind, texts)`, and raises nothing.
        """
        home = _home()
        os.environ["R_HOME"] = home
        for name, folder in _FOLDERS.items():
            shared = f"/usr/share/R/{folder}"
            os.environ.setdefault(name, shared if os.path.isdir(shared) else f"{home}/{folder}")
        self._lib = lib = ctypes.CDLL(f"{home}/lib/libR.so", mode=ctypes.RTLD_GLOBAL)
        for function, arguments in _FUNCTIONS.items():
            getattr(lib, function).argtypes = arguments
            getattr(lib, function).restype = c_int if function in _NUMBERS else c_void_p
        lib.R_CHAR.argtypes, lib.R_CHAR.restype = [c_void_p], c_char_p
        self._pending = c_int.in_dll(lib, "R_interrupts_pending")
        self._write, self._read, self._asked = write, read, asked
        self._start()
        self._nil, self._global = self._variable("R_NilValue"), self._variable("R_GlobalEnv")
        self._unbound = self._variable("R_UnboundValue")
        self._define_bridge()

    def _start(self) -> None:
        lib = self._lib
        # R's handler for SIGINT is a flag that its own loops look at, which Python's could not be.
        before = {number: signal.getsignal(number) for number in (signal.SIGPIPE, signal.SIGUSR1, signal.SIGUSR2)}
        lib.Rf_initialize_R(len(_ARGUMENTS), (c_char_p * len(_ARGUMENTS))(*_ARGUMENTS))
        c_int.in_dll(lib, "R_Interactive").value = 0
        self._callbacks = (_Write(self._write), _Read(self._on_read), _Bridge(self._on_bridge))
        for name, value in (
            ("ptr_R_WriteConsole", None),
            ("ptr_R_WriteConsoleEx", ctypes.cast(self._callbacks[0], c_void_p).value),
            ("ptr_R_ReadConsole", ctypes.cast(self._callbacks[1], c_void_p).value),
            ("R_Outputfile", None),
            ("R_Consolefile", None),
        ):
            c_void_p.in_dll(lib, name).value = value
        lib.setup_Rmainloop()
        for number, handler in before.items():
            signal.signal(number, handler)

    def _variable(self, name: str) -> int:
        return c_void_p.in_dll(self._lib, name).value or 0

    # What R calls

    def _on_read(self, _prompt: bytes, _buffer: int, _size: int, _history: int) -> int:
        self._read()
        return 0

    def _on_bridge(self, kind: int, texts: int) -> int:
        return self._text(self._asked(self.texts(kind)[0], self.texts(texts)))

    def _define_bridge(self) -> None:
        lib = self._lib
        address = ctypes.cast(self._callbacks[2], c_void_p).value
        pointer = lib.R_MakeExternalPtr(address, lib.Rf_install(b"native symbol"), self._nil)
        lib.R_PreserveObject(pointer)
        self._pointer = pointer

    # What calls R

    def load(self, path: str) -> int:
        """The environment with what a file of R's defines, and the way from R to Python as `bridge`."""
        code = "local({e <- new.env(parent = baseenv()); sys.source(%s, e, keep.source = FALSE); e})"
        environment = self._evaluated(code % _quoted(path))
        if environment is None:
            raise RuntimeError(f"R cannot read {path}")
        self._lib.R_PreserveObject(environment)
        self._lib.Rf_defineVar(self._lib.Rf_install(b"bridge"), self._pointer, environment)
        return environment

    def function(self, name: str, environment: int) -> int:
        """What `load` has found under this name; it stays where it is."""
        return int(self._lib.Rf_findVarInFrame(environment, self._lib.Rf_install(name.encode())))

    def _evaluated(self, code: str) -> int | None:
        lib, failed = self._lib, c_int(0)
        text = lib.Rf_protect(self._text(code))
        order = lib.Rf_protect(lib.Rf_lang2(lib.Rf_install(b"str2lang"), text))
        parsed = lib.Rf_protect(lib.R_tryEvalSilent(order, self._global, byref(failed)) or self._nil)
        result = None if failed.value else lib.R_tryEvalSilent(parsed, self._global, byref(failed))
        lib.Rf_unprotect(3)
        return None if failed.value else result

    def tell_warnings(self) -> None:
        """Have R print the warnings that it has put off, in its own words: it does so on its way back to a prompt."""
        self._evaluated('invokeRestart("abort")')

    @property
    def interrupted(self) -> bool:
        """Whether a SIGINT has come that R has not looked at."""
        return bool(self._pending.value)

    @interrupted.setter
    def interrupted(self, yes: bool) -> None:
        self._pending.value = yes

    def places(self) -> dict[str, int]:
        """Where the object of each name of the user's lies. Nothing is computed for it."""
        lib = self._lib
        found = {}
        for name in self.texts(lib.R_lsInternal3(self._global, 0, 0)):
            symbol = lib.Rf_install(name.encode())
            active = lib.R_BindingIsActive(symbol, self._global)
            found[name] = 0 if active else int(lib.Rf_findVarInFrame(self._global, symbol))
        return found

    def is_promise(self, name: str) -> bool:
        """Whether nobody has asked for this name's value yet, which would be computed then."""
        symbol = self._lib.Rf_install(name.encode())
        if self._lib.R_BindingIsActive(symbol, self._global):
            return False
        value = self._lib.Rf_findVarInFrame(self._global, symbol)
        return bool(self._lib.TYPEOF(value) == _PROMISE and self._lib.PRVALUE(value) == self._unbound)

    def call(self, function: int, texts: Sequence[str]) -> list[str] | None:
        """What a function of R's says to these texts; None if it was left by a jump."""
        lib = self._lib
        vector = lib.Rf_protect(lib.Rf_allocVector(_STRINGS, len(texts)))
        for index, text in enumerate(texts):
            lib.SET_STRING_ELT(vector, index, self._characters(text))
        order = lib.Rf_protect(lib.Rf_lang2(function, vector))
        failed = c_int(0)
        result = lib.R_tryEvalSilent(order, self._global, byref(failed))
        told = None if failed.value or not result else self.texts(result)
        lib.Rf_unprotect(2)
        return told

    def texts(self, vector: int) -> list[str]:
        """Of a character vector."""
        lib = self._lib
        if lib.TYPEOF(vector) != _STRINGS:
            return []
        return [
            lib.R_CHAR(lib.STRING_ELT(vector, index)).decode("utf-8", "replace")
            for index in range(lib.Rf_length(vector))
        ]

    def _characters(self, text: str) -> int:
        # A zero would be an error of R's, which nobody here catches.
        data = text.replace("\0", "").encode("utf-8", "replace")
        return int(self._lib.Rf_mkCharLenCE(data, len(data), _UTF8))

    def _text(self, text: str) -> int:
        return int(self._lib.Rf_ScalarString(self._characters(text)))


def _home() -> str:
    for home in HOMES:
        if os.path.exists(f"{home}/lib/libR.so"):
            return home
    raise RuntimeError(f"there is no R here: none of {', '.join(HOMES)} has lib/libR.so")


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
