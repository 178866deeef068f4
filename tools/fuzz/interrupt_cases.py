"""Cases of an interrupt at some moment: the call ends, and afterwards everything works, in other threads too.

A program is the source of `work()`, which is interrupted at the n-th point of Python code at which a signal's
handler may raise. So a case is the same one each time.
"""

from __future__ import annotations

import random
import threading
from typing import Any

import numpy as np

from support.interrupts import at_point

from .case import OK, Case, Outcome, Stage, Verdict, found
from .minimise import Shows

_SECONDS = 60.0
_WORKS = (
    "hloom.jit(lambda x: jnp.tanh(x) * FRESH + jnp.sort(x))(X)",
    "hloom.grad(lambda x: jnp.sum(jnp.sin(x * FRESH)))(X)",
    "hloom.jit(lambda x: lax.fori_loop(0, 5, lambda i, c: c * FRESH + i, x))(X)",
    "hloom.vmap(lambda v: v.sum() * FRESH)(X[None])",
    "jnp.sort(X) + jnp.outer(X, X).sum(0) * FRESH",
    "known(X) * FRESH",
    "donating(jnp.array(X)) * FRESH",
    "hloom.random.normal(hloom.random.key(3), (4,)) * FRESH",
)
_ANYWHERE = ".py"


def draw(seed: int) -> Case:
    """The case of a seed. FRESH, a number, makes a program that was not compiled before."""
    rng = random.Random(seed)
    point = int(10 ** rng.uniform(0, 5))
    work = rng.choice(_WORKS).replace("FRESH", repr(round(rng.uniform(1, 2), 6)))
    source = f"""\
import numpy as np
import hloom, hloom.numpy as jnp
from hloom import lax

POINT = {point}
X = np.linspace(0, 1, {rng.choice((3, 4, 7))}, dtype=np.float32)
known = hloom.jit(lambda x: x * 2 + jnp.sin(x))
donating = hloom.jit(lambda x: x + 1, donate_argnums=0)


def work():
    return np.asarray({work})
"""
    return Case("interrupt", seed, source)


def check(case: Case, stage: Stage) -> Outcome:
    """Interrupt it, then do it again, here and in another thread."""
    scope: dict[str, Any] = {}
    exec(compile(case.program, "<case>", "exec"), scope)
    work = scope["work"]
    stage("interrupted")
    interrupted = at_point(work, scope["POINT"], _ANYWHERE)
    stage("again")
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(work()), daemon=True)
    thread.start()
    thread.join(_SECONDS)
    if thread.is_alive():
        return found("interrupt: a lock is held", f"another thread waits for more than {_SECONDS:g} s")
    if not results:
        return found("interrupt: an error in another thread", "see the traceback on stderr")
    here = work()
    stage("fresh")
    fresh: dict[str, Any] = {}
    exec(compile(case.program, "<case>", "exec"), fresh)
    for other in (here, fresh["work"]()):
        if not np.array_equal(other, results[0]):
            return found("interrupt: another result", f"{other}\n{results[0]}")
    return OK if interrupted else Outcome(Verdict.SKIPPED, "it has fewer points")


def minimised(case: Case, shows: Shows) -> Case:
    """The program is small."""
    return case
