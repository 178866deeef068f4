"""The self-test of `hloom doctor`: small programs, compiled here and compared with the evaluator.

`results()` runs it in a process of its own, without the kernel store: so all kernels are compiled, and code that this
processor cannot run ends that process and not ours. The programs are one of each kind that has its own machinery: loops
over arrays, functions in software, sums, products by the BLAS, a sort, a native loop, a callback, several threads.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

SECONDS = 60
"""When it has taken so long, it has failed."""


class Result(NamedTuple):
    """One program of the self-test."""

    name: str
    passed: bool
    seconds: float
    detail: str


def results(seconds: float = SECONDS) -> list[Result]:
    """Run the programs in a process of its own. A process that dies, or takes longer than `seconds`, is a result that
    has not passed, after those of the programs before."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    environment = {**os.environ, "HLOOM_CACHE_DIR": "off"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [root, environment.get("PYTHONPATH")]))
    command, late = [sys.executable, "-m", __name__], False
    began = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            out, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            out, errors = process.communicate()
            late = True
    found = [Result(*json.loads(line)) for line in out.splitlines() if line.startswith("[")]
    if late or process.returncode:
        code = process.returncode
        how = f"it took longer than {seconds:g} s" if late else f"signal {-code}" if code < 0 else f"exit code {code}"
        last = errors.strip().splitlines()[-1:] or [""]
        detail = f"the process ended: {how}. {last[0]}".strip()
        found.append(Result("after these", False, time.perf_counter() - began, detail))
    return found


def _programs() -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
    """Names, functions, and arguments."""
    import numpy as np

    from .. import lax, pure_callback
    from .. import numpy as jnp

    random = np.random.default_rng(0)
    x, y = random.standard_normal((2, 64, 96)).astype(np.float32)
    long = random.standard_normal(1 << 20).astype(np.float32)
    yield "loop over arrays", lambda x, y: jnp.where(x > y, x * y + 1, x / (y * y + 1)), (x, y)
    yield "functions, f32", lambda x: jnp.exp(x) + jnp.sin(x) * jnp.tanh(x) + jnp.log1p(x * x), (x,)
    yield "functions, f64", lambda x: jnp.exp(x) + jnp.sin(x) * jnp.tanh(x), (x.astype(np.float64),)
    yield "sum along rows", lambda x: jnp.sum(x, axis=1) + jnp.max(x, axis=1), (x,)
    yield "small types", lambda x: (x.astype(jnp.bfloat16) * 3).astype(jnp.float16).astype(jnp.float32), (x,)
    yield "matrix product", lambda x, y: jnp.tanh(x @ y.T), (x, y)
    yield "sort", lambda x: jnp.sort(x, axis=1), (x,)
    yield "convolution", lambda x, y: jnp.convolve(x, y), (x[0], y[0, :9])
    yield "native loop", lambda x: lax.fori_loop(0, 30, lambda i, s: s * 0.5 + x, x), (x,)
    yield "callback", lambda x: pure_callback(lambda a: np.asarray(a) * 2, x, x) + 1, (x,)
    yield "threads", lambda x: jnp.exp(-x * x) * jnp.sqrt(jnp.abs(x)), (long,)


def _run() -> None:
    """Print a line of JSON for each program."""
    import numpy as np

    from .. import config, enable_x64, jit
    from ..hlo.comparing import compare
    from ..hlo.element_type import element_type_of

    for name, function, arguments in _programs():
        began = time.perf_counter()
        with enable_x64(any(array.dtype == np.float64 for array in arguments)):
            try:
                found = np.asarray(jit(function)(*arguments))
                config.update("hloom_backend", "evaluator")
                expected = np.asarray(jit(lambda *a, f=function: f(*a))(*arguments))
            except Exception as error:
                passed, detail = False, f"{type(error).__name__}: {error}".splitlines()[0]
            else:
                difference = compare(found, expected, element_type_of(found.dtype))
                passed, detail = difference.is_fine, difference.text
            finally:
                config.update("hloom_backend", "numba")
        print(json.dumps(Result(name, passed, time.perf_counter() - began, detail)), flush=True)


if __name__ == "__main__":
    _run()
