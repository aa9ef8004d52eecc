"""The child process: llama.cpp's server on a loopback port, and nothing that could outlive its parent.

It is told what to do by one line of JSON on its standard input, which stays open for as long as the parent lives; it
answers with one line on its standard output. What llama.cpp says goes to its standard error.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import threading
from typing import Any, BinaryIO, Final

PROMPT_CACHE_MB: Final = 512
"""For the beginnings of conversations that wait; llama.cpp itself would take 8 GB."""

SMALL_MACHINE: Final = 4
"""With so many cores or fewer, one is left to the IDE: llama.cpp's threads wait for each other without a pause."""

_PR_SET_PDEATHSIG: Final = 1
_SIGKILL: Final = 9


def main() -> None:
    """Load the model and serve it until the parent is gone."""
    answers = _own_output()
    order = json.loads(sys.stdin.buffer.readline())
    _die_with(int(order["parent"]))
    threading.Thread(target=_watch, args=(sys.stdin.buffer,), daemon=True).start()
    try:
        server = _serve(order)
    except (ImportError, RuntimeError, ValueError, TypeError) as error:
        _answer(answers, {"error": str(error)})
        os._exit(1)  # the thread that watches holds standard input: an orderly end would wait for it
    _answer(answers, {"address": server.listening_address})
    threading.Event().wait()


def _own_output() -> BinaryIO:
    """Our standard output; whatever else is printed goes to standard error."""
    ours = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    return ours


def _answer(where: BinaryIO, said: dict[str, str]) -> None:
    where.write(json.dumps(said).encode() + b"\n")


def _die_with(parent: int) -> None:
    """End when the parent ends, also where nothing of Python runs: while a model is read from the disk (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it was quicker
            os._exit(1)


def _watch(parent: BinaryIO) -> None:
    """End when the pipe from the parent does, everywhere."""
    parent.read()
    os._exit(0)


def _serve(order: dict[str, Any]) -> Any:
    import xllamacpp  # 100 MB that only this process shall have

    llama: Any = xllamacpp  # it comes without types
    if not llama.json_schema_to_grammar({"type": "object"}).startswith("%llguidance"):
        raise RuntimeError("this build of xllamacpp cannot hold a model to a JSON Schema (LLGuidance is missing)")
    params = llama.CommonParams()
    params.model.path = order["model"]
    params.n_ctx = order["context_tokens"]
    params.n_parallel = 1
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [order["key"]]
    params.cache_ram_mib = PROMPT_CACHE_MB
    params.enable_reasoning = 0  # a thought would be outside of the grammar
    params.force_pure_content_parser = True  # what the model writes is ours to read
    cores = os.cpu_count() or 1
    if cores <= SMALL_MACHINE:
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = max(1, cores - 1)
    params.offline = True
    params.ui = False
    params.endpoint_slots = False
    return llama.Server(params)


if __name__ == "__main__":
    main()
