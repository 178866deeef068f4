"""`pallas_call`: a kernel on references to blocks of arrays becomes a function of arrays.

The call is checked and traced here; `grids.py` runs the kernel on its grid. Source of the names, the meanings and the
messages: the documentation of jax.experimental.pallas, and JAX's interpreter of Pallas kernels.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...hlo.builder import make_module
from ...hlo.errors import UnsupportedError
from ...hlo.support.records import dataclass
from ...tracer.arrays.array import as_value
from ...tracer.aval import ShapedArray
from ...tracer.core import Value
from ...tracer.jit import jit
from ...tracer.scopes import named_scope
from ...tracer.settings.config import disable_jit
from ...tracer.source import function_line
from ...tracer.trees import tree
from ...tracer.trees.nodes import keystr
from .block_spec import GridSpec, aval_of_result, no_block_spec
from .grids import Grid
from .mapping import mapping_of
from .traced_kernels import Arguments, trace_kernel


def pallas_call(
    kernel: Callable[..., None],
    out_shape: Any,
    *,
    grid_spec: GridSpec | None = None,
    grid: Any = (),
    in_specs: Any = no_block_spec,
    out_specs: Any = no_block_spec,
    scratch_shapes: Any = (),
    input_output_aliases: Mapping[int, int] = {},
    debug: bool = False,
    interpret: Any = False,
    name: str | None = None,
    compiler_params: Any = None,
    cost_estimate: Any = None,
    metadata: dict[str, str] | None = None,
) -> Callable[..., Any]:
    """The function of arrays that runs `kernel` at each point of a grid. JAX's `pallas_call`.

    Args:
      kernel: a function of references: to blocks of the arguments, to blocks of the results, to scratch memory.
      out_shape: the types of the results: a pytree of objects with `shape` and `dtype`.
      grid: the number of points along each axis, or pairs of a name and a number. The last axis is the fastest. A
        number may be traced.
      in_specs, out_specs: pytrees of `BlockSpec` for the arguments and the results; by default blocks are whole arrays.
      scratch_shapes: memory that the kernel's calls share, as `pl.ANY(shape, dtype)`; a dictionary is for keywords.
      grid_spec: all these as one `GridSpec`.
      input_output_aliases: which argument (by its number among the leaves) is in a result before the kernel runs.
      debug: print the traced kernel as HLO.
      interpret: accepted: kernels are compiled, with the results of JAX's interpreter.
      name: for the operations of the program.
      compiler_params, cost_estimate, metadata: accepted; they are for other devices.

    Elements of blocks beyond an array's border are NaN (the least integer, False), as are elements of results that no
    point has written; what is written beyond the border is lost.

    Raises (when called):
      ValueError: the specifications, the arguments and the kernel do not fit, with JAX's messages.
      UnsupportedError: what is for TPUs and GPUs, such as semaphores.

    >>> from hloom.experimental import pallas as pl
    >>> def add(x_ref, y_ref, o_ref):
    ...     o_ref[...] = x_ref[...] + y_ref[...]
    >>> x = jnp.arange(8)
    >>> block = pl.BlockSpec((4,), lambda i: (i,))
    >>> pl.pallas_call(add, x, grid=(2,), in_specs=[block, block], out_specs=block)(x, x)
    Array([ 0,  2,  4,  6,  8, 10, 12, 14], dtype=int32)
    """
    if not callable(kernel):
        raise TypeError(f"pallas_call takes a kernel, a function of references, not {kernel!r}")
    if grid_spec is None:
        grid_spec = GridSpec(grid, in_specs, out_specs, scratch_shapes)
    else:
        given = {"grid": (grid, ()), "in_specs": (in_specs, no_block_spec), "out_specs": (out_specs, no_block_spec)}
        for what, (value, default) in {**given, "scratch_shapes": (scratch_shapes, ())}.items():
            if value is not default and value != default:
                shown = "no_block_spec" if default is no_block_spec else "()"
                raise ValueError(f"If `grid_spec` is specified, then `{what}` must be `{shown}`. It is {value}")
    result = tuple(out_shape) if isinstance(out_shape, list) else out_shape
    return call_kernel(kernel, kernel, result, grid_spec, dict(input_output_aliases), name, debug)


def call_kernel(
    kernel: Callable[..., None], named: Any, out_shape: Any, spec: GridSpec, aliases: dict[int, int],
    name: str | None, debug: bool,
) -> Callable[..., Any]:  # fmt: skip
    """The function of arrays that runs a kernel. named: the user's function, for messages. See `pallas_call`."""
    return _PallasCall(kernel, named, out_shape, spec, aliases, name, debug).function()


@dataclass(frozen=True, slots=True, eq=False)
class _PallasCall:
    """A kernel with its specifications."""

    kernel: Callable[..., None]
    named: Any
    """The user's function."""
    out_shape: Any
    spec: GridSpec
    aliases: dict[int, int]
    name: str | None
    debug: bool

    @property
    def described(self) -> str:
        """The kernel's name and line, for messages."""
        line = function_line(self.named)
        return line if self.name is None else f"{self.name} for kernel function {line}"

    def function(self) -> Callable[..., Any]:
        """The function of arrays."""
        dynamic = [size for size in self.spec.grid if not isinstance(size, int)]

        def run(dynamic: list[Value], args: tuple[Any, ...]) -> Any:
            with contextlib.nullcontext() if self.name is None else named_scope(self.name):
                return self._run(dynamic, args)

        run.__name__ = run.__qualname__ = self.name or str(getattr(self.named, "__name__", "kernel"))
        jitted = jit(run, inline=True)

        def wrapped(*args: Any) -> Any:
            with disable_jit(False):
                return jitted(dynamic, args)

        wrapped.__name__ = wrapped.__qualname__ = run.__name__
        return wrapped

    def _run(self, dynamic: Sequence[Value], args: tuple[Any, ...]) -> Any:
        spec, count = self.spec, self.spec.num_scalar_prefetch
        if count > len(args):
            raise ValueError(
                f"The grid of the pallas_call {self.described} prefetches {count} arguments, but it is called with "
                f"{len(args)}."
            )
        grid = [size if isinstance(size, int) else None for size in spec.grid]
        prefetched, prefetched_tree = tree.flatten(tuple(args[:count]))
        prefetched = [as_value(v) for v in prefetched]
        with_paths, in_tree = tree.flatten_with_path(tuple(args[count:]))
        inputs = [as_value(v) for _, v in with_paths]
        paths = [path for path, _ in tree.leaves_with_path(tuple(args))]
        results, out_tree = tree.flatten_with_path(self.out_shape)
        out_avals = [aval_of_result(v) for _, v in results]
        in_specs = _specs("`in_specs`", spec.in_specs, "`inputs`", in_tree)
        out_specs = _specs("`out_specs`", spec.out_specs, "`out_shape`", out_tree)
        in_avals = [v.aval.with_weak_type(False) for v in inputs]
        kinds = [v.aval.with_weak_type(False) for v in prefetched]
        origins = [f"args{keystr(path)}" for path in paths[len(prefetched) :]]
        origins += [f"outputs{keystr(path)}" for path, _ in results]
        scratch, scratch_tree = tree.flatten(spec.scratch_shapes)
        mappings = [
            mapping_of(s, origin, aval, grid, kinds, prefetched_tree)
            for s, origin, aval in zip((*in_specs, *out_specs), origins, (*in_avals, *out_avals), strict=True)
        ]
        blocks = [m.block for m in mappings]
        arguments = Arguments(
            (kinds, prefetched_tree), (blocks[: len(inputs)], in_tree), (blocks[len(inputs) :], out_tree),
            ([_scratch(s) for s in scratch], scratch_tree),
        )  # fmt: skip
        traced = trace_kernel(self.kernel, self.described, arguments, grid, spec.grid_names)
        self._check_aliases([*kinds, *in_avals], paths, out_avals, [path for path, _ in results])
        if self.debug:
            text = make_module("kernel", traced.computation).to_text(metadata=False)
            print(f"The kernel of pallas_call {self.described}:\n{text}")
        given: list[Value | None] = [*inputs, *[None] * len(results)]
        for argument, k in self.aliases.items():
            given[len(inputs) + k] = [*prefetched, *inputs][argument]
        rest = iter(dynamic)
        sizes = [n if n is not None else next(rest) for n in grid]
        found = Grid(traced, tuple(grid), tuple(mappings)).run(sizes, prefetched, given)
        return tree.unflatten(out_tree, found[len(inputs) :])

    def _check_aliases(
        self, given: Sequence[ShapedArray], in_paths: Sequence[Any], found: Sequence[ShapedArray], paths: Sequence[Any]
    ) -> None:
        if len({*self.aliases.values()}) != len(self.aliases):
            raise ValueError(f"input_output_aliases has several inputs for one output: {self.aliases}")
        for i, o in self.aliases.items():
            for what, number, count in (("input", i, len(given)), ("output", o, len(found))):
                if number not in range(count):
                    raise ValueError(
                        f"input_output_aliases contains the mapping '{i}:{o}' with {what} index {number} outside the "
                        f"range [0, {count})"
                    )
            if given[i].shape != found[o].shape or given[i].dtype != found[o].dtype:
                raise ValueError(
                    f"input_output_aliases contains the mapping '{i}:{o}' referring to input{keystr(in_paths[i])} with "
                    f"abstract value {given[i].str_short()} and to output{keystr(paths[o])} with a different abstract "
                    f"value {found[o].str_short()}."
                )


def _scratch(kind: Any) -> ShapedArray:
    if isinstance(kind, type) or not (hasattr(kind, "shape") and hasattr(kind, "dtype")):
        raise UnsupportedError(f"scratch memory has a shape and a dtype, as pl.ANY(shape, dtype), not {kind!r}")
    return aval_of_result(kind)


def _specs(what: str, given: Any, other: str, structure: Any) -> list[Any]:
    """The specification of each leaf. ValueError if the trees differ."""
    if given is no_block_spec:
        return [no_block_spec] * structure.num_leaves
    specs, found = tree.flatten(given)
    if found != structure:
        errors = list(_differences("", found, structure))
        lines = [f"    * {f'at {path}, ' if path else ''}{what} is a {one} but {other} is a {two}, so {why}"
                 for path, one, two, why in errors]  # fmt: skip
        raise ValueError(
            "\n".join([
                f"Pytree for {what} and {other} do not match. There are {len(errors)} mismatches, including:", *lines,
            ])
        )  # fmt: skip
    return specs


def _differences(path: str, one: Any, two: Any) -> Any:
    """Where two structures of trees differ: the path, both nodes, and the difference."""
    data = one.node_data(), two.node_data()
    if one == two:
        return
    if data[0] is None or data[1] is None:
        shown = ["pytree leaf" if d is None else f"pytree of {d[0]}" for d in data]
        yield path, shown[0], f"{shown[1]}", "one of them has more below"
        return
    if data[0][0] is not data[1][0]:
        yield path, *[f"{d[0]}" for d in data], "their Python types differ"
        return
    kind, children = data[0][0].__name__, (one.children(), two.children())
    if len(children[0]) != len(children[1]):
        yield path, *[f"{kind} of length {len(c)}" for c in children], "the lengths do not match"
        return
    if data[0] != data[1]:
        yield path, *[f"{kind} with {d[1]}" for d in data], "the keys differ"
        return
    names = data[0][1] if kind == "dict" else range(len(children[0]))
    for name, a, b in zip(names, *children, strict=True):
        yield from _differences(f"{path}[{name!r}]", a, b)
