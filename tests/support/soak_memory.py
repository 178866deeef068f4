"""16 threads that donate and read the same arrays; run by test_soak.py.

    python -m support.soak_memory ROUNDS   prints how often a donation won, and how often a read came first
"""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from hloom.tracer.errors import DeletedArrayError

import hloom
import hloom.numpy as jnp
from hloom import lax

THREADS = 16
SIZE = 20_000


def donation(rounds: int) -> None:
    give = hloom.jit(lambda s: lax.fori_loop(0, 30, lambda i, c: c + 1, s), donate_argnums=0)
    read = hloom.jit(lambda s: jnp.max(s) - jnp.min(s))
    won, reads = 0, 0
    for turn in range(rounds):
        s = jnp.full(SIZE, float(turn))
        start = threading.Barrier(THREADS)

        def one(k: int, s: jnp.ndarray = s, start: threading.Barrier = start, turn: int = turn) -> tuple[int, int]:
            start.wait()
            try:
                if k % 2:
                    assert (np.asarray(give(s)) == turn + 30).all()
                    return 1, 0
                assert float(read(s)) == 0  # a reader sees all of the array as it was
                return 0, 1
            except DeletedArrayError:
                return 0, 0

        with ThreadPoolExecutor(THREADS) as threads:
            outcomes = list(threads.map(one, range(THREADS)))
        assert sum(gave for gave, _ in outcomes) == 1, outcomes
        won += 1
        reads += sum(saw for _, saw in outcomes)
    print(won, reads)


if __name__ == "__main__":
    donation(int(sys.argv[1]))
