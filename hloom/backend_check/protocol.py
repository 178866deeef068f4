"""The interface of `hlo/backend.py` itself: the arguments and results of an executable, and the data that it leaves
alone.

Each check is a function of a compiler that raises AssertionError.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from ..hlo import parse
from ..hlo.backend import Compiler, DeviceBuffer
from ..hlo.errors import ExecutionError, UnsupportedError
from ..hlo.host_buffers import HostBuffer
from ..hlo.ir import HloModule, InputOutputAlias
from ..hlo.targets import TARGETS

X, Y = np.arange(6, dtype=np.float32).reshape(2, 3), np.full((2, 3), 0.5, np.float32)


def _module(lines: str) -> HloModule:
    return parse(f"HloModule check\nENTRY e {{\n{lines}\n}}\n")


def _sum() -> HloModule:
    return _module(
        "  x = f32[2,3] parameter(0)\n  y = f32[2,3] parameter(1)\n  s = f32[2,3] add(x, y)\n"
        "  ROOT t = (f32[2,3], f32[2,3]) tuple(s, x)"
    )


def _buffers(*arrays: np.ndarray[Any, Any]) -> list[DeviceBuffer]:
    return [HostBuffer(a.copy(), s) for a, s in zip(arrays, _sum().entry_parameter_shapes)]


def results_have_the_declared_types(compiler: Compiler) -> None:
    """`execute` gives one array for each leaf of the result; `call` one buffer, of `result_shapes`."""
    executable = compiler.compile(_sum())
    total, same = executable.execute([X, Y])
    assert np.array_equal(total, X + Y) and np.array_equal(same, X)
    buffers = executable.call(_buffers(X, Y))
    assert [b.shape for b in buffers] == list(executable.result_shapes), "call returns other shapes than it declares"
    assert [s.dimensions for s in executable.parameter_shapes] == [(2, 3), (2, 3)]


def results_share_no_memory(compiler: Compiler) -> None:
    """A result is not an argument's memory, nor another result's."""
    executable = compiler.compile(_module(
        "  x = f32[2,3] parameter(0)\n  ROOT t = (f32[2,3], f32[2,3]) tuple(x, x)"
    ))  # fmt: skip
    x = X.copy()
    first, second = executable.execute([x])
    assert not np.shares_memory(first, x) and not np.shares_memory(first, second), "arrays share memory"
    x[:] = -1
    assert np.array_equal(first, X), "a result changed with an argument"


def wrong_arguments_are_refused(compiler: Compiler) -> None:
    """ExecutionError for a wrong number, dtype or dimension."""
    executable = compiler.compile(_sum())
    wrong: list[list[np.ndarray[Any, Any]]] = [[X], [X, Y, Y], [X, Y.astype(np.float64)], [X, Y.T]]
    for arguments in wrong:
        try:
            executable.execute(arguments)
        except ExecutionError:
            continue
        raise AssertionError(f"{len(arguments)} arrays, the last {arguments[-1].dtype}{arguments[-1].shape}: accepted")


def targets(compiler: Compiler) -> None:
    """The layouts of a target change no result. UnsupportedError for the name of no target."""
    product = "  x = f32[2,3] parameter(0)\n  y = f32[3,2] transpose(x), dimensions={1,0}\n" + (
        "  ROOT d = f32[2,2] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    )
    for target in TARGETS:
        (result,) = compiler.compile(_module(product), target=target).execute([X])
        assert np.allclose(result, X @ X.T), f"another result for target {target}"
    try:
        compiler.compile(_sum(), target="no such target")
    except UnsupportedError:
        return
    raise AssertionError("a target that does not exist is accepted")


def results_are_arguments_of_other_programs(compiler: Compiler) -> None:
    """One program's results are another one's arguments, without a copy through NumPy."""
    executable = compiler.compile(_sum())
    buffers = executable.call(_buffers(X, Y))
    for _ in range(3):
        buffers = executable.call(buffers)
    for buffer in buffers:
        buffer.block_until_ready()
        assert buffer.is_ready()
    assert np.array_equal(np.asarray(buffers[0]), 5 * X + 3 * Y), "a chain of four calls gives something else"


def calls_from_several_threads(compiler: Compiler) -> None:
    """One executable, many threads."""
    executable = compiler.compile(_sum())

    def work(k: int) -> bool:
        return bool(np.array_equal(executable.execute([X + k, Y])[0], X + k + Y))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(64))), "a call in one thread saw another one's arrays"


def donated_arguments(compiler: Compiler) -> None:
    """A donated parameter may be overwritten by `call`; `execute` leaves the caller's array alone."""
    module = _sum()
    module = replace(module, input_output_aliases=(InputOutputAlias((0,), 1),))
    executable = compiler.compile(module)
    y = Y.copy()
    assert np.array_equal(executable.execute([X, y])[0], X + Y) and np.array_equal(y, Y), "execute wrote to an argument"
    given = executable.call(_buffers(X, Y))
    again = executable.call([given[1], given[0]])  # both are of this backend's own memory now
    assert np.array_equal(np.asarray(again[0]), X + X + Y) and np.array_equal(np.asarray(again[1]), X)


def layouts_of_the_caller(compiler: Compiler) -> None:
    """The layouts in a module's entry do not change the arguments and results of `execute`."""
    lines = "  x = f32[2,3]{0,1} parameter(0)\n  ROOT r = f32[3,2]{0,1} transpose(x), dimensions={1,0}"
    (result,) = compiler.compile(_module(lines)).execute([X])
    assert np.array_equal(result, X.T)


def tuples_and_nothing(compiler: Compiler) -> None:
    """Parameters and results that are tuples, in tuples, empty, or arrays without elements."""
    lines = (
        "  p = (f32[2,3], (s32[0], f32[])) parameter(0)\n"
        "  a = f32[2,3] get-tuple-element(p), index=0\n"
        "  q = (s32[0], f32[]) get-tuple-element(p), index=1\n"
        "  e = s32[0] get-tuple-element(q), index=0\n"
        "  ROOT r = ((f32[2,3]), s32[0]) tuple(w, e)"
    ).replace("  ROOT", "  w = (f32[2,3]) tuple(a)\n  ROOT")
    results = compiler.compile(_module(lines)).execute([X, np.zeros(0, np.int32), np.float32(1)])  # type: ignore[list-item]
    assert np.array_equal(results[0], X) and results[1].shape == (0,)
    assert compiler.compile(_module("  ROOT t = () tuple()")).execute([]) == []


def descriptions(compiler: Compiler) -> None:
    """The compiler's descriptions of programs: passes, kernels, memory, text."""
    executable = compiler.compile(_sum())
    assert all(record.milliseconds >= 0 for record in executable.passes())
    kernels = executable.kernels()
    assert all(type(text) is str for text in kernels.values()), "kernels are texts by name"
    memory = executable.memory_analysis()
    assert memory.argument_size_in_bytes >= 48 and memory.output_size_in_bytes >= 48, "two arrays in, two arrays out"
    parse(executable.as_text())
    pipeline = compiler.pipeline()
    assert pipeline.run(_sum())[0].entry.root.shape == _sum().entry.root.shape
    try:
        pickle.dumps(executable)
    except TypeError:
        return
    raise AssertionError("an executable was pickled, though it belongs to this process")


PROTOCOL: tuple[Callable[[Compiler], None], ...] = (
    results_have_the_declared_types,
    results_share_no_memory,
    wrong_arguments_are_refused,
    targets,
    results_are_arguments_of_other_programs,
    calls_from_several_threads,
    donated_arguments,
    layouts_of_the_caller,
    tuples_and_nothing,
    descriptions,
)
