"""Calls of Python functions from programs: `pure_callback`, `io_callback`, `debug.callback`.

Each is a primitive with one custom call of XLA's target for such functions as its meaning. The instruction holds the
function (`CustomCallAttributes.function`), so a function lives as long as the programs that call it. A program runs its
effects in the order of the Python program: `ordered` changes nothing that is computed.

The functions get arrays that they may keep, and run outside of every trace: they may call jitted functions. Their
exceptions reach the caller of the program unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..autodiff.tangents import Operand, Tangent, Zero
from ..hlo.custom_call_targets.table import CALLBACK_TARGET
from ..hlo.opcode import Opcode
from ..hlo.ops.custom_call import CustomCallApiVersion, CustomCallAttributes
from ..hlo.shape import Shape
from ..hlo.support.records import dataclass
from ..tracer.arrays.array import Array
from ..tracer.arrays.extended import ExtendedDType
from ..tracer.aval import ShapedArray
from ..tracer.core import Call, Primitive, Value, bind_call, bind_declared
from ..tracer.dtypes import canonical_dtype
from ..tracer.errors import OperandError
from ..tracer.sharding.manual_axes import current_manual_axes
from ..tracer.source import function_line, user_line
from ..tracer.trees import tree
from .host import HostCallback, given, strong_array
from .opaque_calls import VMAP_METHODS, in_batches, one_by_one, region_of, with_frontend_attributes

# ---- one use


@dataclass(frozen=True, slots=True)
class Callback:
    """The parameters of a call of one of the primitives below."""

    host: HostCallback
    ordered: bool = False
    vmap_method: str | None = None

    def bind(self, primitive: Primitive, operands: Sequence[Value]) -> list[Value]:
        """The call, in the current trace."""

        def meaning(values: list[Value]) -> list[Value]:
            return _custom_call(self.host, primitive is not PURE, values)

        manual = current_manual_axes()
        what = meaning if manual is None else with_frontend_attributes(meaning, operands, region_of(manual))
        return bind_call(Call(primitive, what, self, primitive.name, (("name", self.host.name),)), operands)


def _custom_call(host: HostCallback, acts: bool, values: Sequence[Value]) -> list[Value]:
    """The instruction, as XLA writes it: one result is an array, several are a tuple, and so is none."""
    shapes = [a.hlo for a in host.results]
    attributes = CustomCallAttributes(
        CALLBACK_TARGET,
        f"{{index = {host.index} : ui64}}",
        CustomCallApiVersion.TYPED_FFI,
        has_side_effect=acts,
        function=host,
    )
    shape = shapes[0] if len(shapes) == 1 else Shape.tuple(shapes)
    result = bind_declared(Opcode.CUSTOM_CALL, values, attributes, shape)
    return result if isinstance(result, list) else [result]


def _evaluate(call: Call, arrays: Sequence[Array]) -> list[Array]:
    """Outside of jit the function is called at once, with strongly typed arrays."""
    host: HostCallback = call.params.host
    return host.run([strong_array(x._view, d) for x, d in zip(arrays, host.given.dtypes, strict=True)])


def _evaluate_debug(call: Call, arrays: Sequence[Array]) -> list[Array]:
    """As `_evaluate`; the function sees the very arrays, with their weak types."""
    host: HostCallback = call.params.host
    pairs = zip(arrays, host.given.dtypes, strict=True)
    return host.run([x if d is None else strong_array(x._view, d) for x, d in pairs])


# A linear program keeps them as calls: their functions may be called with tangents.

PURE = Primitive("pure_callback", evaluate=_evaluate, is_linear=True)
"""It has no effect: it is dropped if nothing uses its results, and may be repeated."""

IO = Primitive("io_callback", evaluate=_evaluate, is_linear=True, is_exactly_once=True)

DEBUG = Primitive("debug_callback", evaluate=_evaluate_debug, is_linear=True)

PRINT = Primitive("debug_print", evaluate=_evaluate_debug, is_linear=True)


# ---- derivatives: the primals of a debug callback act, the others have none


@PRINT.def_jvp
@DEBUG.def_jvp
def _debug_jvp(
    call: Call, primals: Sequence[Value], tangents: Sequence[Tangent]
) -> tuple[list[Value], list[Tangent]]:
    return bind_call(call, primals), []


@PRINT.def_transpose
@DEBUG.def_transpose
def _debug_transpose(
    call: Call, cts: Sequence[Value | None], operands: Sequence[Operand]
) -> Sequence[Value | None]:
    return [None for _ in operands]


def _no_derivative(call: Call, primals: Sequence[Value], tangents: Sequence[Tangent]) -> Any:
    moving = all(isinstance(t, Zero) for t in tangents)
    assert not moving, "the trace needs a derivative of a value that does not move"
    what = "Pure callbacks" if call.primitive is PURE else "IO callbacks"
    raise ValueError(
        f"{what} do not support JVP. Please use `hloom.custom_jvp` to use callbacks while taking gradients: the "
        f"derivative of {function_line(call.params.host.function)} is not known.\n  called at {call.params.host.line}"
    )


def _no_transpose(call: Call, cts: Sequence[Value | None], operands: Sequence[Operand]) -> Any:
    what = "Pure callbacks" if call.primitive is PURE else "IO callbacks"
    raise ValueError(
        f"{what} do not support transpose. Please use `hloom.custom_vjp` to use callbacks while taking gradients: "
        f"{function_line(call.params.host.function)} was called with tangents.\n  called at {call.params.host.line}"
    )


for _primitive in (PURE, IO):
    _primitive.def_jvp(_no_derivative)
    _primitive.def_transpose(_no_transpose)


# ---- batches


def _batch_debug(
    call: Call, operands: Sequence[Value], batched: Sequence[bool], axis: Any
) -> tuple[list[Value], list[bool]]:
    if all(isinstance(o, Array) for o in operands):  # outside of jit nothing needs to be compiled
        for k in range(axis.size):
            bind_call(call, [_element(o, k) if b else o for o, b in zip(operands, batched, strict=True)])
    else:
        one_by_one(call, operands, batched)
    return [], []


def _element(x: Any, k: int) -> Array:
    return Array(ShapedArray(x.aval.shape[1:], x.aval.dtype, x.aval.weak_type), x._view[k])


def _batch_io(
    call: Call, operands: Sequence[Value], batched: Sequence[bool], axis: Any
) -> tuple[list[Value], list[bool]]:
    if call.params.ordered:
        raise ValueError(
            "Cannot `vmap` ordered IO callback: the order of the batch's elements is not defined. Use ordered=False, "
            f"or hloom.lax.map.\n  called at {call.params.host.line}"
        )
    results = one_by_one(call, operands, batched)
    return results, [True] * len(results)


def _batch_pure(
    call: Call, operands: Sequence[Value], batched: Sequence[bool], axis: Any
) -> tuple[list[Value], list[bool]]:
    callback: Callback = call.params
    if callback.vmap_method is None:
        raise NotImplementedError(
            f"vmap is only supported for the pure_callback primitive when vmap_method is one of "
            f"{', '.join(map(repr, VMAP_METHODS))}. Got vmap_method=None.\n  called at {callback.host.line}\n"
            "  'sequential' calls the function once for each element; with 'expand_dims' and 'broadcast_all' it gets "
            "all elements at once."
        )

    def whole(operands: Sequence[Value]) -> list[Value]:
        return replace(callback, host=callback.host.with_batch(axis.size)).bind(PURE, operands)

    results = in_batches(call, operands, batched, axis.size, callback.vmap_method, whole)
    return results, [True] * len(results)


PURE.batch, IO.batch, DEBUG.batch, PRINT.batch = _batch_pure, _batch_io, _batch_debug, _batch_debug


# ---- public


def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """The result of `callback(*args, **kwargs)`, also within jit, scan, cond or vmap. JAX's `pure_callback`.

    callback: a function with a result that depends on nothing but its arguments: it may be called again, or not at all
    if the program does not need the result. It gets read-only arrays, which it may keep.
    result_shape_dtypes: the result of the function: a tree of objects with `shape` and `dtype`, as ShapeDtypeStruct
    has.
    vmap_method: the rule of `vmap`. "sequential" (or "sequential_unrolled"): a call for each element. The others make
    one call with a further dimension in front of all batched arguments and results; the arguments without a batch have
    size 1 there ("expand_dims"), are repeated ("broadcast_all"), or stay as they are ("legacy_vectorized"). None: an
    error.
    sharding: accepted: a program over several devices calls the function once, with whole arrays; within `shard_map`
    each device calls it with its parts (the first device does along axes that the mapped function does not know).

    It has no derivative: define one with `custom_jvp`. CustomCallError if it returns something else than it promised.
    An exception in it is raised by the jitted function.

    >>> import numpy as np
    >>> import hloom, hloom.numpy as jnp
    >>> @hloom.jit
    ... def sorted_by_numpy(x):
    ...     return hloom.pure_callback(np.sort, hloom.ShapeDtypeStruct(x.shape, x.dtype), x)
    >>> sorted_by_numpy(jnp.array([3, 1, 2]))
    Array([1, 2, 3], dtype=int32)
    """
    if vmap_method is not None and vmap_method not in VMAP_METHODS:
        raise ValueError(
            f"vmap_method must be one of the allowed methods {[*VMAP_METHODS, None]}, but got: {vmap_method!r}"
        )
    return _call(PURE, "pure_callback", callback, result_shape_dtypes, args, kwargs, vmap_method=vmap_method)


def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """As `pure_callback`, for a function that acts on the world: it is called exactly once, even if its result is not
    used, and in the order of the program. JAX's `io_callback`.

    ordered: accepted; all effects have their order. With `ordered=True` it cannot be batched by `vmap`; else `vmap`
    calls it for each element.

    >>> import hloom
    >>> import numpy as np
    >>> from hloom import experimental
    >>> readings = iter([20.5, 21.0])
    >>> read = lambda: np.float32(next(readings))
    >>> hloom.jit(lambda: experimental.io_callback(read, hloom.ShapeDtypeStruct((), "float32")))()
    Array(20.5, dtype=float32)
    """
    return _call(IO, "io_callback", callback, result_shape_dtypes, args, kwargs, ordered=ordered)


def effects_barrier() -> None:
    """Wait until all callbacks have run. They have when a call returns, so there is nothing to wait for.

    >>> hloom.jit(lambda x: hloom.debug.print("x = {}", x))(3)
    x = 3
    >>> hloom.effects_barrier()
    """


def debug_callback(
    callback: Callable[..., Any] | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> Any:
    """Call `callback(*args, **kwargs)` for its effect when the program comes to this point. JAX's `debug.callback`.

    Its result is not used. Arguments that are no arrays are handed over as they are. Under `jvp` and `grad` it gets
    primal values; under `vmap` it is called for each element. Without a function, it returns one that takes the
    function and its arguments: ``callback(ordered=True)(f, x)``.

    ordered, partitioned: accepted; effects have the order of the program. Over several devices it is called once, with
    whole arrays, and within `shard_map` by each, as `pure_callback` is.

    >>> import hloom
    >>> from hloom import debug, numpy as jnp
    >>> seen = []
    >>> hloom.jit(lambda x: debug.callback(lambda v: seen.append(float(v)), x.sum()))(jnp.arange(3.0))
    >>> hloom.effects_barrier()
    >>> seen
    [3.0]
    """

    def call(callback: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        check_callable("debug.callback", callback)
        call_debug("debug.callback", callback, args, kwargs, ordered=ordered)

    if callback is None:
        if args or kwargs:
            raise TypeError(
                f"debug_callback received unexpected arguments in the two-call form: {args} {kwargs}. Without a "
                "function it takes options only; arguments come with the function, in the second call."
            )
        return call
    call(callback, *args, **kwargs)
    return None


def call_debug(
    what: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
    primitive: Primitive = DEBUG, ordered: bool = False,
) -> None:  # fmt: skip
    """Call `function` when the program comes to this point."""
    taken, values = given(args, kwargs, static=True)
    Callback(HostCallback(what, function, user_line(), taken, None, ()), ordered).bind(primitive, values)


def check_callable(what: str, function: object) -> None:
    """TypeError unless `function` is one."""
    if not callable(function):
        raise TypeError(
            f"first argument to hloom.{what} must be callable, but got an object of type {type(function).__name__}"
        )


def _call(
    primitive: Primitive, what: str, function: Callable[..., Any], results: Any, args: tuple[Any, ...],
    kwargs: dict[str, Any], **options: Any,
) -> Any:  # fmt: skip
    check_callable(what, function)
    taken, values = given(args, kwargs)
    leaves, out_tree = tree.flatten(results)
    avals = tuple([_promised(what, leaf) for leaf in leaves])
    host = HostCallback(what, function, user_line(), taken, out_tree, avals)
    return tree.unflatten(out_tree, Callback(host, **options).bind(primitive, values))


def _promised(what: str, leaf: Any) -> ShapedArray:
    """The type that a leaf of `result_shape_dtypes` promises."""
    if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
        raise TypeError(
            f"{what}: result_shape_dtypes must be a tree of objects with a shape and a dtype (ShapeDtypeStruct), but "
            f"has a {type(leaf).__name__}"
        )
    if isinstance(leaf.dtype, ExtendedDType):
        raise OperandError(f"{what}: a function cannot return an array of {leaf.dtype}")
    dtype = np.dtype(leaf.dtype)
    if canonical_dtype(dtype) != dtype:
        raise ValueError(
            f"result_shape_dtypes cannot specify 64-bit types when `jax_enable_x64` is disabled, as {dtype} here"
        )
    return ShapedArray(tuple(leaf.shape), dtype)
