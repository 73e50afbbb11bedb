"""A real llama.cpp server for the tests, from the package xllamacpp, which contains it.

    python -m tests.llamacpp_server FILE PORT [PARAMETER=VALUE …]

Serves a GGUF file on this machine until it is killed, with two slots, one thread and a cache in
float32. The parameters are defaults of its sampling, as whoever starts such a server may set them.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

WINDOW = 2048
SLOTS = 2


def main(file: str, port: str, *parameters: str) -> None:
    import xllamacpp

    given: Any = xllamacpp.CommonParams()
    given.model.path = file
    given.hostnames = ["127.0.0.1"]
    given.port = int(port)
    given.n_parallel = SLOTS
    given.n_ctx = SLOTS * WINDOW
    given.cpuparams.n_threads = given.cpuparams_batch.n_threads = 1
    given.cache_type_k = given.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    given.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        setattr(given.sampling, name, float(value))
    _server = xllamacpp.Server(given)
    threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
