"""The registry of custom calls: which function each name calls. Public as `hloom.register_custom_call` and its kin.

    hloom.register_custom_call("scaled_add", lambda x, y, scale: x + scale * y)

A Python function is called with NumPy arrays, one for each operand, and the call's backend_config as keywords. A
function that Numba compiled is called in the same way. A `numba.cfunc` or a ctypes function is called natively, as the
section "CustomCall" of the operation semantics says: ``void target(void* out, void** in)``. A handler of XLA's typed
FFI (`ffi/`) is called natively, too.

Targets that JAX and XLA use on the CPU need no registration: see `custom_call_targets/`. A compiled program keeps the
function that it was compiled with.
"""

from __future__ import annotations

import ctypes
import difflib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

import numpy as np

from .custom_call_targets.call import Call, Run, Value
from .custom_call_targets.table import BUILT_IN, UNAVAILABLE, UNWRITTEN
from .errors import CustomCallError, UnsupportedError
from .ops.custom_call import CustomCallApiVersion, CustomCallAttributes
from .shape import Shape
from .support.forking import Order, fork_lock
from .support.loading import load
from .support.memory_pressure import allocating
from .support.native_function import NativeFunction
from .support.permutations import inverse
from .support.value_tree import leaves_of, value_of

if TYPE_CHECKING:
    from .ffi.plans import TypedCall

CustomCallFunction: TypeAlias = Callable[..., Any]


class HostFunction(Protocol):
    """A Python function that an instruction holds itself, as `pure_callback` makes it. Compared by identity."""

    def __call__(self, *operands: np.ndarray[Any, Any]) -> Any:
        """The result, an array or a tuple of arrays of the declared types. Operands are read-only copies, which the
        function may keep; the result is copied. Errors reach the caller of the program as they are."""

_CTYPES_FUNCTION: Any = type(ctypes.pythonapi.Py_GetVersion).__mro__[1]
"""The type of all functions of ctypes, which has no public name."""

_registered: dict[str, CustomCallFunction | NativeFunction] = {}
_batch_partitionable: set[str] = set()
_lock = fork_lock(Order.LEAF)
_version = 0


def register_custom_call(name: str, fn: CustomCallFunction, *, replace: bool = False) -> None:
    """Let custom calls of target `name` run `fn`.

    fn: a Python function `fn(*operands, **backend_config)` of NumPy arrays (read-only copies, which it may keep; tuples
    of arrays for tuple operands) that returns an array of the declared type, or a tuple of arrays, which is copied; a
    function compiled by `numba.njit`, with the same arrays; or a native function, a `numba.cfunc` or a ctypes function
    with the signature `void(void* out, void** in)`. It runs without the GIL, gets no backend_config, and its pointers
    are valid only during the call. Its result must depend only on its operands: equal calls may be merged, and a call
    with an unused result is dropped, unless the call says `custom_call_has_side_effect=true`.

    If the backend_config of a typed call is a dictionary, its values arrive as keywords; any other text, unless it is
    empty, arrives as the keyword `backend_config`.

    ValueError if `name` is taken and `replace` is false, TypeError if `fn` is not such a function.

    >>> import hloom, hloom.numpy as jnp
    >>> text = '''HloModule m
    ... ENTRY main {
    ...   x = f32[2]{0} parameter(0)
    ...   ROOT y = f32[2]{0} custom-call(x), custom_call_target="doubled"
    ... }'''
    >>> hloom.register_custom_call("doubled", lambda x: 2 * x)
    >>> hloom.run_hlo(text, jnp.array([1.0, 2.0]))
    [array([2., 4.], dtype=float32)]
    >>> hloom.unregister_custom_call("doubled")
    """
    if not (name and isinstance(name, str)):
        raise TypeError(f"the name of a custom call must be a string that is not empty, not {name!r}")
    function = _native(name, fn) or fn
    if not isinstance(function, NativeFunction) and not callable(function):
        raise TypeError(f"custom call {name!r} needs a function, not {type(fn).__name__}")
    with _lock:
        if not replace and (name in _registered or name in BUILT_IN):
            kind = "registered" if name in _registered else "built in"
            raise ValueError(f"custom call {name!r} is {kind} already: pass replace=True to replace it")
        _registered[name] = function
        _count_change()


def register_native(name: str, function: NativeFunction) -> None:
    """Let custom calls of target `name` call native code. The same code may be registered again; CustomCallError
    (ALREADY_EXISTS) for a name that is taken by other code."""
    with _lock:
        known = _registered.get(name)
        if name in BUILT_IN or (known is not None and _code_of(known) != _code_of(function)):
            raise CustomCallError(f"ALREADY_EXISTS: custom call {name!r} is registered already, for another function")
        if known is None:
            _registered[name] = function
            _count_change()


def _code_of(function: object) -> object:
    """The addresses of native code; Python's functions are equal only to themselves."""
    if not isinstance(function, NativeFunction):
        return function
    return getattr(function, "stages", function.address)


def register_batch_partitionable(name: str) -> None:
    """Say that calls of `name` do the same for each element of their first dimensions, as many as the frontend
    attribute `num_batch_dims` of a call states: devices may share these."""
    with _lock:
        _batch_partitionable.add(name)
        _count_change()


def unregister_custom_call(name: str) -> None:
    """Undo `register_custom_call(name, ...)`. KeyError if `name` is not registered.

    >>> import hloom
    >>> hloom.register_custom_call("halved", lambda x: x / 2)
    >>> hloom.unregister_custom_call("halved")
    >>> "halved" in hloom.registered_custom_calls()
    False
    """
    with _lock:
        if name not in _registered:
            raise KeyError(f"custom call {name!r} is not registered")
        del _registered[name]
        _count_change()


def _count_change() -> None:
    global _version
    _version += 1


def registry_version() -> int:
    """A number that changes whenever a target is registered or unregistered: a program that was compiled at another
    number may call other functions."""
    return _version


def registered_custom_calls() -> dict[str, CustomCallFunction]:
    """The registered functions by name, without the built-in targets.

    >>> import hloom
    >>> hloom.register_custom_call("halved", lambda x: x / 2)
    >>> "halved" in hloom.registered_custom_calls()
    True
    >>> hloom.unregister_custom_call("halved")
    """
    with _lock:
        functions = dict(_registered)
    return {name: f.owner if isinstance(f, NativeFunction) else f for name, f in functions.items()}  # type: ignore[misc]


def _native(name: str, fn: Any) -> NativeFunction | None:
    """`fn` as a native function; None if it is not one."""
    if isinstance(fn, _CTYPES_FUNCTION):
        address = ctypes.cast(fn, ctypes.c_void_p).value
        if not address:
            raise TypeError(f"custom call {name!r}: the ctypes function is a null pointer")
        return NativeFunction(address, fn)
    module = type(fn).__module__
    if not module.startswith("numba.") or type(fn).__name__ != "CFunc":
        return None
    signature = fn._sig
    kinds = [type(t).__name__ for t in signature.args]
    is_pointer = all(str(t) == "void*" or kind in ("CPointer", "RawPointer") for t, kind in zip(signature.args, kinds))
    if str(signature.return_type) not in ("none", "void") or len(kinds) != 2 or not is_pointer:
        raise TypeError(
            f"custom call {name!r}: a numba.cfunc must have the signature void(voidptr, CPointer(voidptr)), "
            f"for `void(void* out, void** in)`; this one has {signature}"
        )
    return NativeFunction(int(fn.address), fn)


def call_of(attributes: CustomCallAttributes, operands: Sequence[Shape], result: Shape) -> Call:
    """The instruction's data, as its target gets it. CustomCallError if its backend_config cannot be read.

    The layouts in the call's shapes describe the memory that a native function reads and writes: those that the
    instruction constrains, otherwise row-major.
    """
    target, text = attributes.custom_call_target, attributes.backend_config
    if attributes.operand_layout_constraints is not None:
        operands = attributes.operand_layout_constraints
    else:
        operands, result = [o.with_default_layout() for o in operands], result.with_default_layout()
    config: dict[str, Any] = {"backend_config": text} if text else {}
    if attributes.api_version is CustomCallApiVersion.TYPED_FFI:
        try:
            config = load(".mlir.python_values", __package__).read_values(text or "{}")
        except (ValueError, OverflowError) as error:
            raise CustomCallError(f"custom call {target!r}: its backend_config cannot be read: {error}") from error
    return Call(
        target, tuple(operands), result, config, attributes.callees, function=attributes.function, text=text,
        api_version=attributes.api_version, aliases=_aliases(attributes, operands, result),
    )  # fmt: skip


def _aliases(
    attributes: CustomCallAttributes, operands: Sequence[Shape], result: Shape
) -> tuple[tuple[int, int], ...]:
    """(leaf of the operands, leaf of the result) for each leaf of the parts that are aliased."""
    found: list[tuple[int, int]] = []
    for alias in attributes.output_to_operand_aliasing:
        source = sum(_count(o) for o in operands[: alias.operand])
        source += _first_leaf(operands[alias.operand], alias.operand_index)
        target = _first_leaf(result, alias.output_index)
        part = result
        for position in alias.output_index:
            part = part.elements[position]
        found += [(source + k, target + k) for k in range(_count(part))]
    return tuple(found)


def _count(shape: Shape) -> int:
    return len(list(shape.leaves()))


def _first_leaf(shape: Shape, index: Sequence[int]) -> int:
    """The number of the first leaf of the part of a shape at `index`."""
    count = 0
    for position in index:
        count += sum(_count(each) for each in shape.elements[:position])
        shape = shape.elements[position]
    return count


def is_built_in(name: str) -> bool:
    """True for a target of this library: it works on elements, in any layout."""
    return name in BUILT_IN and name not in _registered


def is_unwritten(name: str) -> bool:
    """True for a target with a result that is uninitialised memory: its calls do nothing."""
    return name in UNWRITTEN and is_built_in(name)


def is_batched_target(name: str) -> bool:
    """True for a target of this library that takes any number of batch dimensions before those it works on."""
    return is_built_in(name) and BUILT_IN[name].is_batched


def is_batch_partitionable(name: str) -> bool:
    """True for a target that was registered as one."""
    return name in _batch_partitionable


def native_target(call: Call) -> NativeFunction | None:
    """The native code that is registered for a call, or None. UnsupportedError if it does not take such a call."""
    function = None if call.function is not None else _registered.get(call.target)
    if not isinstance(function, NativeFunction):
        return None
    if function.is_typed and call.api_version is not CustomCallApiVersion.TYPED_FFI:
        raise UnsupportedError(
            f"custom call {call.target!r} has api_version={call.api_version.value}, and its handler is one of the "
            "typed FFI: the call needs api_version=API_VERSION_TYPED_FFI"
        )
    return function


def has_status(call: Call) -> bool:
    """True for a call of an interface in which native code reports errors by a status."""
    return call.api_version in _WITH_STATUS


_WITH_STATUS = (CustomCallApiVersion.STATUS_RETURNING, CustomCallApiVersion.STATUS_RETURNING_UNIFIED)


def typed_call(handler: NativeFunction, call: Call, *, partitions: int = 1, raises: bool) -> TypedCall:
    """The call of a handler of the typed FFI, instantiated: see `TypedCall`. UnsupportedError for attributes that
    handlers cannot get, CustomCallError if the handler fails."""
    plans = load(".ffi.plans", __package__)
    given, made = plans.buffers_of(call.operands), plans.buffers_of([call.result])
    attributes = load(".mlir.attribute_reader", __package__).read_attributes(call.text or "{}")
    try:
        found: TypedCall = plans.TypedCall(handler, given, made, attributes, partitions=partitions, raises=raises)
    except UnsupportedError as error:
        raise UnsupportedError(f"custom call {call.target!r}: {error}") from None
    return found


def bind_custom_call(call: Call) -> Run:
    """A function that computes `call` from its operands' values; its result has the declared type.

    UnsupportedError for a target that is not registered, ShapeError if a built-in target cannot be called in this way.
    The returned function raises CustomCallError if a registered function fails or returns a result of the wrong type.
    """
    if call.function is not None:
        return _run_host(cast("HostFunction", call.function))
    function = _registered.get(call.target)
    if function is None:
        built_in = BUILT_IN.get(call.target)
        if built_in is None:
            raise UnsupportedError(_unknown(call.target))
        run = built_in.bind(call)
    elif (native := native_target(call)) is not None:
        run = _run_native(native, call)
    else:
        run = _run_python(cast("CustomCallFunction", function), call)

    def checked(*operands: Value) -> Any:
        return _checked(call, call.result, run(*operands), "its result")

    return checked


def _unknown(name: str) -> str:
    why = UNAVAILABLE.get(name)
    start = f"custom call of target {name!r}"
    if why is not None:
        return f"{start} cannot be run: {why}. hloom.register_custom_call({name!r}, fn) gives it a function"
    close = difflib.get_close_matches(name, [*_registered, *BUILT_IN], 1, 0.8)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return (
        f"{start} is not known{hint}: register a function for it with hloom.register_custom_call({name!r}, fn), or a "
        "handler of XLA's typed FFI with hloom.ffi.register_ffi_target"
    )


def _run_host(function: HostFunction) -> Run:
    def run(*operands: Any) -> Any:
        with np.errstate(**_USUAL):
            return function(*[_owned(value) for value in operands])

    return run


_USUAL: Any = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}
"""NumPy's own settings: a program runs with NumPy silenced, and the user's function must not be affected"""


def _run_python(function: CustomCallFunction, call: Call) -> Run:
    def run(*operands: Any) -> Any:
        owned = [_owned(value) for value in operands if value is not None]
        try:
            return function(*owned, **_fresh(call.config))
        except Exception as error:
            raise CustomCallError(f"custom call {call.target!r} raised {type(error).__name__}: {error}") from error

    return run


def _owned(value: Any) -> Any:
    """A read-only copy of an operand: the function may keep it, while the operand's memory is soon used again."""
    if isinstance(value, tuple):
        return tuple(_owned(v) for v in value)
    array = allocating(np.array, value, order="C")
    array.flags.writeable = False
    return array


def _fresh(value: Any) -> Any:
    """A copy of a value of a backend_config; the function may change its dictionaries."""
    return {k: _fresh(v) for k, v in value.items()} if isinstance(value, dict) else value


def _run_native(function: NativeFunction, call: Call) -> Run:
    """Call native code on copies: the evaluator's arrays may have any strides."""
    shapes = [leaf for shape in call.operands for leaf in shape.leaves()]
    call_it = _native_call(function, call)

    def run(*operands: Any) -> Any:
        arrays = [np.array(a.transpose(_order(s)), order="C") for a, s in zip(leaves_of(operands), shapes)]
        results = [np.zeros([s.dimensions[d] for d in _order(s)], s.element.dtype) for s in call.result.leaves()]
        for source, target in call.aliases:
            results[target][...] = arrays[source]
            arrays[source] = results[target]
        call_it([a.ctypes.data for a in arrays], [r.ctypes.data for r in results])
        numbered = [r.transpose(inverse(_order(s))) for r, s in zip(results, call.result.leaves(), strict=True)]
        return value_of(call.result, iter(numbered))

    return run


def _native_call(function: NativeFunction, call: Call) -> Callable[[list[int], list[int]], None]:
    """A function of the addresses of the operands' leaves and of the results'."""
    if function.is_typed:
        return typed_call(function, call, raises=False).run
    native: Callable[[Any, Any], None] = (
        load(".ffi.status", __package__).function_with_status(function.address, call)
        if has_status(call)
        else ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(function.address)
    )

    def call_function(inputs: list[int], outputs: list[int]) -> None:
        given = (ctypes.c_void_p * max(len(inputs), 1))(*inputs)
        made = (ctypes.c_void_p * max(len(outputs), 1))(*outputs)
        native(made if call.result.is_tuple else made[0], given)

    return call_function


def _order(shape: Shape) -> tuple[int, ...]:
    """The dimensions, major to minor."""
    return shape.array_layout.minor_to_major[::-1]


def _checked(call: Call, shape: Shape, value: Any, what: str) -> Any:
    """`value` as an array or tuple of `shape`. CustomCallError if it is not one; a Python number counts as a scalar."""
    if shape.tuple_shapes is not None:
        if value is None and not shape.tuple_shapes:
            return ()
        if not isinstance(value, tuple | list) or len(value) != len(shape.tuple_shapes):
            found = f"{len(value)} values" if isinstance(value, tuple | list) else f"one {type(value).__name__}"
            _wrong(call, f"{what} must be a tuple of {len(shape.tuple_shapes)}, not {found}")
        return tuple(_checked(call, s, v, f"{what}[{i}]") for i, (s, v) in enumerate(zip(shape.tuple_shapes, value)))
    dtype = shape.element.dtype
    if isinstance(value, bool | int | float | complex) and shape.is_scalar:
        try:
            return np.asarray(value, dtype)
        except (OverflowError, TypeError) as error:
            _wrong(call, f"{what} must be a {shape}: {error}")
    try:
        array = np.asarray(value)
    except ValueError as error:
        _wrong(call, f"{what} is no array: {error}")
    if array.dtype != dtype or array.shape != shape.dimensions:
        _wrong(call, f"{what} must be {shape} (dtype {dtype}), not an array of {array.dtype} with shape {array.shape}")
    return array


def _wrong(call: Call, why: str) -> Any:
    raise CustomCallError(f"custom call {call.target!r}: {why}")
