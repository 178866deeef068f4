"""Checks of a case: hloom beside JAX or NumPy, jit and vmap beside plain calls, derivatives beside each other.

Numbers are equal, or explained: a difference of a few units in the last place is, and what the function makes of
arguments that are moved by a rounding error. For that the call is repeated in double precision with moved arguments.
So there is no tolerance for each function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np

from .kinds import Dtype, NDArray
from .libraries import Leaf, Library, NumPy, Outcome, is_array
from .table import Case

ULPS = 8.0
"""How far two correct results of an elementary function may be apart."""
GROWTH = 4.0
"""How many times the effect of one rounding error of the arguments is allowed."""
ALGORITHMS = ("linalg", "fft", "signal", "image", "ndimage")
"""Namespaces with results that have an error relative to their largest number."""
NOT_TRACEABLE = (
    *(
        "ConcretizationTypeError",
        "TracerBoolConversionError",
        "TracerIntegerConversionError",
        "TracerArrayConversionError",
    ),
    *("NonConcreteBooleanIndexError", "UnsupportedError"),
)
"""Errors of calls that need values: under jit they are no difference."""


# ---- numbers


def epsilon(dtype: np.dtype[Any]) -> float:
    """The spacing of a type's numbers at 1."""
    return float(ml_dtypes.finfo(dtype).eps)  # type: ignore[no-untyped-call]


def is_inexact(dtype: np.dtype[Any]) -> bool:
    """Floats and complex numbers, the small ones too."""
    return dtype.kind in "fc" or dtype == ml_dtypes.bfloat16 or "float" in dtype.name


def wide(array: NDArray) -> NDArray:
    """In double precision."""
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _parts(array: NDArray) -> list[NDArray]:
    return [array.real, array.imag] if array.dtype.kind == "c" else [array]


def agree(found: NDArray, expected: NDArray, bound: NDArray | float) -> bool:
    """Are all numbers equal, both NaN, or within `bound` of each other?"""
    for a, b in zip(_parts(wide(found)), _parts(wide(expected)), strict=True):
        with np.errstate(all="ignore"):
            same = (a == b) | (np.isnan(a) & np.isnan(b)) | (abs(a - b) <= bound)
        if not same.all():
            return False
    return True


def ulp_bound(expected: NDArray) -> NDArray:
    """A few units in the last place, of a complex number's magnitude."""
    size = np.abs(wide(expected))
    size = np.where(np.isfinite(size), size, 0)
    tiny = float(ml_dtypes.finfo(expected.dtype).tiny)  # type: ignore[no-untyped-call]
    return ULPS * epsilon(expected.dtype) * size + tiny


class Judge:
    """Says whether a difference between two results of a case is one of rounding."""

    def __init__(
        self, case: Case, arbiter: Library | NumPy, call: Callable[[Library, Case], Any] | None = None
    ) -> None:
        self.case, self.arbiter, self.call = case, arbiter, call
        self._runs: list[list[Leaf]] | None = None

    def accepts(self, k: int, found: NDArray, expected: NDArray) -> bool:
        """Is leaf `k` right, as far as rounding errors tell?"""
        runs = self._moved_runs()
        leaves = [run[k].value for run in runs if len(run) > k]
        if len(leaves) < 4 or any(v is None or v.shape != found.shape for v in leaves):
            return False
        exact, *moved = [wide(v) for v in leaves if v is not None]
        with np.errstate(all="ignore"):
            differences = [np.abs(m - exact) for m in moved]
            spread = np.max([np.where(np.isnan(d), np.inf, d) for d in differences], axis=0)
            spread = np.where(np.isnan(np.abs(exact)), 0, spread)
            size = np.where(np.isfinite(np.abs(exact)), np.abs(exact), 0)
            largest = float(ml_dtypes.finfo(found.dtype).max)  # type: ignore[no-untyped-call]
            scale = size.max(initial=0.0) if self.case.row.namespace.endswith(ALGORITHMS) else size
            bound = GROWTH * (spread + 4 * epsilon(found.dtype) * scale) + 16 * _least(found.dtype)
            bound = np.where(size > largest / 2, np.inf, bound)
            theirs = np.abs(wide(expected) - exact)
            ours = np.abs(wide(found) - exact)
            fine = (ours <= bound) | (ours <= 4 * theirs) | (np.isnan(wide(found)) & np.isnan(wide(expected)))
            fine |= (wide(found) == wide(expected)) | ~np.isfinite(spread)
        return bool(fine.all())

    def _moved_runs(self) -> list[list[Leaf]]:
        """Without and with errors in the arguments, in double precision."""
        if self._runs is None:
            self._runs = []
            for seed in range(7):
                made = move(self.case, seed)
                self._runs.append(self.arbiter.run(made, self.call).leaves)
        return self._runs


def _least(dtype: np.dtype[Any]) -> float:
    return float(ml_dtypes.finfo(dtype).tiny)  # type: ignore[no-untyped-call]


def move(case: Case, seed: int) -> Case:
    """The case in double precision; with a seed other than 0 the arguments have errors of one unit."""
    rng = np.random.default_rng(seed)

    def moved(value: Any) -> Any:
        if isinstance(value, list):
            return [moved(v) for v in value]
        if isinstance(value, Dtype) and "float" in value.name:
            return Dtype("float64")
        if not isinstance(value, np.ndarray) or not is_inexact(value.dtype):
            return value
        size = epsilon(value.dtype)
        made = wide(value)
        if seed and value.size:
            with np.errstate(all="ignore"):
                made = made * (1 + size * rng.uniform(-1, 1, value.shape))
        return made

    return replace(case, args=[moved(a) for a in case.args],
                   options={k: moved(v) for k, v in case.options.items()}, wide=True)  # fmt: skip


def compare_values(found: Outcome, expected: Outcome, judge: Judge) -> Iterator[str]:
    """The difference between two results with the same types."""
    for k, (a, b) in enumerate(zip(found.leaves, expected.leaves, strict=True)):
        if a.value is None or b.value is None or a.value.shape != b.value.shape:
            continue
        x, y = a.value, b.value
        if not is_inexact(x.dtype) or not is_inexact(y.dtype):
            if not np.array_equal(x, y):
                yield f"values [{k}]: {short(x)} and not {short(y)}"
        elif not agree(x, y, ulp_bound(y)) and not judge.accepts(k, x, y):
            yield f"values [{k}]: {short(x)} and not {short(y)}, {distance(x, y)}"


def distance(found: NDArray, expected: NDArray) -> str:
    """How far the two are apart."""
    a, b = wide(found), wide(expected)
    with np.errstate(all="ignore"):
        ulps = np.abs(a - b) / (epsilon(found.dtype) * np.abs(b))
    k = int(np.argmax(np.where(a == b, -1, np.nan_to_num(ulps, nan=1e30))))
    return f"most at {k}: {a.ravel()[k]:.9g} and not {b.ravel()[k]:.9g}, {ulps.ravel()[k]:.3g} ulps"


def short(array: NDArray) -> str:
    text = np.array2string(array, threshold=24, precision=9).replace("\n", "")
    return f"{array.dtype.name} {text[:100]}"


# ---- beside JAX


def beside(found: Outcome, expected: Outcome, judge: Judge) -> Iterator[str]:
    """Errors, types and values of two libraries."""
    if (found.error is None) != (expected.error is None):
        mine = f"{type(found.error).__name__}: {str(found.error)[:160]}" if found.error else "a result"
        theirs = f"{type(expected.error).__name__}: {str(expected.error)[:160]}" if expected.error else "a result"
        yield f"errors: {mine} -- and not {theirs}"
    elif expected.error is not None:
        if not _same_error(found, expected):
            yield (
                f"error class: {type(found.error).__name__} ({str(found.error)[:90]!r}) "
                f"and not {type(expected.error).__name__} ({str(expected.error)[:90]!r})"
            )
    elif [x.type_name() for x in found.leaves] != [x.type_name() for x in expected.leaves]:
        mine, theirs = (", ".join(x.type_name() for x in o.leaves)[:200] for o in (found, expected))
        yield f"types: {mine} and not {theirs}"
    else:
        yield from compare_values(found, expected, judge)


def _same_error(found: Outcome, expected: Outcome) -> bool:
    """An error that JAX's name would catch."""
    theirs = expected.error_names()[0]
    return theirs in found.error_names() or theirs in ("JaxRuntimeError", "XlaRuntimeError")


# ---- beside NumPy


def beside_numpy(case: Case, ours: Library, numpy: NumPy) -> tuple[bool, list[str]]:
    """(was anything compared, what differs): the numbers of results with the same shapes."""
    expected = numpy.run(case)
    if expected.error is not None:
        return False, []
    found = ours.run(case)
    if found.error is not None:  # whether it is right, JAX says
        return False, []
    if [_shape(x) for x in found.leaves] != [_shape(x) for x in expected.leaves]:
        return True, [f"shapes: {[_shape(x) for x in found.leaves]} and not {[_shape(x) for x in expected.leaves]}"]
    rounded = [_rounded(e, f) for e, f in zip(expected.leaves, found.leaves, strict=True)]
    return True, list(compare_values(found, Outcome(rounded), Judge(case, numpy)))


def _shape(leaf: Leaf) -> tuple[int, ...]:
    return () if leaf.value is None else leaf.value.shape


def _rounded(expected: Leaf, found: Leaf) -> Leaf:
    """NumPy's result in the dtype of ours, where that is a narrower one of the same kind."""
    if found.value is None or expected.value is None:
        return found
    with np.errstate(all="ignore"):
        if is_inexact(found.value.dtype) and found.value.dtype.kind != "c" and expected.value.dtype.kind == "c":
            return expected
        return Leaf(expected.value.astype(found.value.dtype), False)


# ---- transformations


def jitted(library: Library, case: Case) -> Any:
    """The call under jit, arrays as arguments."""
    arrays, rebuild = split(case)
    function = case.row.function(library.package)

    def f(*values: Any) -> Any:
        args, options = rebuild(library, values)
        return function(*args, **options)

    return library.root.jit(f)(*[library.argument(a) for a in arrays])


def vmapped(library: Library, case: Case) -> Any:
    """The call on two stacked elements; the first one is the case."""
    arrays, rebuild = split(case)
    function = case.row.function(library.package)

    def f(*values: Any) -> Any:
        args, options = rebuild(library, values)
        return function(*args, **options)

    stacked = [np.stack([a, a]) for a in arrays]
    result = library.root.vmap(f)(*[library.argument(a) for a in stacked])
    return [part[0] for part in library.root.tree.leaves(result)]


def split(case: Case) -> tuple[list[NDArray], Callable[[Library, Any], tuple[list[Any], dict[str, Any]]]]:
    """The arrays of a case, and how its arguments are made of other values in their places."""
    arrays: list[NDArray] = []

    def collect(value: Any) -> Any:
        if isinstance(value, list) and is_array(value):
            return [collect(v) for v in value]
        if is_array(value):
            arrays.append(value)
            return _Place(len(arrays) - 1)
        return value

    args = [collect(a) for a in case.args]
    options = {k: collect(v) for k, v in case.options.items()}

    def rebuild(library: Library, values: Any) -> tuple[list[Any], dict[str, Any]]:
        def made(value: Any) -> Any:
            if isinstance(value, _Place):
                return values[value.k]
            if isinstance(value, list):
                return [made(v) for v in value]
            return library.argument(value)

        return [made(a) for a in args], {k: made(v) for k, v in options.items()}

    return arrays, rebuild


class _Place:
    """Stands for an array."""

    def __init__(self, k: int) -> None:
        self.k = k


def transformed(library: Library, case: Case, plain: Outcome, judge: Judge, how: str) -> Iterator[str]:
    """jit or vmap beside the plain call."""
    outcome = library.run(case, {"jit": jitted, "vmap": vmapped}[how])
    if outcome.error is not None:
        if not {*NOT_TRACEABLE} & {*outcome.error_names()}:
            yield f"{how}: {type(outcome.error).__name__}: {str(outcome.error)[:200]}"
        return
    arrays = [leaf for leaf in plain.leaves if leaf.value is not None]
    made = [leaf for leaf in outcome.leaves if leaf.value is not None]
    if len(arrays) != len(made) or len(arrays) != len(plain.leaves):
        return
    if [x.type_name() for x in made] != [x.type_name() for x in arrays]:
        mine, theirs = (", ".join(x.type_name() for x in o)[:200] for o in (made, arrays))
        yield f"{how}: types {mine} and not {theirs}"
        return
    yield from (f"{how}: {text}" for text in compare_values(Outcome(made), Outcome(arrays), judge))


# ---- derivatives


def movable(case: Case) -> bool:
    """Has it an array of floats?"""
    arrays, _ = split(case)
    return any(is_inexact(a.dtype) and a.size for a in arrays)


def _scalar_function(library: Library, case: Case) -> tuple[Callable[..., Any], list[NDArray]]:
    """The weighted sum of all results, as a function of the arrays of floats."""
    arrays, rebuild = split(case)
    moving = [k for k, a in enumerate(arrays) if is_inexact(a.dtype)]
    function = case.row.function(library.package)

    def f(*values: Any) -> Any:
        filled = [library.argument(a) for a in arrays]
        for k, v in zip(moving, values, strict=True):
            filled[k] = v
        args, options = rebuild(library, filled)
        total: Any = 0.0
        for leaf in library.root.tree.leaves(function(*args, **options)):
            if not hasattr(leaf, "dtype") or str(leaf.dtype).startswith("key<") or not is_inexact(np.dtype(leaf.dtype)):
                continue
            weights = np.cos(np.arange(leaf.size) + 1).reshape(leaf.shape)
            part = leaf.real * 1.0 + (leaf.imag * 0.5 if np.dtype(leaf.dtype).kind == "c" else 0)
            total = total + (part * library.numpy.asarray(weights, part.dtype)).sum()
        return total

    return f, [arrays[k] for k in moving]


def gradient(library: Library, case: Case) -> Any:
    """In reverse mode, with respect to all arrays of floats."""
    f, moving = _scalar_function(library, case)
    return library.root.grad(f, tuple(range(len(moving))))(*[library.argument(a) for a in moving])


def directional(library: Library, case: Case) -> Any:
    """<gradient, direction> in forward and in reverse mode."""
    f, moving = _scalar_function(library, case)
    rng = np.random.default_rng(0)
    points = [library.argument(a) for a in moving]
    directions = [np.asarray(rng.uniform(-1, 1, a.shape), a.dtype) for a in moving]
    forward = library.root.jvp(f, points, [library.argument(d) for d in directions])[1]
    back = library.root.grad(f, tuple(range(len(moving))))(*points)
    reverse = sum(np.real(wide(np.asarray(g)) * wide(d)).sum() for g, d in zip(back, directions, strict=True))
    size = sum(np.abs(wide(np.asarray(g)) * wide(d)).sum() for g, d in zip(back, directions, strict=True))
    return np.asarray(forward, np.float64), np.float64(reverse), np.float64(size)


def modes(library: Library, case: Case) -> Iterator[str]:
    """Forward mode beside reverse mode, and beside differences, in double precision."""
    doubled = move(case, 0)
    outcome = library.run(doubled, directional)
    if outcome.error is not None:
        return
    forward, reverse, size = (float(leaf.value) for leaf in outcome.leaves if leaf.value is not None)
    if not np.isfinite([forward, reverse, size]).all():
        if np.isnan(forward) != np.isnan(reverse) and all(map(_is_finite, library.run(doubled).leaves)):
            yield f"modes: forward {forward}, reverse {reverse}"
        return
    if abs(forward - reverse) > 1e-7 * (size + abs(forward)) + 1e-12:
        yield f"modes: forward {forward}, reverse {reverse}"
    differences = [library.run(doubled, lambda lib, c, h=h: _difference(lib, c, h)) for h in (1e-6, 3e-7)]
    numbers = [float(o.leaves[0].value) for o in differences if o.error is None and o.leaves]  # type: ignore[arg-type]
    if len(numbers) < 2 or not np.isfinite(numbers).all():
        return
    first, second = numbers
    if abs(first - second) > 1e-4 * (abs(first) + size):
        return  # not smooth here
    if abs(forward - second) > 2e-3 * (abs(second) + size) + 1e-6:
        yield f"differences: forward {forward}, differences {second}"


def _is_finite(leaf: Leaf) -> bool:
    return leaf.value is None or not is_inexact(leaf.value.dtype) or bool(np.isfinite(wide(leaf.value)).all())


def _difference(library: Library, case: Case, step: float) -> Any:
    f, moving = _scalar_function(library, case)
    rng = np.random.default_rng(0)
    directions = [np.asarray(rng.uniform(-1, 1, a.shape), a.dtype) for a in moving]
    ahead, behind = (
        np.asarray(
            f(*[library.argument(a + s * step * d) for a, d in zip(moving, directions, strict=True)]), np.float64
        )
        for s in (1, -1)
    )
    return np.float64((ahead - behind) / (2 * step))


# ---- all


def differences(
    case: Case, ours: Library, theirs: Library | None, parts: str = "plain jit vmap grad modes"
) -> list[str]:
    """All that is wrong with a case."""
    found = ours.run(case)
    judge = Judge(case, theirs or ours)
    complaints: list[str] = []
    if theirs is not None:
        complaints += beside(found, theirs.run(case), judge)
    if found.error is not None:
        return complaints
    arrays, _ = split(case)
    if arrays:
        for how in ("jit", "vmap"):
            if how in parts:
                complaints += transformed(ours, case, found, judge, how)
        if movable(case):
            if "grad" in parts and theirs is not None:
                mine, other = ours.run(case, gradient), theirs.run(case, gradient)
                complaints += (f"grad: {c}" for c in beside(mine, other, Judge(case, theirs, gradient)))
            if "modes" in parts:
                complaints += modes(ours, case)
    return complaints
