"""The process of a local model: serves one file on a unix socket until its standard input ends, as when its owner dies.

Executed as a file, by `local.py`; imports nothing of ours, and knows no setting and no secret.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

# What a small model was made for; longer questions are refused with the numbers.
CONTEXT_TOKENS = 8192
READY = b"ready\n"


def main(model: str, socket_path: str, name: str) -> None:
    """Say READY on standard output when questions are taken."""
    told = os.dup(1)
    # The library may write there as well.
    os.dup2(2, 1)
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = {name}
    # A path that ends with .sock is a unix socket to it.
    params.hostnames = [socket_path]
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1
    params.offline = True
    params.ui = False
    params.endpoint_slots = False
    params.verbosity = 0
    server = xllamacpp.Server(params)
    assert server.listening_address
    os.write(told, READY)
    os.close(told)
    sys.stdin.buffer.read()
    shutil.rmtree(Path(socket_path).parent, ignore_errors=True)
    # Its threads may be in the middle of an answer that nobody waits for.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
