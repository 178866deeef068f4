"""ArrayBase: the operators and methods that concrete arrays and tracers share. `hloom.Array` is this class.

The NumPy namespace implements them, and it needs this class: `hloom/numpy/array_methods.py` hands the functions over
through `use_functions` when it is imported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from ...hlo.library import part_above
from ...hlo.support.tracebacks import boundaries, hide
from ..aval import ShapedArray
from ..sharding.lenience import not_refused


class _NotYet:
    """Takes the place of the functions until the first one is needed."""

    def __getattr__(self, name: str) -> Any:
        part_above("functions")
        assert _np is not self, "hloom.numpy has not called use_functions"
        return getattr(_np, name)


_np: Any = _NotYet()


class _Functions(SimpleNamespace):
    """The functions, by their names. Those of modules that are not loaded yet are found at their first use."""

    def __init__(self, functions: Iterable[Callable[..., Any]], later: Mapping[str, Callable[[], Any]]) -> None:
        super().__init__(**{f.__name__: f for f in functions})
        self._later = later

    def __getattr__(self, name: str) -> Any:
        if name not in self._later:
            raise AttributeError(name)
        found = getattr(self._later[name](), name)
        setattr(self, name, found)
        return found


def use_functions(
    *functions: Callable[..., Any], later: Iterable[tuple[Sequence[str], Callable[[], Any]]] = ()
) -> None:
    """Operators and methods call these functions, by their names, from now on. `later`: names of more functions, each
    time with a function that loads their module."""
    global _np
    _np = _Functions(functions, {name: module for names, module in later for name in names})


def implementation(name: str) -> Callable[..., Any]:
    """The function behind an operator or a method."""
    found: Callable[..., Any] = getattr(_np, name)
    return found


_OPERANDS = (bool, int, float, complex, np.ndarray, np.generic)


class ArrayBase:
    """An immutable n-dimensional array, concrete or traced, with NumPy's operators and methods.

    Arrays are made by functions such as `hloom.numpy.array`. Operators work element by element, shapes broadcast, and
    dtypes promote by JAX's rules; Python scalars are weakly typed: they take the array's dtype where its kind allows.
    Indices out of bounds are clipped when reading. Instead of ``x[i] = y`` write ``x = x.at[i].set(y)``.

    >>> x = jnp.array([[1, 2], [3, 4]])
    >>> x[:, 0] + 10 * x
    Array([[11, 23],
           [31, 43]], dtype=int32)
    """

    __slots__ = ()

    aval: ShapedArray
    __array_priority__ = 100
    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    # ---- the type

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of all dimensions, as a tuple of Python integers: known while tracing too.

        >>> jnp.ones((2, 3)).shape
        (2, 3)
        """
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements, as NumPy's dtype.

        >>> jnp.ones(2).dtype, jnp.array([1, 2]).dtype
        (dtype('float32'), dtype('int32'))
        """
        return self.aval.dtype

    @property
    def weak_type(self) -> bool:
        """True for values made from Python scalars: their dtype gives way in promotion.

        >>> jnp.asarray(2).weak_type, (jnp.asarray(2) + jnp.ones(1, jnp.int8)).dtype
        (True, dtype('int8'))
        """
        return self.aval.weak_type

    @property
    def ndim(self) -> int:
        """The number of dimensions, a Python integer.

        >>> jnp.ones((2, 3)).ndim
        2
        """
        return len(self.aval.shape)

    @property
    def size(self) -> int:
        """The number of elements, a Python integer.

        >>> jnp.ones((2, 3)).size
        6
        """
        return math.prod(self.aval.shape)

    @property
    def itemsize(self) -> int:
        """The number of bytes of an element.

        >>> jnp.ones(2).itemsize
        4
        """
        return self.aval.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The number of bytes of all elements.

        >>> jnp.ones((2, 3)).nbytes
        24
        """
        return self.size * self.aval.dtype.itemsize

    def __len__(self) -> int:
        shape = self.aval.shape  # no boundary around it: this is called in each loop over an array
        if shape:
            return shape[0]
        try:
            raise TypeError("len() of unsized object: the array has no dimensions")
        except TypeError as error:
            hide(error)
            raise

    # ---- to Python: an Array has a value, a Tracer raises an error that says why not

    def __bool__(self) -> bool:
        raise NotImplementedError

    def __int__(self) -> int:
        raise NotImplementedError

    def __float__(self) -> float:
        raise NotImplementedError

    def __complex__(self) -> complex:
        raise NotImplementedError

    def __index__(self) -> int:
        raise NotImplementedError

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        raise NotImplementedError

    def __dlpack__(
        self, *, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any:  # fmt: skip
        raise NotImplementedError

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """`hloom.numpy`: a method of the array API standard."""
        return _np.array_namespace(api_version)

    def item(self, *args: int) -> Any:
        """The only element (or the one at `args`) as a Python number; a traced array raises ConcretizationTypeError.

        >>> jnp.array([7]).item(), jnp.array([[1, 2], [3, 4]]).item(1, 0)
        (7, 3)
        """
        raise NotImplementedError

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers; a traced array raises ConcretizationTypeError.

        >>> jnp.array([[1, 2], [3, 4]]).tolist()
        [[1, 2], [3, 4]]
        """
        raise NotImplementedError

    if TYPE_CHECKING:  # only concrete arrays have these

        def tobytes(self, order: Any = "C") -> bytes: ...
        def block_until_ready(self) -> Self: ...
        def delete(self) -> None: ...
        def is_deleted(self) -> bool: ...
        def devices(self) -> set[Any]: ...
        def to_device(self, device: Any, *, stream: Any = None) -> Self: ...
        def addressable_data(self, index: int) -> Self: ...
        def copy_to_host_async(self) -> None: ...
        def unsafe_buffer_pointer(self) -> int: ...
        def on_device_size_in_bytes(self) -> int: ...
        @property
        def sharding(self) -> Any: ...
        @property
        def committed(self) -> bool: ...
        @property
        def device(self) -> Any: ...
        @property
        def format(self) -> Any: ...
        @property
        def is_fully_addressable(self) -> bool: ...
        @property
        def is_fully_replicated(self) -> bool: ...
        @property
        def addressable_shards(self) -> list[Any]: ...
        @property
        def global_shards(self) -> list[Any]: ...

    # ---- indexing

    def __getitem__(self, index: Any) -> ArrayBase:
        return _np.index_get(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError(
            "hloom arrays are immutable: instead of x[i] = y, write x = x.at[i].set(y), "
            "which makes a new array (and inside jit costs no copy where x is not used again)"
        )

    def __iter__(self) -> Iterator[ArrayBase]:
        if not self.aval.shape:
            raise TypeError("iteration over an array without dimensions")
        with not_refused():
            return iter([_np.index_get(self, i) for i in range(self.aval.shape[0])])

    def __reversed__(self) -> Iterator[ArrayBase]:
        return iter(list(self)[::-1])

    def __contains__(self, value: Any) -> bool:
        if self.ndim != 1:
            raise ValueError(f"Array.__contains__: search array must be one-dimensional, got arr.shape={self.shape}.")
        if not isinstance(value, _ACCEPTED):
            raise TypeError(f"Array.__contains__: unsupported operand type {type(value)}.")
        if getattr(value, "shape", ()) != ():
            raise ValueError(f"Array.__contains__: query value must be a scalar, got query.shape={value.shape}")
        return bool(_np.any(_np.equal(self, value)))

    @property
    def at(self) -> Any:
        """``x.at[index].set(y)`` and add, subtract, multiply, divide, power, min, max, apply, get: a changed copy.

        Integers out of bounds write nothing; ``mode=`` changes that. Under jit the copy costs nothing where x is not
        used again.

        >>> x = jnp.arange(4)
        >>> x.at[1:3].add(10)
        Array([ 0, 11, 12,  3], dtype=int32)
        """
        return _np.IndexUpdateHelper(self)

    # ---- arithmetic

    def __add__(self, other: ArrayLike) -> ArrayBase:
        return _np.add(self, other) if isinstance(other, _ACCEPTED) else NotImplemented

    def __radd__(self, other: ArrayLike) -> ArrayBase:
        return _np.add(other, self) if isinstance(other, _ACCEPTED) else NotImplemented

    def __sub__(self, other: ArrayLike) -> ArrayBase:
        return _np.subtract(self, other) if isinstance(other, _ACCEPTED) else NotImplemented

    def __rsub__(self, other: ArrayLike) -> ArrayBase:
        return _np.subtract(other, self) if isinstance(other, _ACCEPTED) else NotImplemented

    def __mul__(self, other: ArrayLike) -> ArrayBase:
        return _np.multiply(self, other) if isinstance(other, _ACCEPTED) else NotImplemented

    def __rmul__(self, other: ArrayLike) -> ArrayBase:
        return _np.multiply(other, self) if isinstance(other, _ACCEPTED) else NotImplemented

    def __truediv__(self, other: ArrayLike) -> ArrayBase:
        return _np.divide(self, other) if isinstance(other, _ACCEPTED) else NotImplemented

    def __rtruediv__(self, other: ArrayLike) -> ArrayBase:
        return _np.divide(other, self) if isinstance(other, _ACCEPTED) else NotImplemented

    def __floordiv__(self, other: ArrayLike) -> ArrayBase:
        return _np.floor_divide(self, other) if isinstance(other, _ACCEPTED) else NotImplemented

    def __rfloordiv__(self, other: ArrayLike) -> ArrayBase:
        return _np.floor_divide(other, self) if isinstance(other, _ACCEPTED) else NotImplemented

    def __mod__(self, other: ArrayLike) -> ArrayBase:
        return _np.mod(self, other) if isinstance(other, _ACCEPTED) else NotImplemented

    def __rmod__(self, other: ArrayLike) -> ArrayBase:
        return _np.mod(other, self) if isinstance(other, _ACCEPTED) else NotImplemented

    def __divmod__(self, other: ArrayLike) -> tuple[ArrayBase, ArrayBase]:
        return _np.divmod(self, other) if isinstance(other, _ACCEPTED) else NotImplemented

    def __rdivmod__(self, other: ArrayLike) -> tuple[ArrayBase, ArrayBase]:
        return _np.divmod(other, self) if isinstance(other, _ACCEPTED) else NotImplemented

    def __pow__(self, other: ArrayLike) -> ArrayBase:
        return _np.power(self, other) if isinstance(other, _ACCEPTED) else NotImplemented

    def __rpow__(self, other: ArrayLike) -> ArrayBase:
        return _np.power(other, self) if isinstance(other, _ACCEPTED) else NotImplemented

    def __matmul__(self, other: ArrayLike) -> ArrayBase:
        return _np.matmul(self, other) if isinstance(other, _ACCEPTED) else NotImplemented

    def __rmatmul__(self, other: ArrayLike) -> ArrayBase:
        return _np.matmul(other, self) if isinstance(other, _ACCEPTED) else NotImplemented

    def __neg__(self) -> ArrayBase:
        return _np.negative(self)

    def __pos__(self) -> ArrayBase:
        return _np.positive(self)

    def __abs__(self) -> ArrayBase:
        return _np.abs(self)

    def __invert__(self) -> ArrayBase:
        return _np.bitwise_not(self)

    def __and__(self, other: ArrayLike) -> ArrayBase:
        return _np.bitwise_and(self, other) if isinstance(other, _ACCEPTED) else NotImplemented

    def __rand__(self, other: ArrayLike) -> ArrayBase:
        return _np.bitwise_and(other, self) if isinstance(other, _ACCEPTED) else NotImplemented

    def __or__(self, other: ArrayLike) -> ArrayBase:
        return _np.bitwise_or(self, other) if isinstance(other, _ACCEPTED) else NotImplemented

    def __ror__(self, other: ArrayLike) -> ArrayBase:
        return _np.bitwise_or(other, self) if isinstance(other, _ACCEPTED) else NotImplemented

    def __xor__(self, other: ArrayLike) -> ArrayBase:
        return _np.bitwise_xor(self, other) if isinstance(other, _ACCEPTED) else NotImplemented

    def __rxor__(self, other: ArrayLike) -> ArrayBase:
        return _np.bitwise_xor(other, self) if isinstance(other, _ACCEPTED) else NotImplemented

    def __lshift__(self, other: ArrayLike) -> ArrayBase:
        return _np.left_shift(self, other) if isinstance(other, _ACCEPTED) else NotImplemented

    def __rlshift__(self, other: ArrayLike) -> ArrayBase:
        return _np.left_shift(other, self) if isinstance(other, _ACCEPTED) else NotImplemented

    def __rshift__(self, other: ArrayLike) -> ArrayBase:
        return _np.right_shift(self, other) if isinstance(other, _ACCEPTED) else NotImplemented

    def __rrshift__(self, other: ArrayLike) -> ArrayBase:
        return _np.right_shift(other, self) if isinstance(other, _ACCEPTED) else NotImplemented

    def __round__(self, ndigits: int | None = None) -> ArrayBase:
        return _np.round(self, ndigits or 0)

    # ---- comparison: elementwise

    def __eq__(self, other: Any) -> ArrayBase:  # type: ignore[override]
        return _np.equal(self, other) if isinstance(other, _ACCEPTED) else _uncompared(self, "==", other)

    def __ne__(self, other: Any) -> ArrayBase:  # type: ignore[override]
        return _np.not_equal(self, other) if isinstance(other, _ACCEPTED) else _uncompared(self, "!=", other)

    def __lt__(self, other: ArrayLike) -> ArrayBase:
        return _np.less(self, other) if isinstance(other, _ACCEPTED) else NotImplemented

    def __le__(self, other: ArrayLike) -> ArrayBase:
        return _np.less_equal(self, other) if isinstance(other, _ACCEPTED) else NotImplemented

    def __gt__(self, other: ArrayLike) -> ArrayBase:
        return _np.greater(self, other) if isinstance(other, _ACCEPTED) else NotImplemented

    def __ge__(self, other: ArrayLike) -> ArrayBase:
        return _np.greater_equal(self, other) if isinstance(other, _ACCEPTED) else NotImplemented

    # ---- NumPy's methods

    @property
    def T(self) -> ArrayBase:
        """The array with its dimensions in reverse order.

        >>> jnp.array([[1, 2], [3, 4]]).T
        Array([[1, 3],
               [2, 4]], dtype=int32)
        """
        return _np.transpose(self)

    @property
    def mT(self) -> ArrayBase:
        """The last two dimensions swapped; ValueError for fewer.

        >>> jnp.ones((2, 3, 4)).mT.shape
        (2, 4, 3)
        """
        return _np.matrix_transpose(self)

    @property
    def real(self) -> ArrayBase:
        """The real part of each element; itself if it is not complex. No view: it can't be assigned to.

        >>> jnp.array([1 + 2j, 3]).real
        Array([1., 3.], dtype=float32)
        """
        return _np.real(self)

    @property
    def imag(self) -> ArrayBase:
        """The imaginary part of each element; zeros if it is not complex. No view: it can't be assigned to.

        >>> jnp.array([1 + 2j, 3]).imag
        Array([2., 0.], dtype=float32)
        """
        return _np.imag(self)

    def conj(self) -> ArrayBase:
        """The complex conjugate of each element; itself if it is not complex.

        >>> jnp.array([1 + 2j, 3 - 1j]).conj()
        Array([1.-2.j, 3.+1.j], dtype=complex64)
        """
        return _np.conj(self)

    conjugate = conj

    def astype(self, dtype: Any, copy: bool = False, device: Any = None) -> ArrayBase:
        """The elements in another dtype, see `hloom.numpy.astype`.

        >>> jnp.array([1.7, -1.7]).astype(int)
        Array([ 1, -1], dtype=int32)
        """
        return _np.astype(self, dtype, copy=copy, device=device)

    def view(self, dtype: Any = None, type: None = None) -> ArrayBase:
        """The same bits as another dtype; the last dimension changes size with the width. NumPy's view shares memory,
        this does not.

        >>> jnp.array([1, 256], jnp.int16).view(jnp.uint8)
        Array([1, 0, 0, 1], dtype=uint8)
        """
        return _np.view(self, dtype, type)

    def byteswap(self, inplace: bool = False) -> ArrayBase:
        """The same elements with their bytes in the opposite order.

        >>> jnp.array([1, 256], jnp.int16).byteswap()
        Array([256,   1], dtype=int16)
        """
        if inplace:
            raise NotImplementedError("byteswap: inplace must be False, as arrays are immutable")
        return _np.byteswap(self)

    def copy(self) -> ArrayBase:
        """A copy. Arrays are immutable, so that it is rarely needed.

        >>> jnp.array([1, 2]).copy()
        Array([1, 2], dtype=int32)
        """
        return _np.copy(self)

    def reshape(self, *args: Any, order: str = "C", out_sharding: Any = None) -> ArrayBase:
        """The same elements in another shape, given as integers or one sequence; one size may be -1. No view.

        >>> jnp.arange(6).reshape(2, -1)
        Array([[0, 1, 2],
               [3, 4, 5]], dtype=int32)
        """
        return _np.reshape(self, args[0] if len(args) == 1 else args, order=order, out_sharding=out_sharding)

    def ravel(self, order: str = "C", *, out_sharding: Any = None) -> ArrayBase:
        """All elements in one dimension. `order` "F": the first index varies fastest.

        >>> jnp.array([[1, 2], [3, 4]]).ravel()
        Array([1, 2, 3, 4], dtype=int32)
        """
        return _np.ravel(self, order=order, out_sharding=out_sharding)

    def flatten(self, order: str = "C", *, out_sharding: Any = None) -> ArrayBase:
        """All elements in one dimension, as `ravel`.

        >>> jnp.array([[1, 2], [3, 4]]).flatten(order="F")
        Array([1, 3, 2, 4], dtype=int32)
        """
        return _np.ravel(self, order=order, out_sharding=out_sharding)

    def transpose(self, *axes: Any) -> ArrayBase:
        """Dimension i of the result is dimension axes[i]: separate integers, one sequence, or nothing (reversed).

        >>> jnp.ones((2, 3, 4)).transpose(1, 0, 2).shape
        (3, 2, 4)
        """
        whole = len(axes) == 1 and (axes[0] is None or not hasattr(axes[0], "__index__") or np.ndim(axes[0]) == 1)
        return _np.transpose(self, (axes[0] if whole else axes) if axes else None)

    def swapaxes(self, axis1: int, axis2: int) -> ArrayBase:
        """Two dimensions swapped.

        >>> jnp.ones((2, 3, 4)).swapaxes(0, 2).shape
        (4, 3, 2)
        """
        return _np.swapaxes(self, axis1, axis2)

    def squeeze(self, axis: int | Sequence[int] | None = None) -> ArrayBase:
        """Without dimensions of size 1: all, or those given.

        >>> jnp.ones((1, 3, 1)).squeeze().shape
        (3,)
        """
        return _np.squeeze(self, axis)

    def repeat(
        self, repeats: Any, axis: int | None = None, *, total_repeat_length: int | None = None, out_sharding: Any = None
    ) -> ArrayBase:
        """Each element repeated, along an axis or of the flattened array; see `hloom.numpy.repeat`.

        >>> jnp.array([1, 2]).repeat(2)
        Array([1, 1, 2, 2], dtype=int32)
        """
        return _np.repeat(
            self, repeats, axis, total_repeat_length=total_repeat_length, out_sharding=out_sharding
        )

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> ArrayBase:
        """The elements with an index along `axis2` that is `offset` more than along `axis1`, as the last dimension.

        >>> jnp.array([[1, 2], [3, 4]]).diagonal()
        Array([1, 4], dtype=int32)
        """
        return _np.diagonal(self, offset, axis1, axis2)

    def trace(
        self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: None = None
    ) -> ArrayBase:
        """The sum of a diagonal.

        >>> jnp.array([[1, 2], [3, 4]]).trace()
        Array(5, dtype=int32)
        """
        return _np.trace(self, offset, axis1, axis2, dtype, out)

    def dot(self, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> ArrayBase:
        """The last dimension times the second to last (or only) of b, summed; see `hloom.numpy.dot`.

        >>> jnp.array([[1, 2], [3, 4]]).dot(jnp.array([1, 1]))
        Array([3, 7], dtype=int32)
        """
        return _np.dot(self, b, precision=precision, preferred_element_type=preferred_element_type)

    def clip(self, min: Any = None, max: Any = None) -> ArrayBase:
        """The elements limited to [min, max]; either bound may be None.

        >>> jnp.array([-2, 0, 5]).clip(0, 3)
        Array([0, 0, 3], dtype=int32)
        """
        return _np.clip(self, min, max)

    def round(self, decimals: int = 0, out: None = None) -> ArrayBase:
        """The nearest values with `decimals` digits after the point; halves go to the even neighbour.

        >>> jnp.array([0.5, 1.25, 2.5]).round(1)
        Array([0.5, 1.2, 2.5], dtype=float32)
        """
        return _np.round(self, decimals, out)

    def sum(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
        promote_integers: bool = True,
    ) -> ArrayBase:
        """The sum over `axis` (None: all) of the elements where `where` is true; see `hloom.numpy.sum`.

        >>> jnp.array([[1, 2], [3, 4]]).sum(axis=0)
        Array([4, 6], dtype=int32)
        """
        return _np.sum(self, axis, dtype, out, keepdims, initial, where, promote_integers)

    def prod(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
        promote_integers: bool = True,
    ) -> ArrayBase:
        """The product over `axis` (None: all) of the elements where `where` is true; see `hloom.numpy.prod`.

        >>> jnp.array([[1, 2], [3, 4]]).prod(axis=1)
        Array([ 2, 12], dtype=int32)
        """
        return _np.prod(self, axis, dtype, out, keepdims, initial, where, promote_integers)

    def mean(
        self, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, *, where: Any = None
    ) -> ArrayBase:
        """The mean over `axis` (None: all), a float also of integers; see `hloom.numpy.mean`.

        >>> jnp.array([[1, 2], [3, 4]]).mean(axis=0)
        Array([2., 3.], dtype=float32)
        """
        return _np.mean(self, axis, dtype, out, keepdims, where=where)

    def var(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        where: Any = None,
        correction: float | None = None,
    ) -> ArrayBase:
        """The mean squared distance from the mean over `axis`; see `hloom.numpy.var`.

        >>> jnp.array([1, 2, 3, 6]).var()
        Array(3.5, dtype=float32)
        """
        return _np.var(self, axis, dtype, out, ddof, keepdims, where=where, correction=correction)

    def std(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        where: Any = None,
        correction: float | None = None,
    ) -> ArrayBase:
        """The square root of the variance over `axis`; see `hloom.numpy.std`.

        >>> jnp.array([1, 3]).std()
        Array(1., dtype=float32)
        """
        return _np.std(self, axis, dtype, out, ddof, keepdims, where=where, correction=correction)

    def max(
        self, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
    ) -> ArrayBase:
        """The largest element over `axis` (None: all); NaN if one is NaN; see `hloom.numpy.max`.

        >>> jnp.array([[1, 5], [3, 4]]).max(axis=1)
        Array([5, 4], dtype=int32)
        """
        return _np.max(self, axis, out, keepdims, initial, where)

    def min(
        self, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
    ) -> ArrayBase:
        """The smallest element over `axis` (None: all); NaN if one is NaN; see `hloom.numpy.min`.

        >>> jnp.array([[1, 5], [3, 4]]).min(axis=1)
        Array([1, 3], dtype=int32)
        """
        return _np.min(self, axis, out, keepdims, initial, where)

    def any(self, axis: Any = None, out: None = None, keepdims: bool = False, *, where: Any = None) -> ArrayBase:
        """True if any of the elements over `axis` (None: all) are not 0.

        >>> x = jnp.array([1, 5, 9])
        >>> (x > 8).any()
        Array(True, dtype=bool)
        """
        return _np.any(self, axis, out, keepdims, where=where)

    def all(self, axis: Any = None, out: None = None, keepdims: bool = False, *, where: Any = None) -> ArrayBase:
        """True if all of the elements over `axis` (None: all) are not 0.

        >>> x = jnp.array([1, 5, 9])
        >>> (x > 8).all()
        Array(False, dtype=bool)
        """
        return _np.all(self, axis, out, keepdims, where=where)

    def ptp(self, axis: Any = None, out: None = None, keepdims: bool = False) -> ArrayBase:
        """The largest minus the smallest element over `axis`.

        >>> jnp.array([3, 9, 4]).ptp()
        Array(6, dtype=int32)
        """
        return _np.ptp(self, axis, out, keepdims)

    def argmax(self, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> ArrayBase:
        """The index of the first largest element, in the flattened array or along an axis; int32.

        >>> jnp.array([3, 9, 4]).argmax()
        Array(1, dtype=int32)
        """
        return _np.argmax(self, axis, out, keepdims)

    def argmin(self, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> ArrayBase:
        """The index of the first smallest element, in the flattened array or along an axis; int32.

        >>> jnp.array([3, 9, 4]).argmin()
        Array(0, dtype=int32)
        """
        return _np.argmin(self, axis, out, keepdims)

    def cumsum(self, axis: int | None = None, dtype: Any = None, out: None = None) -> ArrayBase:
        """Sums of prefixes along an axis, or of the flattened array.

        >>> jnp.array([1, 2, 3]).cumsum()
        Array([1, 3, 6], dtype=int32)
        """
        return _np.cumsum(self, axis, dtype, out)

    def cumprod(self, axis: int | None = None, dtype: Any = None, out: None = None) -> ArrayBase:
        """Products of prefixes along an axis, or of the flattened array.

        >>> jnp.array([1, 2, 3]).cumprod()
        Array([1, 2, 6], dtype=int32)
        """
        return _np.cumprod(self, axis, dtype, out)

    def sort(
        self,
        axis: int | None = -1,
        *,
        kind: None = None,
        order: None = None,
        stable: bool = True,
        descending: bool = False,
    ) -> ArrayBase:
        """A sorted copy along an axis, where NumPy's method sorts in place; see `hloom.numpy.sort`.

        >>> jnp.array([3, 1, 2]).sort(), jnp.array([3, 1, 2]).sort(descending=True)
        (Array([1, 2, 3], dtype=int32), Array([3, 2, 1], dtype=int32))
        """
        return _np.sort(self, axis, kind=kind, order=order, stable=stable, descending=descending)

    def argsort(
        self,
        axis: int | None = -1,
        *,
        kind: None = None,
        order: None = None,
        stable: bool = True,
        descending: bool = False,
    ) -> ArrayBase:
        """The indices, int32, that sort along an axis; see `hloom.numpy.argsort`.

        >>> jnp.array([30, 10, 20]).argsort()
        Array([1, 2, 0], dtype=int32)
        """
        return _np.argsort(self, axis, kind=kind, order=order, stable=stable, descending=descending)

    def argpartition(self, kth: int, axis: int = -1) -> ArrayBase:
        """The indices, int32, that put the element of rank `kth` at its place; see `hloom.numpy.argpartition`.

        >>> x = jnp.array([5, 1, 4, 2])
        >>> x[x.argpartition(2)][2]
        Array(4, dtype=int32)
        """
        return _np.argpartition(self, kth, axis)

    def searchsorted(self, v: Any, side: str = "left", sorter: Any = None, *, method: str = "scan") -> ArrayBase:
        """Where elements v belong in this sorted vector, int32; see `hloom.numpy.searchsorted`.

        >>> jnp.array([10, 20, 30]).searchsorted(jnp.array([5, 20, 25]))
        Array([0, 1, 2], dtype=int32)
        """
        return _np.searchsorted(self, v, side, sorter, method=method)

    def take(
        self,
        indices: Any,
        axis: int | None = None,
        out: None = None,
        mode: str | None = None,
        unique_indices: bool = False,
        indices_are_sorted: bool = False,
        fill_value: Any = None,
    ) -> ArrayBase:
        """The elements at indices, along an axis or of the flattened array; see `hloom.numpy.take`.

        An index out of bounds reads NaN, the least signed or largest unsigned integer.

        >>> jnp.array([1.5, 2.5, 3.5]).take(jnp.array([2, 0, 9]))
        Array([3.5, 1.5, nan], dtype=float32)
        """
        return _np.take(self, indices, axis, out, mode, unique_indices, indices_are_sorted, fill_value)

    def choose(self, choices: Sequence[Any], out: None = None, mode: str = "raise") -> ArrayBase:
        """For each element, which counts choices, the element of that choice; see `hloom.numpy.choose`.

        >>> jnp.array([0, 1, 0]).choose([jnp.array([1, 2, 3]), jnp.array([10, 20, 30])])
        Array([ 1, 20,  3], dtype=int32)
        """
        return _np.choose(self, choices, out, mode)

    def compress(
        self, condition: Any, axis: int | None = None, *, out: None = None, size: int | None = None, fill_value: Any = 0
    ) -> ArrayBase:
        """The slices along an axis at which the condition is true; `size` is needed under jit; see
        `hloom.numpy.compress`.

        >>> jnp.array([1, 2, 3]).compress(jnp.array([True, False, True]))
        Array([1, 3], dtype=int32)
        """
        return _np.compress(condition, self, axis, size=size, fill_value=fill_value, out=out)

    def nonzero(self, *, fill_value: Any = None, size: int | None = None) -> tuple[ArrayBase, ...]:
        """The indices of elements that are not 0, as an array for each dimension; `size` is needed under jit.

        >>> jnp.array([0, 5, 0, 7]).nonzero()
        (Array([1, 3], dtype=int32),)
        """
        return _np.nonzero(self, size=size, fill_value=fill_value)


_METHODS = [n for n in vars(ArrayBase) if callable(vars(ArrayBase)[n]) and n != "__len__"]
boundaries(ArrayBase, "T", "mT", "real", "imag", *_METHODS)
ArrayBase.__module__ = __name__.partition(".")[0]  # users see it as `hloom.Array`
ArrayBase.__name__ = ArrayBase.__qualname__ = "Array"
if TYPE_CHECKING:
    ArrayLike: TypeAlias = ArrayBase | np.ndarray[Any, Any] | np.generic | bool | int | float | complex
else:  # checkers of types at run time, such as beartype, refuse np.ndarray[Any, Any]
    ArrayLike = ArrayBase | np.ndarray | np.generic | bool | int | float | complex
"""Arrays, tracers, NumPy arrays and scalars, Python numbers. Lists are not accepted, as in JAX."""


class _Convertible(type):
    """The class of the class of objects that say which array they are."""

    def __instancecheck__(cls, instance: object) -> bool:
        return hasattr(type(instance), "__jax_array__")


class _HasArray(metaclass=_Convertible):
    """Objects with `__jax_array__`."""


_ACCEPTED: Any = (*_OPERANDS, ArrayBase, _HasArray)


def _uncompared(array: ArrayBase, sign: str, other: Any) -> Any:
    """NotImplemented; of the containers that other operators refuse a TypeError: Python would find them unequal."""
    if type(other) in (list, tuple, set, dict):
        names = [type(side).__name__ for side in (array, other)]
        raise TypeError(f"unsupported operand type(s) for {sign}: {names[0]!r} and {names[1]!r}")
    return NotImplemented


Value: TypeAlias = ArrayBase
"""A value of a program: concrete (Array) or traced (Tracer); there is no third kind. Functions of the tracing core take
values only; `array.as_value` makes them."""
