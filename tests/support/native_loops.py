"""Running one program with its loops as kernels, as rows, and on the evaluator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from hloom.hlo.ir import HloModule
from hloom.hlo.passes.fuse.outline_loops import OutlineLoops
from hloom.hlo.passes.manager import Pipeline
from hloom.hlo.targets import target_named
from hloom.numba_backend import pipeline as pipelines
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.compiling import assembled
from hloom.numba_backend.native_loops.cost import can_be_native

import hloom
from hloom import hlo

Way = Literal["native", "rows", "evaluator"]


@dataclass(frozen=True)
class Compiled:
    """One way to run a program."""

    run: Callable[[], list[np.ndarray[Any, Any]]]
    kernels: dict[str, str] = field(default_factory=dict)

    def __call__(self) -> list[np.ndarray[Any, Any]]:
        return self.run()


def compile_module(module: HloModule, way: Literal["native", "rows"]) -> Any:
    """The executable of a module in which each loop that can be one kernel is one, or none is."""
    passes = pipelines.pipeline("cpu")
    outline = OutlineLoops(can_be_native if way == "native" else lambda loop: False)
    chosen = Pipeline(
        passes.name, tuple(outline if isinstance(p, OutlineLoops) else p for p in passes.steps)
    )
    return assembled(chosen.run(module)[0], target_named("cpu"))


def compiled(function: Callable[..., Any], arguments: Sequence[Any], way: Way) -> Compiled:
    """`function` of `arguments`, compiled in one of the ways."""
    module = hloom.jit(function).lower(*arguments).module
    arrays = [np.asarray(a) for a in arguments]
    if way == "evaluator":
        return Compiled(lambda: [np.asarray(a) for a in _leaves(hlo.evaluate(module, *arrays))])
    executable = compile_module(module, way)
    return Compiled(lambda: [np.asarray(a) for a in executable.execute(arrays)], dict(executable.kernels()))


def _leaves(result: Any) -> list[Any]:
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in _leaves(part)]
    return [result]


__all__ = ["Compiled", "NumbaCompiler", "Way", "compile_module", "compiled"]
