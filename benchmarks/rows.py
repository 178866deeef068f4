"""Cases of gather, scatter, sort and topk: hloom runs them as HLO text, in the form that JAX prints."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hloom.hlo.backend import get_compiler
from hloom.hlo.host_buffers import HostBuffer

from hloom import hlo

from .harness import FROM_HLO, Case, Program

RNG = np.random.default_rng(2)
COUNT = 1_000_000

NDArray = np.ndarray[Any, Any]

LESS = """less {{
  x = f32[] parameter(0)
  y = f32[] parameter(1){payload}
  zero = f32[] constant(0)
  nan = f32[] constant(nan)
  x_is_zero = pred[] compare(x, zero), direction=EQ
  x_or_zero = f32[] select(x_is_zero, zero, x)
  x_is_nan = pred[] compare(x, x), direction=NE
  x_key = f32[] select(x_is_nan, nan, x_or_zero)
  y_is_zero = pred[] compare(y, zero), direction=EQ
  y_or_zero = f32[] select(y_is_zero, zero, y)
  y_is_nan = pred[] compare(y, y), direction=NE
  y_key = f32[] select(y_is_nan, nan, y_or_zero)
  ROOT less = pred[] compare(x_key, y_key), direction=LT, type=TOTALORDER
}}
"""
PAYLOAD = "\n  i = s32[] parameter(2)\n  j = s32[] parameter(3)"


def in_hloom(text: str, arguments: Sequence[NDArray]) -> Callable[[], Program]:
    """The work of a jitted function's dispatch: buffers in, buffers out."""

    def make() -> Program:
        executable = get_compiler().compile(hlo.parse(text))
        parameters = executable.module.entry.parameters
        buffers: list[Any] = [HostBuffer(a, p.shape) for a, p in zip(arguments, parameters, strict=True)]
        return Program(lambda: executable.call(buffers))

    return make


def in_jax(function: Callable[..., Callable[..., Any]], arguments: Sequence[NDArray]) -> Callable[[], Program]:
    """`function(jax, jax.numpy)` returns the function to jit."""

    def make() -> Program:
        jax = importlib.import_module("jax")
        jitted = jax.jit(function(jax, importlib.import_module("jax.numpy")))
        own = [jax.numpy.asarray(a) for a in arguments]
        return Program(lambda: jitted(*own), jax.block_until_ready)

    return make


def _case(
    name: str, title: str, text: str, arguments: Sequence[NDArray], in_numpy: Callable[[], Any],
    jax: Callable[..., Callable[..., Any]],
) -> Case:  # fmt: skip
    programs = {
        "hloom": in_hloom(text, arguments), "jax": in_jax(jax, arguments), "numpy": lambda: Program(in_numpy),
    }  # fmt: skip
    return Case(name, title + FROM_HLO, programs)


def gather() -> Case:
    x = RNG.standard_normal(COUNT).astype(np.float32)
    indices = RNG.integers(0, COUNT, COUNT).astype(np.int32)
    text = f"""HloModule gather
ENTRY main {{
  x = f32[{COUNT}] parameter(0)
  i = s32[{COUNT}] parameter(1)
  vectors = s32[{COUNT},1] reshape(i)
  ROOT r = f32[{COUNT}] gather(x, vectors), offset_dims={{}}, collapsed_slice_dims={{0}}, start_index_map={{0}},
      index_vector_dim=1, slice_sizes={{1}}
}}"""
    return _case(
        "gather", "gather of 1M of 1M f32", text, [x, indices], lambda: x.take(indices, mode="clip"),
        lambda jax, jnp: lambda x, i: x.at[i].get(mode="clip"),
    )  # fmt: skip


def scatter_add() -> Case:
    updates = RNG.standard_normal(COUNT).astype(np.float32)
    indices = RNG.integers(0, 1000, COUNT).astype(np.int32)
    zeros = np.zeros(1000, np.float32)
    text = f"""HloModule scatter
add {{
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT sum = f32[] add(x, y)
}}
ENTRY main {{
  zeros = f32[1000] parameter(0)
  i = s32[{COUNT}] parameter(1)
  updates = f32[{COUNT}] parameter(2)
  vectors = s32[{COUNT},1] reshape(i)
  ROOT r = f32[1000] scatter(zeros, vectors, updates), update_window_dims={{}}, inserted_window_dims={{0}},
      scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=add
}}"""

    def in_numpy() -> NDArray:
        result = zeros.copy()
        np.add.at(result, indices, updates)
        return result

    return _case(
        "scatter-add", "scatter-add of 1M f32 into 1000", text, [zeros, indices, updates], in_numpy,
        lambda jax, jnp: lambda z, i, u: z.at[i].add(u),
    )  # fmt: skip


def _sort_text(dimensions: str, axis: int) -> str:
    return f"""HloModule sort
{LESS.format(payload="")}
ENTRY main {{
  x = f32[{dimensions}] parameter(0)
  ROOT r = f32[{dimensions}] sort(x), dimensions={{{axis}}}, is_stable=true, to_apply=less
}}"""


def sort() -> Case:
    x = RNG.standard_normal(COUNT).astype(np.float32)
    return _case(
        "sort", "sort of 1M f32", _sort_text(str(COUNT), 0), [x], lambda: np.sort(x),
        lambda jax, jnp: lambda x: jnp.sort(x),
    )


def sort_rows() -> Case:
    x = RNG.standard_normal((1024, 1024)).astype(np.float32)
    return _case(
        "sort-rows", "sort of each row of 1024x1024 f32", _sort_text("1024,1024", 1), [x], lambda: np.sort(x),
        lambda jax, jnp: lambda x: jnp.sort(x),
    )  # fmt: skip


def argsort() -> Case:
    x = RNG.permutation(COUNT).astype(np.float32)
    text = f"""HloModule argsort
{LESS.format(payload=PAYLOAD)}
ENTRY main {{
  x = f32[{COUNT}] parameter(0)
  i = s32[{COUNT}] iota(), iota_dimension=0
  both = (f32[{COUNT}], s32[{COUNT}]) sort(x, i), dimensions={{0}}, is_stable=true, to_apply=less
  ROOT r = s32[{COUNT}] get-tuple-element(both), index=1
}}"""
    return _case(
        "argsort", "argsort of 1M f32", text, [x], lambda: np.argsort(x), lambda jax, jnp: lambda x: jnp.argsort(x)
    )


def top_k() -> Case:
    x = RNG.permutation(1024 * 1024).astype(np.float32).reshape(1024, 1024)
    text = """HloModule top_k
ENTRY main {
  x = f32[1024,1024] parameter(0)
  ROOT r = (f32[1024,10], s32[1024,10]) topk(x), k=10, largest=true
}"""

    def in_numpy() -> tuple[NDArray, NDArray]:
        some = np.argpartition(x, -10)[:, -10:]
        order = np.argsort(-np.take_along_axis(x, some, 1))
        places = np.take_along_axis(some, order, 1)
        return np.take_along_axis(x, places, 1), places

    return _case(
        "top-k", "top 10 of each row of 1024x1024 f32", text, [x], in_numpy,
        lambda jax, jnp: lambda x: jax.lax.top_k(x, 10),
    )


CASES: dict[str, Callable[[], Case]] = {
    "gather": gather,
    "scatter-add": scatter_add,
    "sort": sort,
    "sort-rows": sort_rows,
    "argsort": argsort,
    "top-k": top_k,
}
