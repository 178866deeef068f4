"""ffi_call: a call of a registered target, as a primitive with one custom call as its meaning."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from ..debug.opaque_calls import VMAP_METHODS, in_batches, region_of, with_frontend_attributes
from ..hlo.aliases import OutputOperandAlias
from ..hlo.builder import make_computation, make_get_tuple_element, make_instruction, make_parameter, make_tuple
from ..hlo.custom_calls import registry_version
from ..hlo.ir import HloComputation
from ..hlo.layout import Layout as HloLayout
from ..hlo.mlir.python_values import write_values
from ..hlo.opcode import Opcode
from ..hlo.ops.custom_call import CustomCallApiVersion, CustomCallAttributes
from ..hlo.shape import Shape
from ..hlo.support.records import dataclass
from ..tracer.arrays.array import Array, as_value
from ..tracer.arrays.float0 import is_float0
from ..tracer.arrays.layouts import Layout
from ..tracer.arrays.overlay import storages
from ..tracer.aval import ShapedArray
from ..tracer.caches import on_clear
from ..tracer.core import Call, Primitive, Value, bind_call, bind_declared
from ..tracer.execution import run_call
from ..tracer.recording import trace_to_computation
from ..tracer.sharding.manual_axes import current_manual_axes
from ..tracer.token import Token, abstract_token

T = TypeVar("T")

VERSIONS = {
    1: CustomCallApiVersion.ORIGINAL,
    2: CustomCallApiVersion.STATUS_RETURNING,
    3: CustomCallApiVersion.STATUS_RETURNING_UNIFIED,
    4: CustomCallApiVersion.TYPED_FFI,
}
"""JAX's numbers of the versions of a custom call."""

Order = tuple[int, ...]
"""The dimensions of an array as they are in memory, the last one first, as HLO has them."""


@dataclass(frozen=True, slots=True)
class ForeignCall:
    """The parameters of a call, apart from its operands. Equal ones are the same call."""

    target: str
    results: tuple[ShapedArray, ...]
    operand_orders: tuple[Order, ...]
    result_orders: tuple[Order, ...]
    operand_tokens: tuple[int, ...] = ()
    """The numbers of the tokens among all operands, the smallest first. The types and orders above are of arrays."""
    result_tokens: tuple[int, ...] = ()
    aliases: tuple[tuple[int, int], ...] = ()
    """(operand, result)."""
    config: str = "{}"
    api_version: int = 4
    has_side_effect: bool = False
    vmap_method: str | None = None
    frontend: tuple[tuple[str, str], ...] = ()

    def bind(self, operands: Sequence[Value]) -> list[Value]:
        """The call with these arrays, in the current trace."""
        primitive = ACTING if self.has_side_effect else FFI_CALL
        marks = (*self.frontend, *(region_of(current_manual_axes()) if self.has_side_effect else ()))
        meaning: Any = self.meaning
        if self.operand_tokens or self.result_tokens:
            meaning = self._with_tokens([o.aval for o in operands])
        if marks:
            meaning = with_frontend_attributes(meaning, operands, marks)
        shown = (("target_name", self.target), ("attributes", self.config))
        return bind_call(Call(primitive, meaning, self, self.target, shown), operands)

    def meaning(self, values: Sequence[Value]) -> list[Value]:
        """The instruction. One result is an array, several are a tuple, and so is none."""
        attributes, shape = self._instruction([v.aval for v in values])
        found = bind_declared(Opcode.CUSTOM_CALL, values, attributes, shape)
        return found if isinstance(found, list) else [found]

    def computation(self, avals: Sequence[ShapedArray]) -> HloComputation:
        """The call as a computation of arrays of these types."""
        if self.operand_tokens or self.result_tokens:
            return self._with_tokens(avals)
        return trace_to_computation(self.meaning, avals, self.target).computation

    def _with_tokens(self, avals: Sequence[ShapedArray]) -> HloComputation:
        """The call of a handler that takes or gives tokens, which are no values of the traced program: those that it
        takes are made here, and order nothing."""
        parameters = [make_parameter(k, a.storage.hlo) for k, a in enumerate(avals)]
        attributes, shape = self._instruction([a.storage for a in avals])
        given = _with(parameters, self.operand_tokens, make_instruction(Opcode.AFTER_ALL))
        call = make_instruction(Opcode.CUSTOM_CALL, given, attributes, shape)
        results = [call] if shape.is_array else [
            make_get_tuple_element(call, k) for k, each in enumerate(shape.elements) if not each.is_token
        ]  # fmt: skip
        return make_computation(self.target, make_tuple(results), parameters)

    def _instruction(self, avals: Sequence[ShapedArray]) -> tuple[CustomCallAttributes, Shape]:
        """The attributes and the shape of the instruction for arrays of these types."""
        arrays = [_laid_out(a.storage, o) for a, o in zip(self.results, self.result_orders, strict=True)]
        shapes = _with(arrays, self.result_tokens, Shape.token())
        single = len(shapes) == 1
        given = [_laid_out(a, o) for a, o in zip(avals, self.operand_orders, strict=True)]
        attributes = CustomCallAttributes(
            self.target,
            self.config,
            VERSIONS[self.api_version],
            has_side_effect=self.has_side_effect,
            operand_layout_constraints=tuple(_with(given, self.operand_tokens, Shape.token())),
            output_to_operand_aliasing=tuple(
                [OutputOperandAlias(() if single else (r,), o, ()) for o, r in self.aliases]
            ),
        )
        return attributes, shapes[0] if single else Shape.tuple(shapes)

    def with_batch(self, size: int, operands: Sequence[Value]) -> ForeignCall:
        """The call of `operands` for a batch of `size`. A batch is the outermost dimension, in memory too."""
        pairs = zip(operands, self.operand_orders, strict=True)
        return replace(
            self,
            results=tuple([a.update(shape=(size, *a.shape)) for a in self.results]),
            operand_orders=tuple([_batched(o) if len(o) < v.aval.ndim else o for v, o in pairs]),
            result_orders=tuple([_batched(o) for o in self.result_orders]),
        )


def _with(arrays: Sequence[T], tokens: Sequence[int], token: T) -> list[T]:
    """A list with one item for each array, and `token` at the number of each token."""
    found = list(arrays)
    for number in tokens:
        found.insert(number, token)
    return found


def _laid_out(aval: ShapedArray, order: Order) -> Shape:
    return Shape.array(aval.hlo.element, aval.shape, HloLayout(order))


def _batched(order: Order) -> Order:
    return (*[d + 1 for d in order], 0)


def _evaluate(call: Call, arrays: Sequence[Array]) -> list[Array]:
    """Outside of jit: a program of the call alone, which equal calls share."""
    return list(run_call(_computation(call.params, tuple([a.aval for a in arrays]), registry_version()), arrays))


@functools.lru_cache(256)
def _computation(params: ForeignCall, avals: tuple[ShapedArray, ...], version: int) -> HloComputation:
    return params.computation(avals)


on_clear(_computation.cache_clear)

FFI_CALL = Primitive("ffi_call", evaluate=_evaluate)
"""It has no effect: it is dropped if nothing uses its results, and may be repeated."""
ACTING = Primitive("ffi_call", evaluate=_evaluate, is_exactly_once=True)


def _no_derivative(call: Call, *_: Any) -> Any:
    raise ValueError(
        f"The FFI call to `{call.params.target}` cannot be differentiated. You can use `hloom.custom_jvp` or "
        "`hloom.custom_vjp` to add support."
    )


def _batch(
    call: Call, operands: Sequence[Value], batched: Sequence[bool], axis: Any
) -> tuple[list[Value], list[bool]]:
    params: ForeignCall = call.params
    if params.vmap_method is None:
        raise NotImplementedError(
            "vmap is only supported for the ffi_call primitive when vmap_method is one of "
            f"{', '.join(map(repr, VMAP_METHODS))}. Got vmap_method=None."
        )

    def whole(operands: Sequence[Value]) -> list[Value]:
        return params.with_batch(axis.size, operands).bind(operands)

    results = in_batches(call, operands, batched, axis.size, params.vmap_method, whole)
    return results, [True] * len(results)


for _primitive in (FFI_CALL, ACTING):
    _primitive.def_jvp(_no_derivative)
    _primitive.def_transpose(_no_derivative)
    _primitive.def_batch(_batch)


# ---- public


def ffi_call(
    target_name: str,
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: Sequence[Any] | None = None,
    output_layouts: Any = None,
    input_output_aliases: Mapping[int, int] | None = None,
    custom_call_api_version: int = 4,
    legacy_backend_config: str | None = None,
) -> Callable[..., Any]:
    """A function of arrays that calls a registered target. JAX's `ffi.ffi_call`.

    target_name: a handler of XLA's typed FFI (`register_ffi_target`), a function of `hloom.register_custom_call`, or a
    target that hloom has itself (docs/custom_calls.md).
    result_shape_dtypes: an object with `shape` and `dtype`, or a sequence of these for several results; the result is
    then a sequence of the same kind. `abstract_token` stands for a token: handlers get it as a buffer without data, and
    Python functions as ().
    has_side_effect: the call runs, and runs once, even if its results are not used.
    vmap_method: the rule of `vmap`, as in `hloom.pure_callback`.
    input_layouts, output_layouts: how arrays are to be in memory: for each None for row-major, a `Layout`, or the
    dimensions from the outermost to the innermost one.
    input_output_aliases: {input: output}: both are one array in memory, and the target finds there the input.
    custom_call_api_version: 4 for the typed FFI; 1 for `void(void* out, void** in)`; 2 and 3 for functions that take a
    status, too (docs/ffi.md).
    legacy_backend_config: the text of a call of a version before 4.

    The function takes arrays, and attributes as keywords: bool, int (64 bits), float (64 bits), str, NumPy's numbers
    and arrays, and dictionaries of these with strings as keys. A Python function also gets lists, as tuples.

    ValueError if layouts or aliases do not fit. When it is compiled: UnsupportedError for a target that is not known.
    When it runs: JaxRuntimeError with the code and the message of a handler's error. It has no derivative: define one
    with `custom_jvp` or `custom_vjp`.

    >>> lu = ffi.ffi_call("lapack_sgetrf_ffi", [hloom.ShapeDtypeStruct((2, 2), "float32"),
    ...     hloom.ShapeDtypeStruct((2,), "int32"), hloom.ShapeDtypeStruct((), "int32")])
    >>> lu(jnp.array([[1.0, 2.0], [4.0, 4.0]]))[0]
    Array([[4.  , 4.  ],
           [0.25, 1.  ]], dtype=float32)
    """
    if vmap_method is not None and vmap_method not in VMAP_METHODS:
        allowed = [*VMAP_METHODS, None]
        raise ValueError(f"vmap_method must be one of the allowed methods {allowed}, but got: {vmap_method}")
    if custom_call_api_version not in VERSIONS:
        raise ValueError(f"custom_call_api_version must be 1 to 4, not {custom_call_api_version!r}")
    if custom_call_api_version == 4 and legacy_backend_config is not None:
        raise ValueError(
            "The use of the legacy_backend_config parameter requires custom_call_api_version < 4; got "
            f"{custom_call_api_version}."
        )
    several = isinstance(result_shape_dtypes, Sequence)
    promised = [_promised(k, r) for k, r in enumerate(result_shape_dtypes if several else [result_shape_dtypes])]
    given_layouts = output_layouts if several or output_layouts is None else [output_layouts]

    def call(*args: Any, **attributes: Any) -> Any:
        if custom_call_api_version < 4 and attributes:
            raise ValueError(
                "The use of ffi_call attributes requires a custom call API version of at least 4; got "
                f"api_version={custom_call_api_version}."
            )
        values = [a if isinstance(a, Token) else as_value(a) for a in args]
        orders = _orders("input", "input arguments", values, input_layouts)
        made = _orders("output", "outputs", promised, given_layouts)
        aliases = _aliases(input_output_aliases or {}, values, promised, orders, made)
        avals = [a for a in promised if a is not abstract_token]
        params = ForeignCall(
            target_name,
            tuple(avals),
            operand_orders=tuple([o for o, v in zip(orders, values) if not isinstance(v, Token)]),
            result_orders=tuple([o for o, a in zip(made, promised) if a is not abstract_token]),
            operand_tokens=tuple([k for k, v in enumerate(values) if isinstance(v, Token)]),
            result_tokens=tuple([k for k, a in enumerate(promised) if a is abstract_token]),
            aliases=tuple(aliases),
            config=legacy_backend_config or "" if custom_call_api_version < 4 else _config(attributes),
            api_version=custom_call_api_version,
            has_side_effect=has_side_effect,
            vmap_method=vmap_method,
        )
        found = iter(params.bind(storages(tuple([v for v in values if not isinstance(v, Token)]))))
        results = [Token() if a is abstract_token else next(found) for a in promised]
        if not several:
            return results[0]
        return tuple(results) if isinstance(result_shape_dtypes, tuple) else results

    return call


def _config(attributes: Mapping[str, Any]) -> str:
    """The attributes as text, sorted by name. Tangents of integers are arrays of False, as JAX writes them."""
    pairs = sorted(attributes.items())
    return write_values({key: np.zeros(value.shape, bool) if is_float0(value) else value for key, value in pairs})


def _promised(position: int, result: Any) -> Any:
    if result is abstract_token:
        return result
    if not hasattr(result, "shape") or not hasattr(result, "dtype"):
        raise ValueError(
            "All elements of result_shape_dtypes must have 'shape' and 'dtype' attributes. Got "
            f"{result} at position {position}."
        )
    return ShapedArray(tuple(result.shape), np.dtype(getattr(result, "stated_dtype", result.dtype)))


def _is_token(value: Any) -> bool:
    return value is abstract_token or isinstance(value, Token)


def _aval(value: Any) -> Any:
    return getattr(value, "aval", value)


def rank_of(value: Any) -> int:
    """The rank of a value or a type in memory."""
    return 0 if _is_token(value) else len(_aval(value).storage.shape)


def _orders(what: str, plural: str, values: Sequence[Any], layouts: Sequence[Any] | None) -> list[Order]:
    if layouts is None:
        layouts = [None] * len(values)
    if len(layouts) != len(values):
        raise ValueError(
            f"The number of {plural} ({len(values)}) must equal the number of {what} layouts ({len(layouts)})."
        )
    return [order_of(what, rank_of(v), layout) for v, layout in zip(values, layouts)]


def order_of(what: str, rank: int, layout: Any) -> Order:
    """The order that a layout of an array of this rank states: None, a `Layout`, or the dimensions from the outermost
    one."""
    if layout is None:
        return tuple(range(rank))[::-1]
    if isinstance(layout, Layout):
        if layout.tiling:
            raise ValueError("The FFI does not support layouts with tiling")
        layout = layout.major_to_minor
    order = tuple([int(d) for d in layout])[::-1]
    if sorted(order) != list(range(rank)):
        raise ValueError(f"ffi_call: the {what} layout {tuple(layout)} is none of {rank} dimensions")
    return order


def _aliases(
    wanted: Mapping[int, int], values: Sequence[Any], promised: Sequence[Any], orders: Sequence[Order],
    made: Sequence[Order],
) -> list[tuple[int, int]]:  # fmt: skip
    found = []
    for given, result in sorted(wanted.items()):
        i, o = int(given), int(result)
        start = f"input_output_aliases contains the mapping '{i}:{o}'"
        if not 0 <= i < len(values):
            raise ValueError(f"{start} with input index {i} outside the range [0, {len(values)}).")
        if not 0 <= o < len(promised):
            raise ValueError(f"{start} with output index {o} outside the range [0, {len(promised)}).")
        one, other = _aval(values[i]), _aval(promised[o])
        if _is_token(one) and _is_token(other):
            continue
        if _is_token(one) or _is_token(other) or (one.shape, one.dtype) != (other.shape, other.dtype):
            raise ValueError(
                f"{start} referring to an input with abstract value {one} and an output with a different abstract "
                f"value {other}."
            )
        if orders[i] != made[o]:
            raise ValueError(
                f"{start} referring to an input with layout {orders[i]} and an output with a different layout "
                f"{made[o]}."
            )
        found.append((i, o))
    return found
