"""Mutable arrays: `new_ref` makes one, `ref[...]` reads it, `ref[...] = x` writes it, `freeze` ends it. JAX's names.

A reference holds the array that it has now, and traced programs have values only. So a computation that is being
recorded keeps, for each reference from outside that it uses, the current value (`HloTrace.references`): the first use
makes a hidden parameter, a write changes the entry, and the written value is a further result of the computation. The
caller of the computation reads the parameter's value from the reference, and writes the result to it: jit, loops and
branches do so, each for the trace around it. Reads and writes are thus in the order of the program.

Values that a transformation has made (a tangent's primal, an element of a batch) cannot be written to a reference from
outside of that transformation: `Trace.outward` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from ...hlo.support.tracebacks import boundaries
from .. import dtypes
from ..arguments import ShapeDtypeStruct
from ..arrays.array import Array, as_value
from ..arrays.dslice import Slice
from ..arrays.dslice import ds as ds
from ..arrays.overlay import overlaid
from ..aval import ShapedArray
from ..core import EVAL, Trace, Value, current_trace
from ..errors import OperandError, UnsupportedError
from ..ops import convert, zeros
from ..recording import HloTrace
from ..sharding.shardings import default_sharding
from ..source import user_line
from ..trees import tree
from ..weak_interned import interned
from . import steps
from .blocks import block_of, check_index

_as_constant: Callable[[Value], Value]


def constants_are_made_by(stop_gradient: Callable[[Value], Value]) -> None:
    """`stop_gradient` makes the values for references without derivatives."""
    global _as_constant
    _as_constant = stop_gradient


class AbstractRef:
    """The type of a reference: the type of its array. Equal types are the same object.

    >>> hloom.typeof(hloom.new_ref(jnp.zeros(3)))
    Ref{float32[3]}
    """

    __slots__ = ("__weakref__", "inner_aval", "kind")
    inner_aval: ShapedArray
    kind: str | None
    """A value that is written to a reference of kind "no_grad_no_remat" is a constant to derivatives."""
    is_extended = False

    def __new__(cls, inner_aval: ShapedArray, memory_space: Any = None, kind: Any = None) -> AbstractRef:
        if kind not in (None, "no_grad_no_remat"):
            raise ValueError(f'the kind of a reference is None or "no_grad_no_remat", not {kind!r}')
        return interned(_made, inner_aval, kind)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.inner_aval.shape

    @property
    def dtype(self) -> Any:
        return self.inner_aval.dtype

    @property
    def weak_type(self) -> bool:
        return self.inner_aval.weak_type

    @property
    def ndim(self) -> int:
        return self.inner_aval.ndim

    @property
    def size(self) -> int:
        return self.inner_aval.size

    def str_short(self, short_dtypes: bool = False) -> str:
        """As JAX writes it: ``Ref{float32[3]}``."""
        return f"Ref{{{self.inner_aval.str_short(short_dtypes)}}}"

    def __reduce__(self) -> tuple[Any, ...]:
        return AbstractRef, (self.inner_aval, None, self.kind)

    def __repr__(self) -> str:
        return self.str_short()


def _made(inner: ShapedArray, kind: str | None) -> AbstractRef:
    made = object.__new__(AbstractRef)
    made.inner_aval, made.kind = inner, kind
    return made


class Ref:
    """A mutable array, made by `new_ref`. It is read and written by indexing; it is no array itself.

    >>> ref = hloom.new_ref(jnp.zeros(3))
    >>> ref[1] += 2.0
    >>> ref
    Ref([0., 2., 0.], dtype=float32)
    """

    __slots__ = ("__weakref__", "_argument", "_ended", "_line", "_owner", "_value", "aval")
    __hash__: ClassVar[Callable[[object], int]] = object.__hash__
    __array_priority__ = 1000
    _placed = None  # its array is somewhere

    aval: AbstractRef
    _value: Any
    """Its array, as a value of the trace that owns it."""
    _owner: Trace
    """The trace in which it was made."""

    def __init__(self, value: Value, argument: str = "", kind: str | None = None) -> None:
        self.aval = AbstractRef(value.aval, kind=kind)
        value = self._written(value)
        self._value = _same_elements(value) if isinstance(value, Array) else value
        self._owner = current_trace()
        self._argument = argument
        self._line = user_line()
        self._ended = ""

    # ---- attributes of its array

    shape: property = property(lambda self: self.aval.shape)
    dtype: property = property(lambda self: self.aval.dtype)
    ndim: property = property(lambda self: self.aval.ndim)
    size: property = property(lambda self: self.aval.size)

    @property
    def sharding(self) -> Any:
        return self._value.sharding if isinstance(self._value, Array) else default_sharding()

    @property
    def format(self) -> Any:
        return self._concrete().format

    @property
    def committed(self) -> bool:
        return True

    def unsafe_buffer_pointer(self) -> int:
        """The address of the first element."""
        return self._concrete().unsafe_buffer_pointer()

    def _concrete(self) -> Array:
        self.check()
        if isinstance(self._value, Array):
            return self._value
        raise TypeError(f"{self.aval} is traced: it has no memory yet")

    def __len__(self) -> int:
        if not self.aval.shape:
            raise TypeError("len() of unsized object")
        return self.aval.shape[0]

    def __repr__(self) -> str:
        if self._ended:
            return f"<{self._ended} {self.aval}>"
        if not isinstance(self._value, Array):
            return f"{self.aval.str_short()}<traced>"
        return "Ref" + repr(self._value)[len("Array") :]

    def __reduce__(self) -> Any:
        raise TypeError("a reference to a mutable array cannot be pickled or copied: pickle ref[...]")

    def __bool__(self) -> bool:
        raise TypeError("a reference has no truth value: read it first, as in ref[...]")

    def __iter__(self) -> Any:
        raise TypeError("a reference cannot be iterated over: read it first, as in ref[...]")

    # ---- reading and writing

    def __getitem__(self, idx: Any) -> Any:
        return get(self, idx)

    def __setitem__(self, idx: Any, value: Any) -> None:
        set(self, idx, value)

    def get(self, idx: Any = ...) -> Any:
        """As `ref[idx]`.

        >>> hloom.new_ref(jnp.array([1.0, 2.0])).get(1)
        Array(2., dtype=float32)
        """
        return get(self, idx)

    def set(self, value: Any, idx: Any = ...) -> None:
        """As `ref[idx] = value`.

        >>> ref = hloom.new_ref(jnp.zeros(2))
        >>> ref.set(5.0, 1)
        >>> ref[...]
        Array([0., 5.], dtype=float32)
        """
        set(self, idx, value)

    def swap(self, value: Any, idx: Any = ...) -> Any:
        """Write `value` at `idx`; returns the old value.

        >>> ref = hloom.new_ref(jnp.array([1.0, 2.0]))
        >>> ref.swap(5.0, 0), ref[...]
        (Array(1., dtype=float32), Array([5., 2.], dtype=float32))
        """
        return swap(self, idx, value)

    def addupdate(self, x: Any, idx: Any = ...) -> None:
        """Add `x` at `idx`.

        >>> ref = hloom.new_ref(jnp.zeros(3))
        >>> ref.addupdate(jnp.ones(2), slice(1, 3))
        >>> ref[...]
        Array([0., 1., 1.], dtype=float32)
        """
        addupdate(self, idx, x)

    @property
    def at(self) -> _At:
        """`ref.at[idx]` is a part of the reference, which is read and written in the same way.

        >>> ref = hloom.new_ref(jnp.zeros((2, 2)))
        >>> ref.at[0][1] = 5.0
        >>> ref[...]
        Array([[0., 5.],
               [0., 0.]], dtype=float32)
        """
        return _At(self)

    # ---- for the library

    def check(self) -> None:
        """ValueError if it was frozen or freed."""
        if self._ended:
            raise ValueError(f"the reference {self.aval} was {self._ended}: it is used at {user_line()}")

    @property
    def is_traced(self) -> bool:
        """Whether it belongs to a function that is being traced or transformed."""
        return self._owner is not EVAL

    def origin(self) -> str:
        """For messages: where it comes from."""
        if self._argument:
            return f"The reference was passed in as the argument {self._argument}."
        return f"The reference was created on line {self._line or '<unknown>'}."

    def recorders(self) -> list[HloTrace]:
        """The computations that are being recorded inside of the trace that owns it, innermost first."""
        found: list[HloTrace] = []
        trace: Trace | None = current_trace()
        while trace is not self._owner:
            if trace is None:
                raise ValueError(f"{self.aval} is used outside of the function that made it.\n  {self.origin()}")
            if isinstance(trace, HloTrace):
                found.append(trace)
            trace = trace.parent
        return found

    def current(self) -> Value:
        """Its array, as a value of the current trace."""
        self.check()
        recorders = self.recorders()
        value: Value = self._value
        for trace in reversed(recorders):
            entry = trace.references.get(self)
            if entry is None:
                entry = trace.references[self] = [trace.captured_reference(self), False]
            value = entry[0]
        return value

    def replace(self, value: Value) -> None:
        """Make `value`, of its type, its array."""
        self.check()
        value = self._written(value)
        is_weak = self.aval.weak_type and current_trace() is EVAL  # in a trace it is strong from here, as in JAX
        if value.aval.weak_type is not is_weak:
            value = current_trace().with_weak_type(value, is_weak)
        if isinstance(value, Array):
            value = _same_elements(value)
        recorders = self.recorders()
        place: Trace = recorders[0] if recorders else self._owner
        trace: Trace | None = current_trace()
        while trace is not place:
            assert trace is not None
            value = trace.outward(value, self)
            trace = trace.parent
        if not recorders:
            self._value = value
            return
        self.current()  # it is a parameter of every computation in between
        for between in recorders:
            between.references[self][1] = True
        recorders[0].references[self][0] = value

    def _written(self, value: Value) -> Value:
        """The part of a written value that is kept: all of it, or without its tangent."""
        return value if self.aval.kind is None or isinstance(value, Array) else _as_constant(value)

    def end(self, how: str) -> None:
        """It is used no more: `how` says since when."""
        self._ended = how
        self._value = None


boundaries(Ref, "__len__", "__bool__", "__getitem__", "__setitem__", "get", "set", "swap", "addupdate")


class _At:
    """The type of `ref.at`: it makes parts by indexing."""

    __slots__ = ("_ref",)

    def __init__(self, ref: Any) -> None:
        self._ref = ref

    def __getitem__(self, idx: Any) -> RefPart:
        return RefPart(self._ref, idx)


@boundaries
class RefPart:
    """A part of a reference, which is read and written as a reference is."""

    __slots__ = ("_idx", "_ref")

    def __init__(self, ref: Ref | RefPart, idx: Any) -> None:
        self._ref, self._idx = ref, idx

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.current().shape)

    @property
    def dtype(self) -> Any:
        return self._ref.dtype

    @property
    def at(self) -> _At:
        return _At(self)

    def current(self) -> Any:
        return _indexed(self._ref.current(), self._idx)

    def replace(self, value: Any) -> None:
        self._ref.replace(_written(self._ref.current(), self._idx, value))

    def check(self) -> None:
        self._ref.check()

    def __getitem__(self, idx: Any) -> Any:
        return get(self, idx)

    def __setitem__(self, idx: Any, value: Any) -> None:
        set(self, idx, value)


def _index_parts(part: RefPart) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The reference and the arrays of the index, and where they are in it: a part as a node of a tree."""
    entries = part._idx if isinstance(part._idx, tuple) else (part._idx,)
    children: list[Any] = [part._ref]
    form: list[Any] = [isinstance(part._idx, tuple)]
    for entry in entries:
        fields: tuple[Any, ...] = (entry,)
        if isinstance(entry, slice):
            fields = (entry.start, entry.stop, entry.step)
        elif isinstance(entry, Slice):
            fields = (entry.start, entry.size, entry.stride)
        moving = tuple([hasattr(f, "dtype") for f in fields])
        children += [f for f, m in zip(fields, moving, strict=True) if m]
        fixed = tuple([_MOVES if m else f for f, m in zip(fields, moving, strict=True)])
        form.append((type(entry) if len(fields) == 3 else None, fixed))
    return tuple(children), tuple(form)


def _of_index_parts(form: tuple[Any, ...], children: Sequence[Any]) -> RefPart:
    arrays = iter(children[1:])
    entries = []
    for kind, fields in form[1:]:
        found = [next(arrays) if f is _MOVES else f for f in fields]
        entries.append(found[0] if kind is None else kind(*found))
    return RefPart(children[0], tuple(entries) if form[0] else entries[0])


_MOVES = object()
"""In the place of an array in an index."""
tree.register_pytree_node(RefPart, _index_parts, _of_index_parts)


def _is_whole(idx: Any) -> bool:
    """Whether an index stands for all of an array, as it is."""
    if isinstance(idx, tuple):
        return not idx or (len(idx) == 1 and idx[0] is Ellipsis)
    return idx is Ellipsis


def _read_index(idx: Any) -> Any:
    """The index with the array of a reference in its place: one reference, beside slices only, as in JAX."""
    items = idx if isinstance(idx, tuple) else (idx,)
    references = [i for i in items if isinstance(i, Ref | RefPart)]
    if not references:
        return idx
    if len(references) > 1:
        raise UnsupportedError(f"Multiple Ref indexers are not supported: {idx}. Read all but one, as in ref[...]")
    if any(not (i is references[0] or i is Ellipsis or isinstance(i, slice | Slice)) for i in items):
        raise UnsupportedError(
            f"Ref cannot be mixed with other non-slice indexers: {idx}. Read the reference, as in ref[...]"
        )
    return tuple([i.current() if i is references[0] else i for i in items])


def _indexed(value: Value, idx: Any) -> Value:
    if _is_whole(idx):
        return value
    idx = _read_index(idx)
    check_index(value.aval.shape, idx)
    block = block_of(value.aval.shape, idx)
    return steps.read(value, idx) if block is None else block.read(value)


def _written(value: Value, idx: Any, new: Value) -> Value:
    if _is_whole(idx):
        return new
    idx = _read_index(idx)
    block = block_of(value.aval.shape, idx)
    if block is not None:
        return block.write(value, new)
    return steps.update(value, idx, new, "set")


def _checked(ref: Any, what: str) -> None:
    if not isinstance(ref, Ref | RefPart):
        raise ValueError(f"Can only call `{what}` on a reference to a mutable array (hloom.new_ref): {ref!r}")
    ref.check()


def get(ref: Any, idx: Any = ...) -> Any:
    """The elements of a reference at `idx`, a NumPy index: as `ref[idx]`.

    >>> hloom.ref.get(hloom.new_ref(jnp.arange(5)), slice(1, 3))
    Array([1, 2], dtype=int32)
    """
    _checked(ref, "ref_get")
    value = ref.current()
    found = _indexed(value, idx)
    return _same_elements(value) if found is value and isinstance(value, Array) else found


def _same_elements(array: Array) -> Array:
    """Another object over the same memory: a program takes over the memory of a reference, and deletes its array."""
    return array.with_aval(array.aval)


def swap(ref: Any, idx: Any, value: Any, _function_name: str = "ref_swap") -> Any:
    """Write `value` at `idx`; the elements that were there before.

    ValueError if the value does not have their shape (a scalar has every shape) or dtype.

    >>> x = hloom.new_ref(jnp.arange(3))
    >>> hloom.ref.swap(x, 0, 7), x
    (Array(0, dtype=int32), Ref([7, 1, 2], dtype=int32))
    """
    _checked(ref, _function_name)
    before = get(ref, idx)
    ref.replace(_written(ref.current(), idx, _fitting(value, before, _function_name)))
    return before


def set(ref: Any, idx: Any, value: Any) -> None:  # JAX's name
    """Write `value` at `idx`: as `ref[idx] = value`.

    >>> x = hloom.new_ref(jnp.zeros(3))
    >>> hloom.ref.set(x, slice(1, 3), 5.0)
    >>> x
    Ref([0., 5., 5.], dtype=float32)
    """
    _checked(ref, "ref_set")
    old = ref.current()
    ref.replace(_written(old, idx, _fitting(value, _indexed(old, idx), "ref_set")))


def addupdate(ref: Any, idx: Any, x: Any) -> None:
    """Add `x` to the elements at `idx`; where an index is there twice, both are added.

    >>> x = hloom.new_ref(jnp.zeros(3))
    >>> hloom.ref.addupdate(x, jnp.array([1, 1]), 2.0)
    >>> x
    Ref([0., 4., 0.], dtype=float32)
    """
    _checked(ref, "ref_addupdate")
    old = ref.current()
    new = _fitting(x, _indexed(old, idx), "ref_addupdate")
    if _is_whole(idx):
        ref.replace(old + new)
        return
    idx = _read_index(idx)
    block = block_of(old.aval.shape, idx)
    if block is None:
        ref.replace(steps.update(old, idx, new, "add"))
    else:
        ref.replace(block.write(old, block.read(old) + new))


def _fitting(given: Any, like: Value, what: str) -> Value:
    """`given` with the type of `like`. ValueError if dtypes or shapes differ."""
    if isinstance(given, Ref | RefPart):
        raise ValueError(f"Cannot store a Ref into another Ref ({what}): read the value first, as in ref[...]")
    value = as_value(given)
    dtype, wanted = value.aval.dtype, like.aval.dtype
    if dtype != wanted:
        fits = (value.aval.weak_type and dtypes.is_floating(wanted) and dtypes.is_floating(dtype)) or (
            dtypes.is_integer(wanted) and dtypes.is_integer(dtype)
        )
        if not fits:
            raise OperandError(
                f"Invalid dtype for `{what}`. Ref dtype: {wanted.name}. Value dtype: {dtype.name}.\n  Convert the "
                "value with astype.",
                "ref_dtype",
            )
    value = convert(value, wanted, False)
    if value.aval.shape != like.aval.shape:
        if value.aval.shape:
            raise OperandError(
                f"Invalid shape for `{what}`. Ref shape: {like.aval.shape}. Value shape: {value.aval.shape}.\n  Make "
                "them equal, as with hloom.numpy.broadcast_to.",
                "ref_shape",
            )
        value = zeros(like.aval) + value
    return value


def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None) -> Ref:
    """A reference to a new mutable array with the elements of `init_val`.

    kind: "no_grad_no_remat": a written value is a constant to derivatives, so that values that are differentiated may
      be written to a reference from outside. A `checkpoint` writes once, for any kind.
    memory_space: accepted; all memory belongs to the process.

    >>> x_ref = hloom.new_ref(jnp.zeros(3))
    >>> @hloom.jit
    ... def f():
    ...     x_ref[1] += 1.0
    >>> f(); f(); x_ref
    Ref([0., 2., 0.], dtype=float32)
    """
    if isinstance(init_val, Ref | RefPart):
        raise ValueError("new_ref: references to references do not exist; give an array, ref[...]")
    return Ref(as_value(init_val), kind=kind)


def empty_ref(ty: Any, memory_space: Any = None) -> Ref:
    """A reference to a new mutable array of a type (ShapeDtypeStruct), filled with zeros until it is written: zeros.

    >>> ref = hloom.empty_ref(hloom.ShapeDtypeStruct((3,), jnp.float32))
    >>> ref[1] = 5.0
    >>> ref[...]
    Array([0., 5., 0.], dtype=float32)
    """
    if not isinstance(ty, ShapedArray | ShapeDtypeStruct):
        raise TypeError(f"empty_ref: a type is needed (hloom.ShapeDtypeStruct, hloom.typeof(x)), not {ty!r}")
    aval = ty if isinstance(ty, ShapedArray) else ty.aval
    return Ref(zeros(aval.with_weak_type(False)))


def freeze(ref: Ref) -> Value:
    """End a reference: its array, as it is now. Only where the reference was made (ValueError): not in a function that
    has it as an argument or from outside.

    >>> ref = hloom.new_ref(jnp.zeros(2))
    >>> ref[0] = 3.0
    >>> hloom.freeze(ref)
    Array([3., 0.], dtype=float32)
    """
    return _ended(ref, "freeze", "frozen")


def free_ref(ref: Ref) -> None:
    """End a reference. Only where it was made (ValueError).

    >>> ref = hloom.new_ref(jnp.zeros(2))
    >>> hloom.free_ref(ref)
    """
    _ended(ref, "free_ref", "freed")


def _ended(ref: Any, what: str, how: str) -> Value:
    if not isinstance(ref, Ref):
        raise ValueError(f"{what}: a reference is needed, made by hloom.new_ref, not {ref!r}")
    ref.check()
    if ref._argument or ref._owner is not current_trace():
        raise ValueError(f"{what}: a reference can only be {how} where it was made.\n  {ref.origin()}")
    value = ref.current()
    ref.end(how)
    return value


# ---- references in the arguments and results of functions


def refuse_result(leaf: Any, what: str, function: str) -> None:
    """ValueError if a function that is traced for `what` returns a reference."""
    if isinstance(leaf, Ref):
        raise ValueError(
            f"function {function} traced for {what} returned a mutable array reference of type {leaf.aval}, but "
            f"mutable array references cannot be returned.\n\n{leaf.origin()}"
        )


def refuse_parts(container: Any, what: str) -> None:
    """ValueError for parts of references, where each argument is taken apart along an axis."""
    for leaf in tree.leaves(container, is_leaf=lambda x: isinstance(x, RefPart)):
        if isinstance(leaf, RefPart):
            raise ValueError(
                f"{what}: TransformedRefs are not allowed: a part of a reference, as ref.at[...] makes it, has no "
                "axis to map over\n  Pass the reference, and index it inside."
            )


def check_aliases(leaves: Sequence[Any], names: Sequence[str], captured: Sequence[Any], what: str) -> None:
    """ValueError if a reference is given twice, or is used from outside and given."""
    first: dict[int, str] = {}
    for leaf, name in zip(leaves, names, strict=False):
        if isinstance(leaf, Ref):
            leaf.check()
            if id(leaf) in first:
                raise ValueError(
                    "only one reference to a mutable array may be passed as an argument to a function, but for "
                    f"{what} the mutable array reference of type {leaf.aval} appeared at both {first[id(leaf)]} and "
                    f"{name}."
                )
            first[id(leaf)] = name
    for outside in captured:
        if isinstance(outside, Ref) and id(outside) in first:
            raise ValueError(
                f"for {what}, a mutable array reference of type {outside.aval} was both closed over and passed as the "
                f"argument {first[id(outside)]}."
            )


class _Hidden:
    """A reference as a node of a tree without leaves."""

    __slots__ = ("ref",)

    def __init__(self, ref: Ref) -> None:
        self.ref = ref


tree.register_pytree_node(_Hidden, lambda hidden: ((), hidden.ref), lambda ref, _: _Hidden(ref))


def is_own_reference(ref: Ref) -> bool:
    """Whether the function that is traced or transformed now has made it, for loops and branches of it too. A function
    that is differentiated inside of that one may write gradients to it: it is then no own one."""
    trace: Trace | None = current_trace()
    while trace is not ref._owner and isinstance(trace, HloTrace):
        trace = trace.parent
    return ref.is_traced and trace is ref._owner


def hide_references(container: Any, but: Callable[[Ref], bool] | None = None) -> Any:
    """A pytree without references as leaves, except those that satisfy `but`. It is itself if it has none."""
    leaves = tree.leaves(container)
    hidden = [leaf for leaf in leaves if isinstance(leaf, Ref) and not (but is not None and but(leaf))]
    if not hidden:
        return container
    return tree.map(lambda leaf: _Hidden(leaf) if any(leaf is h for h in hidden) else leaf, container)


def show_references(container: Any) -> Any:
    """The inverse of `hide_references`."""
    return tree.map(
        lambda leaf: leaf.ref if isinstance(leaf, _Hidden) else leaf,
        container,
        is_leaf=lambda node: isinstance(node, _Hidden),
    )


def values_of_references(values: Sequence[Any]) -> list[Any]:
    """The values, references replaced by their arrays as they are now."""
    return [v.current() if isinstance(v, Ref) else v for v in values]


def replace_all(references: Sequence[Ref], values: Sequence[Value]) -> None:
    """Write the references that a call has changed."""
    for reference, value in zip(references, values, strict=True):
        reference.replace(overlaid(value, reference.aval.inner_aval))
