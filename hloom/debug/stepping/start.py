"""`debug.step`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .programs import program_of_function
from .prompt import Prompt
from .stepper import Stepper


def step(
    fun: Callable[..., Any], *args: Any, prompt: bool = True, kernels: bool = False, stdin: Any = None,
    stdout: Any = None, **kwargs: Any,
) -> Any:  # fmt: skip
    r"""Run a function in steps, at the lines of the user's source, in the manner of Python's debugger.

    fun: a function of arrays, jitted or not; *args, **kwargs: its arguments. The function is traced once; its loops,
    branches and calls are entered. prompt: read commands from the terminal (`help` lists them: `n`, `s`, `si`, `c`,
    `stop nan`, `b LINE`, `p NAME`, `iteration K`), then return the function's result. False: return a `Stepper`, which
    a program drives. kernels: the program after all passes, kernel by kernel. stdin, stdout: files in place of the
    terminal.

    References to mutable arrays are written when the program is over. UnsupportedError for programs over several
    devices.

    >>> import io
    >>> from hloom import debug, numpy as jnp
    >>> def f(x):
    ...     return jnp.sqrt(x) + 1
    >>> y = debug.step(f, jnp.arange(3.0), stdin=io.StringIO("si\np _.max()\nc\n"), stdout=io.StringIO())
    >>> y
    Array([1.       , 2.       , 2.4142137], dtype=float32)
    """
    run = Stepper(program_of_function(fun, args, kwargs, kernels), kernels)
    if not prompt:
        return run
    return Prompt(run, stdin, stdout).run()
