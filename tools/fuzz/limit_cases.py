"""Cases of a process that the system gives no more memory, or no more threads: an error that says so, and no hang.

A program is a script. It sets a limit at some point of a compilation, a call or an eager operation; what is raised must
be MemoryError or one of the errors of `_EXPECTED`, and when the limit is gone, everything works.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys

from .case import OK, Case, Outcome, Stage, Verdict, found
from .minimise import Shows
from .worker import ROOT

_SECONDS = 120.0
_SCRIPT = """\
import _thread, resource, threading
import numpy as np
import hloom, hloom.numpy as jnp

def work(n):
    x = np.arange(n, dtype=np.float32) / n
    return np.asarray(@WORK@)

def limit_memory(left):
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + left, most))

def limit_threads(left):
    start = _thread.start_new_thread
    def start_if_left(*arguments):
        if not left:
            raise RuntimeError("can't start new thread")
        left.pop()
        return start(*arguments)
    _thread.start_new_thread = threading._start_new_thread = start_if_left
    return start

@WARM@
most = resource.getrlimit(resource.RLIMIT_AS)[1]
start = _thread.start_new_thread
try:
    @LIMIT@
    work(@SIZE@)
except @EXPECTED@ as error:
    said = type(error).__name__
else:
    said = "a result"
resource.setrlimit(resource.RLIMIT_AS, (most, most))
_thread.start_new_thread = threading._start_new_thread = start
expected = work(9)
assert np.isfinite(expected).all()
print(said)
"""
_WORKS = (
    "hloom.jit(lambda x: jnp.cumsum(jnp.tanh(x) * 3.5) + jnp.sort(x))(x)",
    "hloom.grad(lambda x: jnp.sum(jnp.sin(x) ** 2))(x)",
    "hloom.jit(lambda x: x @ jnp.outer(x, x))(x)",
    "hloom.lax.fori_loop(0, 10, lambda i, c: c * 0.5 + i, jnp.asarray(x))",
    "jnp.sort(jnp.asarray(x))[::-1] + jnp.ones(x.shape[0])",
    "hloom.vmap(lambda v: hloom.nn.softmax(v))(jnp.outer(x, x))",
)
_EXPECTED = "(MemoryError, OSError, ImportError, hloom.errors.ExecutionError)"
"""OSError, ImportError: a library could not be loaded."""


def draw(seed: int) -> Case:
    """The case of a seed."""
    rng = random.Random(seed)
    if rng.random() < 0.7:
        limit = f"limit_memory({rng.choice((0, 1 << 14, 1 << 17, 1 << 20, 1 << 22, 1 << 25)) + rng.randrange(1 << 14)})"
        size = rng.choice((9, 9, 2000))
    else:
        limit, size = f"limit_threads([1] * {rng.choice((0, 0, 1, 2, 3))})", 9
    warm = rng.random() < 0.8  # libraries that are not loaded yet say in their own words what they lack
    script = _SCRIPT.replace("@WORK@", rng.choice(_WORKS)).replace("@LIMIT@", limit).replace("@SIZE@", str(size))
    warmed = "hloom.jit(lambda x: jnp.sin(x) * 2 + jnp.sort(x))(jnp.ones(7))" if warm else "work(5)"
    return Case("limit", seed, script.replace("@WARM@", warmed).replace("@EXPECTED@", _EXPECTED))


def check(case: Case, stage: Stage) -> Outcome:
    """Run the script."""
    stage("limits")
    environment = {**os.environ, "HLOOM_CACHE_DIR": "off", "PYTHONPATH": str(ROOT)}
    try:
        done = subprocess.run(
            [sys.executable, "-c", case.program], capture_output=True, text=True, timeout=_SECONDS, check=False,
            env=environment, cwd="/",
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return found("limit: hang", f"no end after {_SECONDS:g} s")
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        if "cannot allocate memory for thread-local data" in done.stderr:  # glibc ends the process
            return Outcome(Verdict.SKIPPED, last)
        return found(f"limit: {last.partition(':')[0]}", done.stderr[-4000:] or last)
    return OK


def minimised(case: Case, shows: Shows) -> Case:
    """The script is small."""
    return case
