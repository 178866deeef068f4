"""jax.numpy: making, moving, joining, indexing, sorting and counting."""

from __future__ import annotations

from functools import partial

import numpy as np

from .cases import bf16, c64, case, cases, f16, f32, f64, pred, s8, s16, s32, s64, typed, u8, u32

numpy = partial(cases, within="numpy")

# Making

numpy("zeros ones", call=lambda f: f((2, 3)))
numpy("zeros_like ones_like", f32(2, 3))
case("numpy.empty", call=lambda f: f((2, 2)))
case("numpy.empty_like", s32(2, 2))
case("numpy.full", np.float32(2.5), call=lambda f, v: f((2, 3), v))
case("numpy.full_like", f32(2, 3), np.float32(2.5))
case("numpy.arange", call=lambda f: f(2, 11, 3))
case("numpy.linspace", np.float32(1.0), np.float32(3.0), call=lambda f, a, b: f(a, b, 7))
case("numpy.logspace", np.float32(0.0), np.float32(2.0), call=lambda f, a, b: f(a, b, 5))
case("numpy.geomspace", np.float32(1.0), np.float32(9.0), call=lambda f, a, b: f(a, b, 5))
case("numpy.eye", call=lambda f: f(3, 5, 1))
case("numpy.identity", call=lambda f: f(4))
case("numpy.tri", call=lambda f: f(3, 4, 1))
case("numpy.vander", f32(4), N=3)
case("numpy.indices", call=lambda f: f((2, 3)))
case("numpy.fromfunction", call=lambda f: f(lambda i, j: i * 2 + j, (3, 4)))
case("numpy.meshgrid", f32(3), f32(4), indexing="ij")
numpy("array asarray copy", f32(2, 3))
case("numpy.astype", f32(5), call=lambda f, x: f(x, np.int16))
case("numpy.diag_indices", call=lambda f: f(4))
case("numpy.diag_indices_from", f32(3, 3))
numpy("tril_indices triu_indices", call=lambda f: f(3, 1, 4))
numpy("tril_indices_from triu_indices_from", f32(3, 4))

case("numpy.ix_", s32(2), s32(3))

# Moving

case("numpy.reshape", f32(3, 4), shape=(2, 6))
case("numpy.reshape", f32(3, 4), label="fortran", shape=(6, 2), order="F")
numpy("ravel matrix_transpose squeeze flip fliplr flipud rot90", f32(3, 1, 4))
case("numpy.ravel", f32(3, 4), label="fortran", order="F")
numpy("transpose permute_dims", f32(2, 3, 4), axes=(2, 0, 1))
case("numpy.swapaxes", f32(2, 3, 4), axis1=0, axis2=2)
case("numpy.moveaxis", f32(2, 3, 4), source=0, destination=-1)
case("numpy.rollaxis", f32(2, 3, 4), axis=2)
case("numpy.expand_dims", f32(3, 4), axis=(0, 2))
case("numpy.broadcast_to", f32(3, 1), shape=(2, 3, 4))
case("numpy.broadcast_arrays", f32(3, 1), s32(4))
numpy("atleast_1d atleast_2d atleast_3d", f32(3))
case("numpy.roll", f32(3, 4), shift=(1, -2), axis=(0, 1))
case("numpy.roll", f32(7), s32(), label="dynamic")
case("numpy.tile", f32(2, 3), reps=(2, 2))
case("numpy.repeat", f32(3, 2), repeats=2, axis=0)
case("numpy.repeat", f32(4), np.array([1, 0, 3, 2]), label="each", call=lambda f, x, n: f(x, n, total_repeat_length=6))
case("numpy.resize", f32(5), new_shape=(3, 4))
numpy("tril triu", f32(3, 4), k=1)
numpy("tril", pred(2, 3, 3), label="pred")
case("numpy.diag", f32(4), k=-1)
case("numpy.diag", f32(3, 5), label="matrix", k=1)
case("numpy.diagonal", f32(2, 3, 4), offset=1, axis1=1, axis2=2)
case("numpy.diagflat", f32(2, 2))
case("numpy.trace", f32(3, 4), offset=1)
for mode in ("constant", "edge", "reflect", "symmetric", "wrap", "linear_ramp", "mean", "maximum", "median"):
    case("numpy.pad", f32(3, 4), label=mode, pad_width=((1, 2), (2, 1)), mode=mode)

# Joining and splitting

numpy("concatenate concat", [f32(2, 3), f32(4, 3)], axis=0)
numpy("stack", [f32(2, 3), f32(2, 3)], axis=1)
numpy("vstack hstack dstack column_stack", [f32(3, 3), f32(3, 3)])
case("numpy.append", f32(3), s32(2))
case("numpy.block", f32(2, 2), f32(2, 3), call=lambda f, a, b: f([[a, b], [a * 2, b + 1]]))
numpy("split array_split", f32(6, 2), indices_or_sections=3)
case("numpy.hsplit", f32(2, 6), indices_or_sections=2)
case("numpy.vsplit", f32(4, 2), indices_or_sections=[1, 3])
case("numpy.dsplit", f32(1, 2, 4), indices_or_sections=2)
case("numpy.unstack", f32(3, 2), axis=1)
case("numpy.insert", f32(5), s32(2, low=0, high=5), f32(2))
case("numpy.delete", f32(6), call=lambda f, x: f(x, np.array([1, 4])))
case("numpy.delete", f32(6), s32(2, low=0, high=6), label="unique", assume_unique_indices=True)

# Indexing

case("numpy.take", f32(5, 3), s32(4, low=0, high=5), axis=0)
case("numpy.take", f32(5, 3), s32(2, 2, low=-2, high=4), label="wrap", axis=1, mode="wrap")
case("numpy.take", f32(5), s32(6, low=-8), label="fill", mode="fill")
case("numpy.take", c64(5), u8(6, high=5), label="c64-u8", mode="clip")
case("numpy.take_along_axis", f32(3, 4), s32(3, 2, low=0, high=4), axis=1)
case("numpy.put", f32(6), s32(2, low=0, high=6), f32(2), inplace=False)
case("numpy.put_along_axis", f32(3, 4), s32(3, 1, low=0, high=4), f32(3, 1), axis=1, inplace=False)
case("numpy.place", f32(6), pred(6), f32(3), inplace=False)
case("numpy.fill_diagonal", f32(3, 3), f32(), inplace=False)
case("numpy.choose", s32(4, low=0, high=2), [f32(4), f32(4)], mode="clip")
case("numpy.compress", f32(3, 4), call=lambda f, x: f(np.array([True, False, True]), x, axis=0, size=2))
case("numpy.extract", pred(6), f32(6), call=lambda f, m, x: f(m, x, size=4, fill_value=9.0))
case("numpy.select", f32(6), call=lambda f, x: f([x < 0, x > 1], [x, x * 10], 0.5))
case("numpy.where", pred(3, 4), f32(4), f32(3, 1))
case("numpy.where", f32(6), label="one", call=lambda f, x: f(x > 0, size=6, fill_value=-1))
numpy("nonzero flatnonzero argwhere", f32(6), call=lambda f, x: f(x > 0, size=6, fill_value=7))
case("numpy.unravel_index", s32(4, low=0, high=24), call=lambda f, i: f(i, (2, 3, 4)))
case(
    "numpy.ravel_multi_index",
    (s32(5, low=-2, high=5), s32(5, low=-2, high=6)),
    call=lambda f, i: f(i, (3, 4), mode="clip"),
)

# Sorting, sets, counting

numpy("sort argsort", f32(3, 6), axis=1)
typed("numpy.sort", [bf16, f16, f64, c64, s8, s32, u32, pred], (11,))
typed("numpy.argsort", [bf16, c64, s16, u8, pred], (11,))
numpy("sort argsort", np.array([2.0, np.nan, -0.0, 0.0, -np.inf, np.inf, np.nan, -1.0], np.float32), label="special")
numpy("sort argsort", f32(5, 4), axis=0, descending=True, label="descending")
numpy("sort_complex", f32(6))
case("numpy.lexsort", s32(8, low=0, high=3), s32(8, low=0, high=3), call=lambda f, a, b: f((a, b)))
numpy("partition argpartition", f32(3, 7), kth=3)
case("numpy.searchsorted", np.array([-1.5, -0.5, 0.0, 0.5, 1.0], np.float32), f32(2, 3))
case("numpy.searchsorted", s32(), s32(4), label="sort", call=lambda f, _, v: f(np.arange(-8, 9, 2), v, method="sort"))
case("numpy.digitize", f32(6), np.array([-1.0, 0.0, 1.0], np.float32))
case("numpy.unique", s32(9, low=0, high=4), size=6, fill_value=-1)
case("numpy.unique", s32(6, 2, low=0, high=2), label="rows", size=4, axis=0, return_counts=True, return_inverse=True)
numpy("unique_all unique_counts unique_inverse unique_values", s32(9, low=0, high=4), size=5)
numpy("union1d intersect1d setxor1d setdiff1d", s32(5, low=0, high=7), s32(5, low=0, high=7), size=8)
case("numpy.isin", s32(3, 4), s32(5))
case("numpy.bincount", s32(9, low=0, high=5), length=6)
case("numpy.bincount", s32(9, low=0, high=5), label="weights", call=lambda f, x: f(x, weights=x * 0.5, length=5))
case("numpy.histogram", f32(20), bins=5)
case("numpy.histogram_bin_edges", f32(20), bins=4)
case("numpy.histogram2d", f32(12), f32(12), bins=3)
case("numpy.histogramdd", f32(12, 2), bins=3)
case("numpy.packbits", pred(3, 11), axis=1)
case("numpy.unpackbits", u8(4, high=256))

# Index syntax. Its functions are methods of `Array.at`; the names are those functions' names

case("numpy.ndarray.__getitem__", f32(4, 5), s32(3, low=-4, high=4), call=lambda f, x, i: x[i, 1::2])
case(
    "numpy.ndarray.__getitem__",
    f32(4, 5),
    s32(2, 1, low=0, high=4),
    s32(3, low=0, high=5),
    label="two",
    call=lambda f, x, i, j: x[i, j],
)
case("numpy.ndarray.__getitem__", s64(4, 5), s64(low=0, high=4), label="s64", call=lambda f, x, i: x[i])
for update in ("set", "add", "multiply", "divide", "power", "min", "max"):
    case(
        "numpy.ndarray.at",
        f32(5, 3),
        s32(4, low=0, high=5),
        f32(4, 3, low=0.5),
        label=update,
        call=lambda f, x, i, v, update=update: getattr(x.at[i], update)(v),
    )
case(
    "numpy.ndarray.at",
    f32(5),
    s32(4, low=-9),
    label="get-fill",
    call=lambda f, x, i: x.at[i].get(mode="fill", fill_value=7.0),
)
case("numpy.ndarray.at", s32(6), s32(4, low=-9), label="add-drop", call=lambda f, x, i: x.at[i].add(10, mode="drop"))
case(
    "numpy.ndarray.at",
    f64(5),
    s32(3, low=0, high=5),
    label="apply",
    call=lambda f, x, i: x.at[i].apply(lambda v: v * v),
)
