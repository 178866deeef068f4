# ruff: noqa: E501  # a program on one line
"""Typical mistakes, as programs for hloom and for JAX: what their messages must name is beside each.

`tools/jax_messages.py` records JAX's messages; `tests/test_mistakes.py` judges those of hloom.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

F32, I32 = np.float32, np.int32
ONES = partial(np.ones, dtype=F32)


@dataclass(frozen=True)
class Mistake:
    """A program with a mistake. The message names `function`, one of the arguments to blame (or its place), and has
    all of `words`: shapes, dtypes and values in NumPy's form."""

    call: Callable[[Any], Any]
    function: str
    argument: str
    words: tuple[str, ...] = ()


MISTAKES: dict[str, Mistake] = {}


FILE = Path(__file__).resolve().parent.parent / "data" / "jax_messages.json"
VERSION = "0.10.2"
NAMESPACES = (
    *("flatten_util", "image", "lax", "nn.initializers", "numpy.linalg", "ops", "random", "scipy.linalg"),
    *("scipy.ndimage", "scipy.optimize", "scipy.signal", "scipy.sparse.linalg", "scipy.special", "scipy.stats"),
    *("sharding", "tree", "tree_util"),
)


def with_namespaces(library: str) -> Any:
    """The module of a library, with the namespaces that the programs use."""
    for name in NAMESPACES:
        importlib.import_module(f"{library}.{name}")
    return importlib.import_module(library)


def error_of(name: str, library: Any) -> BaseException | None:
    """The error that a program raises; None if it raises none."""
    try:
        MISTAKES[name].call(library)
    except Exception as error:
        return error
    return None


def _table(rows: dict[str, tuple[str, str, tuple[str, ...], Callable[[Any], Any]]]) -> None:
    for name, (function, argument, words, call) in rows.items():
        assert name not in MISTAKES, name
        MISTAKES[name] = Mistake(call, function, argument, words)


def jnp_ones(j: Any, *shape: int, dtype: Any = F32) -> Any:
    """An array of ones, of the library `j`."""
    return j.numpy.ones(shape, dtype)


# fmt: off
_table({
    # ---- elements
    "add shapes": ("add", "x2", ("(3,)", "(4,)"), lambda j: j.numpy.add(jnp_ones(j, 3), jnp_ones(j, 4))),
    "operator shapes": ("add", "other", ("(3,)", "(4,)"), lambda j: jnp_ones(j, 3) + jnp_ones(j, 4)),
    "matmul operator": ("matmul", "other", ("(2, 3)", "(2, 3)"), lambda j: jnp_ones(j, 2, 3) @ jnp_ones(j, 2, 3)),
    "bitwise_and of floats": ("bitwise_and", "x1", ("float32",), lambda j: j.numpy.bitwise_and(jnp_ones(j, 3), 1)),
    "operator and of floats": ("and", "other", ("float32",), lambda j: jnp_ones(j, 3) & 1),
    "shift of floats": ("left_shift", "x", ("float32",), lambda j: j.numpy.left_shift(jnp_ones(j, 3), 1)),
    "invert of floats": ("invert", "float32 (3,)", ("float32",), lambda j: ~jnp_ones(j, 3)),
    "negative of booleans": ("negative", "x", ("bool",), lambda j: j.numpy.negative(jnp_ones(j, 3, dtype=bool))),
    "subtract of booleans": ("subtract", "x1", ("bool",), lambda j: j.numpy.subtract(jnp_ones(j, 3, dtype=bool), jnp_ones(j, 3, dtype=bool))),
    "sin of a list": ("sin", "x", ("list",), lambda j: j.numpy.sin([1.0, 2.0])),
    "sin of text": ("sin", "x", ("str",), lambda j: j.numpy.sin("a")),
    "exp of None": ("exp", "x", ("None",), lambda j: j.numpy.exp(None)),
    "less of complex": ("lt", "x", ("complex64",), lambda j: j.lax.lt(jnp_ones(j, 3, dtype=np.complex64), jnp_ones(j, 3, dtype=np.complex64))),
    "floor of complex": ("floor", "x", ("complex64",), lambda j: j.numpy.floor(jnp_ones(j, 3, dtype=np.complex64))),
    "clip shapes": ("clip", "min", ("(3,)", "(4,)"), lambda j: j.numpy.clip(jnp_ones(j, 3), jnp_ones(j, 4))),
    "where one branch": ("where", "y", (), lambda j: j.numpy.where(jnp_ones(j, 3) > 0, jnp_ones(j, 3))),
    "where shapes": ("where", "x", ("(3,)", "(4,)"), lambda j: j.numpy.where(jnp_ones(j, 3) > 0, jnp_ones(j, 4), 0.0)),
    "gcd of floats": ("gcd", "x1", ("float32",), lambda j: j.numpy.gcd(jnp_ones(j, 3), 2)),
    "object array": ("asarray", "a", ("object",), lambda j: j.numpy.asarray(np.array([{}, None]))),
    "ragged list": ("array", "object", (), lambda j: j.numpy.array([[1.0, 2.0], [3.0]])),
    "text as dtype": ("zeros", "dtype", ("flot32",), lambda j: j.numpy.zeros(3, "flot32")),
    "text as array": ("asarray", "a", ("str",), lambda j: j.numpy.asarray("abc")),
    "negative size": ("zeros", "shape", ("-1",), lambda j: j.numpy.zeros((2, -1))),
    "float size": ("zeros", "shape", ("2.5",), lambda j: j.numpy.zeros(2.5)),
    "two sizes not in a tuple": ("zeros", "dtype", ("3",), lambda j: j.numpy.zeros(2, 3)),
    "arange of text": ("arange", "start", ("a",), lambda j: j.numpy.arange("a")),
    "linspace of a float count": ("linspace", "num", ("2.5",), lambda j: j.numpy.linspace(0, 1, 2.5)),
    "linspace of a negative count": ("linspace", "num", ("-2",), lambda j: j.numpy.linspace(0, 1, -2)),
    "eye of a float": ("eye", "N", ("2.0",), lambda j: j.numpy.eye(2.0)),
    # ---- shapes
    "reshape sizes": ("reshape", "shape", ("(3,)", "(2, 2)"), lambda j: j.numpy.reshape(jnp_ones(j, 3), (2, 2))),
    "reshape method": ("reshape", "2, 2", ("(3,)", "(2, 2)"), lambda j: jnp_ones(j, 3).reshape(2, 2)),
    "reshape two unknown": ("reshape", "shape", ("(-1, -1)",), lambda j: j.numpy.reshape(jnp_ones(j, 4), (-1, -1))),
    "reshape indivisible": ("reshape", "shape", ("(3,)", "(2, -1)"), lambda j: j.numpy.reshape(jnp_ones(j, 3), (2, -1))),
    "concatenate ranks": ("concatenate", "arrays", ("(3, 3)", "(3,)"), lambda j: j.numpy.concatenate([jnp_ones(j, 3, 3), jnp_ones(j, 3)])),
    "concatenate sizes": ("concatenate", "arrays", ("(2, 3)", "(2, 4)"), lambda j: j.numpy.concatenate([jnp_ones(j, 2, 3), jnp_ones(j, 2, 4)])),
    "concatenate nothing": ("concatenate", "arrays", (), lambda j: j.numpy.concatenate([])),
    "concatenate two arguments": ("concatenate", "axis", ("(3,)",), lambda j: j.numpy.concatenate(jnp_ones(j, 3), jnp_ones(j, 3))),
    "stack shapes": ("stack", "arrays", ("(3,)", "(4,)"), lambda j: j.numpy.stack([jnp_ones(j, 3), jnp_ones(j, 4)])),
    "hstack": ("hstack", "tup", ("(2, 3)", "(3, 3)"), lambda j: j.numpy.hstack([jnp_ones(j, 2, 3), jnp_ones(j, 3, 3)])),
    "split unequal": ("split", "indices_or_sections", ("(5,)", "2"), lambda j: j.numpy.split(jnp_ones(j, 5), 2)),
    "transpose axes": ("transpose", "axes", ("(0, 0)",), lambda j: j.numpy.transpose(jnp_ones(j, 2, 3), (0, 0))),
    "transpose too many": ("transpose", "axes", ("(2, 3)", "(0, 1, 2)"), lambda j: j.numpy.transpose(jnp_ones(j, 2, 3), (0, 1, 2))),
    "swapaxes": ("swapaxes", "axis2", ("2", "(2, 3)"), lambda j: j.numpy.swapaxes(jnp_ones(j, 2, 3), 0, 2)),
    "squeeze": ("squeeze", "axis", ("(2, 3)",), lambda j: j.numpy.squeeze(jnp_ones(j, 2, 3), 0)),
    "expand_dims": ("expand_dims", "axis", ("5",), lambda j: j.numpy.expand_dims(jnp_ones(j, 3), 5)),
    "broadcast_to": ("broadcast_to", "shape", ("(3,)", "(2, 4)"), lambda j: j.numpy.broadcast_to(jnp_ones(j, 3), (2, 4))),
    "tile of text": ("tile", "reps", ("a",), lambda j: j.numpy.tile(jnp_ones(j, 3), "a")),
    "pad width": ("pad", "pad_width", ("(2, 3)",), lambda j: j.numpy.pad(jnp_ones(j, 2, 3), ((1, 1), (1, 1), (1, 1)))),
    "pad mode": ("pad", "mode", ("'zeros'",), lambda j: j.numpy.pad(jnp_ones(j, 3), 1, mode="zeros")),
    "roll axis": ("roll", "axis", ("3", "(2, 3)"), lambda j: j.numpy.roll(jnp_ones(j, 2, 3), 1, axis=3)),
    "flip axis": ("flip", "axis", ("1", "(3,)"), lambda j: j.numpy.flip(jnp_ones(j, 3), axis=1)),
    "moveaxis": ("moveaxis", "destination", ("(2, 3)",), lambda j: j.numpy.moveaxis(jnp_ones(j, 2, 3), 0, 2)),
    # ---- reductions and order
    "sum axis": ("sum", "axis", ("2", "(3,)"), lambda j: j.numpy.sum(jnp_ones(j, 3), axis=2)),
    "sum axis text": ("sum", "axis", ("'x'",), lambda j: j.numpy.sum(jnp_ones(j, 3), axis="x")),
    "mean of a list": ("mean", "a", ("list",), lambda j: j.numpy.mean([1.0, 2.0])),
    "max of nothing": ("max", "a", ("(0,)",), lambda j: j.numpy.max(jnp_ones(j, 0))),
    "argmax of nothing": ("argmax", "a", ("(0,)",), lambda j: j.numpy.argmax(jnp_ones(j, 0))),
    "argmax axes": ("argmax", "axis", ("(0, 1)",), lambda j: j.numpy.argmax(jnp_ones(j, 2, 3), axis=(0, 1))),
    "sort axis": ("sort", "axis", ("1", "(3,)"), lambda j: j.numpy.sort(jnp_ones(j, 3), axis=1)),
    "cumsum axis": ("cumsum", "axis", ("1", "(3,)"), lambda j: j.numpy.cumsum(jnp_ones(j, 3), axis=1)),
    "median axis": ("median", "axis", ("1", "(3,)"), lambda j: j.numpy.median(jnp_ones(j, 3), axis=1)),
    "quantile method": ("quantile", "method", ("'middle'",), lambda j: j.numpy.quantile(jnp_ones(j, 3), 0.5, method="middle")),
    "average weights": ("average", "weights", ("(2, 3)", "(4,)"), lambda j: j.numpy.average(jnp_ones(j, 2, 3), weights=jnp_ones(j, 4))),
    "keepdims misspelled": ("sum", "keep_dims", (), lambda j: j.numpy.sum(jnp_ones(j, 3), keep_dims=True)),
    "unknown argument": ("zeros", "type", (), lambda j: j.numpy.zeros(3, type=F32)),
    "missing argument": ("dot", "b", (), lambda j: j.numpy.dot(jnp_ones(j, 3))),
    # ---- products
    "dot": ("dot", "b", ("(3,)", "(4,)"), lambda j: j.numpy.dot(jnp_ones(j, 3), jnp_ones(j, 4))),
    "matmul": ("matmul", "b", ("(2, 3)", "(4, 5)"), lambda j: j.numpy.matmul(jnp_ones(j, 2, 3), jnp_ones(j, 4, 5))),
    "matmul batches": ("matmul", "b", ("(2, 3, 3)", "(4, 3, 3)"), lambda j: j.numpy.matmul(jnp_ones(j, 2, 3, 3), jnp_ones(j, 4, 3, 3))),
    "matmul of a number": ("matmul", "b", ("()",), lambda j: j.numpy.matmul(jnp_ones(j, 3), 2.0)),
    "einsum sizes": ("einsum", "ij,jk->ik", ("(2, 3)", "(4, 5)"), lambda j: j.numpy.einsum("ij,jk->ik", jnp_ones(j, 2, 3), jnp_ones(j, 4, 5))),
    "einsum ranks": ("einsum", "ijk", ("(2, 3)",), lambda j: j.numpy.einsum("ijk->i", jnp_ones(j, 2, 3))),
    "einsum operands": ("einsum", "ij,jk", (), lambda j: j.numpy.einsum("ij,jk", jnp_ones(j, 2, 3))),
    "einsum output": ("einsum", "z", ("ij->iz",), lambda j: j.numpy.einsum("ij->iz", jnp_ones(j, 2, 3))),
    "tensordot": ("tensordot", "axes", ("(2, 3)", "(2, 3)"), lambda j: j.numpy.tensordot(jnp_ones(j, 2, 3), jnp_ones(j, 2, 3), 1)),
    "vdot": ("vdot", "b", ("(3,)", "(4,)"), lambda j: j.numpy.vdot(jnp_ones(j, 3), jnp_ones(j, 4))),
    "outer cross": ("cross", "b", ("(4,)",), lambda j: j.numpy.cross(jnp_ones(j, 4), jnp_ones(j, 4))),
    "convolve": ("convolve", "v", ("(2, 2)",), lambda j: j.numpy.convolve(jnp_ones(j, 3), jnp_ones(j, 2, 2))),
    "convolve mode": ("convolve", "mode", ("'SAME'",), lambda j: j.numpy.convolve(jnp_ones(j, 3), jnp_ones(j, 2), mode="SAME")),
    "polyfit": ("polyfit", "y", ("(3,)", "(4,)"), lambda j: j.numpy.polyfit(jnp_ones(j, 3), jnp_ones(j, 4), 1)),
    "interp": ("interp", "fp", ("(3,)", "(4,)"), lambda j: j.numpy.interp(0.5, jnp_ones(j, 3), jnp_ones(j, 4))),
    # ---- indexing
    "index too many": ("getitem", "index", ("(3,)",), lambda j: jnp_ones(j, 3)[0, 0]),
    "index by float": ("getitem", "1.0", ("1.0",), lambda j: jnp_ones(j, 3)[1.0]),
    "index by text": ("getitem", "'a'", ("'a'",), lambda j: jnp_ones(j, 3)["a"]),
    "index by list": ("getitem", "list", ("[0, 1]",), lambda j: jnp_ones(j, 3)[[0, 1]]),
    "index by float array": ("getitem", "index", ("float32",), lambda j: jnp_ones(j, 3)[jnp_ones(j, 2)]),
    "index mask shape": ("getitem", "index", ("(3,)", "(4,)"), lambda j: jnp_ones(j, 3)[np.ones(4, bool)]),
    "index arrays shapes": ("getitem", "index", ("(2,)", "(3,)"), lambda j: jnp_ones(j, 4, 4)[np.arange(2), np.arange(3)]),
    "item assignment": ("setitem", "index", (), lambda j: jnp_ones(j, 3).__setitem__(0, 1.0)),
    "set shapes": ("set", "values", ("(2,)", "(3,)"), lambda j: jnp_ones(j, 5).at[:2].set(jnp_ones(j, 3))),
    "at mode": ("set", "mode", ("'wrong'",), lambda j: jnp_ones(j, 5).at[0].set(1.0, mode="wrong")),
    "take axis": ("take", "axis", ("2", "(3,)"), lambda j: j.numpy.take(jnp_ones(j, 3), 0, axis=2)),
    "take float": ("take", "indices", ("float32",), lambda j: j.numpy.take(jnp_ones(j, 3), jnp_ones(j, 2))),
    "take_along_axis": ("take_along_axis", "indices", ("(2, 3)", "(3,)"), lambda j: j.numpy.take_along_axis(jnp_ones(j, 2, 3), np.arange(3), axis=1)),
    "mask in jit": ("jit", "x", ("bool",), lambda j: j.jit(lambda x: x[x > 0])(ONES(3))),
    "nonzero in jit": ("nonzero", "size", (), lambda j: j.jit(lambda x: j.numpy.nonzero(x))(ONES(3))),
    "unique in jit": ("unique", "size", (), lambda j: j.jit(lambda x: j.numpy.unique(x))(ONES(3))),
    "slice in jit": ("getitem", "n", (), lambda j: j.jit(lambda x, n: x[:n])(ONES(3), 2)),
    # ---- traced values
    "if": ("bool", "argument x", (), lambda j: j.jit(lambda x: 1.0 if x > 0 else 2.0)(1.0)),
    "zeros of a traced size": ("zeros", "argument n", (), lambda j: j.jit(lambda n: j.numpy.zeros(n))(3)),
    "range of a traced count": ("index", "argument n", (), lambda j: j.jit(lambda n: list(range(n)))(3)),
    "float of a traced value": ("float", "argument x", (), lambda j: j.jit(lambda x: float(x))(1.0)),
    "NumPy of a traced value": ("array", "argument x", (), lambda j: j.jit(lambda x: np.sin(x))(1.0)),
    "item of a traced value": ("item", "argument x", (), lambda j: j.jit(lambda x: x.item())(1.0)),
    "reshape by a traced size": ("reshape", "argument n", (), lambda j: j.jit(lambda x, n: x.reshape(n, -1))(ONES(4), 2)),
    "arange of a traced stop": ("arange", "argument n", (), lambda j: j.jit(lambda n: j.numpy.arange(n))(3)),
    "axis that is traced": ("sum", "argument a", (), lambda j: j.jit(lambda x, a: j.numpy.sum(x, axis=a))(ONES(3), 0)),
    "leak": ("", "x", (), lambda j: _leak(j)),
    # ---- jit, grad, vmap
    "jit of a string": ("jit", "s", ("'a'",), lambda j: j.jit(lambda s: s)("a")),
    "jit result": ("jit", "<lambda>", ("'a'",), lambda j: j.jit(lambda x: "a")(1.0)),
    "jit static unhashable": ("jit", "static argument 0", ("list",), lambda j: j.jit(lambda n: n, static_argnums=0)([1])),
    "jit static out of range": ("jit", "static_argnums", ("3",), lambda j: j.jit(lambda n: n, static_argnums=3)(1)),
    "jit static name": ("jit", "static_argnames", ("'m'",), lambda j: j.jit(lambda n: n, static_argnames="m")(1)),
    "jit of no function": ("jit", "fun", ("int",), lambda j: j.jit(3)),
    "jit arguments": ("<lambda>", "y", (), lambda j: j.jit(lambda x, y: x)(1.0)),
    "grad of an array result": ("grad", "<lambda>", ("(3,)",), lambda j: j.grad(lambda x: x * 2)(ONES(3))),
    "grad of integers": ("grad", "x", ("int32",), lambda j: j.grad(lambda x: x * 2.0)(np.int32(1))),
    "grad of an integer result": ("grad", "<lambda>", ("int32",), lambda j: j.grad(lambda x: x.astype(I32))(1.0)),
    "grad of a tuple result": ("grad", "has_aux", (), lambda j: j.grad(lambda x: (x, x))(1.0)),
    "grad argnums": ("grad", "argnums", ("2",), lambda j: j.grad(lambda x: x, argnums=2)(1.0)),
    "grad has_aux": ("grad", "has_aux", (), lambda j: j.grad(lambda x: x, has_aux=True)(1.0)),
    "jvp tangents": ("jvp", "tangents", ("(3,)", "(4,)"), lambda j: j.jvp(lambda x: x, (ONES(3),), (ONES(4),))),
    "jvp dtypes": ("jvp", "tangents", ("float32", "int32"), lambda j: j.jvp(lambda x: x, (ONES(3),), (np.ones(3, I32),))),
    "vjp cotangent": ("vjp", "argument to vjp function", ("(3,)", "(4,)"), lambda j: j.vjp(lambda x: x * 2, ONES(3))[1](ONES(4))),
    "vjp structure": ("vjp", "argument to vjp function", (), lambda j: j.vjp(lambda x: x * 2, ONES(3))[1]((ONES(3), ONES(3)))),
    "vmap sizes": ("vmap", "y", ("(3,)", "(4,)"), lambda j: j.vmap(lambda x, y: x)(ONES(3), ONES(4))),
    "vmap of scalars": ("vmap", "x", ("()",), lambda j: j.vmap(lambda x: x)(1.0)),
    "vmap in_axes": ("vmap", "in_axes", (), lambda j: j.vmap(lambda x: x, in_axes=(None,))(ONES(3))),
    "vmap in_axes length": ("vmap", "in_axes", (), lambda j: j.vmap(lambda x: x, in_axes=(0, 0))(ONES(3))),
    "vmap axis": ("vmap", "x", ("(3,)", "1"), lambda j: j.vmap(lambda x: x, in_axes=1)(ONES(3))),
    "vmap out_axes": ("vmap", "out_axes", ("None",), lambda j: j.vmap(lambda x: x, out_axes=None)(ONES(3))),
    "vmap if": ("bool", "bool ()", (), lambda j: j.vmap(lambda x: 1.0 if x > 0 else 2.0)(ONES(3))),
    "checkpoint of a number": ("checkpoint", "fun", ("int",), lambda j: j.checkpoint(3)),
    # ---- control flow
    "scan carry shape": ("scan", "c", ("(3,)", "()"), lambda j: j.lax.scan(lambda c, x: (c.sum(), x), ONES(3), ONES(5))),
    "scan carry dtype": ("scan", "c", ("int32", "float32"), lambda j: j.lax.scan(lambda c, x: (c + x, x), np.int32(0), ONES(5))),
    "scan result": ("scan", "<lambda>", (), lambda j: j.lax.scan(lambda c, x: c, 0.0, ONES(5))),
    "scan lengths": ("scan", "xs", ("(3,)", "(4,)"), lambda j: j.lax.scan(lambda c, x: (c, None), 0.0, (ONES(3), ONES(4)))),
    "scan without length": ("scan", "length", (), lambda j: j.lax.scan(lambda c, x: (c, None), 0.0, None)),
    "scan of scalars": ("scan", "xs", ("()",), lambda j: j.lax.scan(lambda c, x: (c, None), 0.0, 1.0)),
    "cond types": ("cond", "false_fun", ("float32", "int32"), lambda j: j.lax.cond(True, lambda: F32(1), lambda: I32(1))),
    "cond shapes": ("cond", "false_fun", ("(3,)", "(4,)"), lambda j: j.lax.cond(True, lambda: ONES(3), lambda: ONES(4))),
    "cond structures": ("cond", "false_fun", ("tuple",), lambda j: j.lax.cond(True, lambda: 1.0, lambda: (1.0, 1.0))),
    "cond predicate": ("cond", "pred", ("(3,)",), lambda j: j.lax.cond(ONES(3) > 0, lambda: 1.0, lambda: 2.0)),
    "cond no function": ("cond", "false_fun", (), lambda j: j.lax.cond(True, lambda: 1.0, 2.0)),
    "switch index": ("switch", "index", ("float32",), lambda j: j.lax.switch(F32(1), [lambda: 1.0, lambda: 2.0])),
    "switch nothing": ("switch", "branches", (), lambda j: j.lax.switch(0, [])),
    "while_loop shapes": ("while_loop", "x", ("(3,)", "(4,)"), lambda j: j.lax.while_loop(lambda x: x.sum() < 3, lambda x: j.numpy.append(x, 1.0), ONES(3))),
    "while_loop condition": ("while_loop", "cond_fun", ("(3,)",), lambda j: j.lax.while_loop(lambda x: x < 3, lambda x: x + 1, ONES(3))),
    "while_loop condition dtype": ("while_loop", "cond_fun", ("float32",), lambda j: j.lax.while_loop(lambda x: x, lambda x: x + 1, F32(1))),
    "fori_loop bounds": ("fori_loop", "upper", ("float32",), lambda j: j.lax.fori_loop(0, F32(3), lambda i, c: c, 0.0)),
    "fori_loop carry": ("fori_loop", "c", ("int32", "float32"), lambda j: j.lax.fori_loop(0, 3, lambda i, c: c + 1.5, np.int32(0))),
    "map of scalars": ("map", "xs", ("()",), lambda j: j.lax.map(lambda x: x, 1.0)),
    "associative_scan axis": ("associative_scan", "axis", (), lambda j: j.lax.associative_scan(j.numpy.add, ONES(3), axis=2)),
    # ---- lax
    "lax.add shapes": ("add", "y", ("(3,)", "(4,)"), lambda j: j.lax.add(ONES(3), ONES(4))),
    "lax.add dtypes": ("add", "y", ("float32", "int32"), lambda j: j.lax.add(ONES(3), np.ones(3, I32))),
    "lax.select": ("select", "pred", ("(3,)", "(4,)"), lambda j: j.lax.select(ONES(3) > 0, ONES(4), ONES(4))),
    "lax.select dtypes": ("select", "on_false", ("float32", "int32"), lambda j: j.lax.select(ONES(3) > 0, ONES(3), np.ones(3, I32))),
    "lax.dot_general": ("dot_general", "rhs", ("(2, 3)", "(4, 5)"), lambda j: j.lax.dot_general(ONES((2, 3)), ONES((4, 5)), (((1,), (0,)), ((), ())))),
    "lax.conv padding": ("conv", "padding", ("SAM",), lambda j: j.lax.conv(ONES((1, 1, 5, 5)), ONES((1, 1, 3, 3)), (1, 1), "SAM")),
    "lax.conv channels": ("conv", "rhs", ("(1, 2, 5, 5)", "(1, 1, 3, 3)"), lambda j: j.lax.conv(ONES((1, 2, 5, 5)), ONES((1, 1, 3, 3)), (1, 1), "SAME")),
    "lax.conv strides": ("conv", "window_strides", ("(1,)",), lambda j: j.lax.conv(ONES((1, 1, 5, 5)), ONES((1, 1, 3, 3)), (1,), "SAME")),
    "lax.conv ranks": ("conv", "rhs", ("(1, 1, 5, 5)", "(3, 3)"), lambda j: j.lax.conv(ONES((1, 1, 5, 5)), ONES((3, 3)), (1, 1), "SAME")),
    "lax.dynamic_slice": ("dynamic_slice", "slice_sizes", ("(4,)", "(3,)"), lambda j: j.lax.dynamic_slice(ONES(3), (0,), (4,))),
    "lax.dynamic_slice starts": ("dynamic_slice", "start_indices", ("(2, 3)",), lambda j: j.lax.dynamic_slice(ONES((2, 3)), (0,), (1, 1))),
    "lax.dynamic_update_slice": ("dynamic_update_slice", "update", ("(3,)", "(4,)"), lambda j: j.lax.dynamic_update_slice(ONES(3), ONES(4), (0,))),
    "lax.slice": ("slice", "limit_indices", ("(5,)", "(3,)"), lambda j: j.lax.slice(ONES(3), (0,), (5,))),
    "lax.pad": ("pad", "padding_value", ("float32", "int32"), lambda j: j.lax.pad(ONES(3), np.int32(0), [(0, 1, 0)])),
    "lax.reduce_window": ("reduce_window", "window_dimensions", ("(2, 3)", "(2,)"), lambda j: j.lax.reduce_window(ONES((2, 3)), F32(0), j.lax.add, (2,), (1,), "VALID")),
    "lax.top_k": ("top_k", "k", ("(3,)", "5"), lambda j: j.lax.top_k(ONES(3), 5)),
    "lax.broadcast_in_dim": ("broadcast_in_dim", "shape", ("(3,)", "(4,)"), lambda j: j.lax.broadcast_in_dim(ONES(3), (4,), (0,))),
    "lax.bitcast": ("bitcast_convert_type", "new_dtype", ("float32",), lambda j: j.lax.bitcast_convert_type(ONES(3), np.complex64)),
    "lax.concatenate": ("concatenate", "operands", ("(2, 3)", "(2, 4)"), lambda j: j.lax.concatenate([ONES((2, 3)), ONES((2, 4))], 0)),
    "lax.iota": ("iota", "size", ("-3",), lambda j: j.lax.iota(F32, -3)),
    "lax.psum unbound": ("psum", "axis_name", ("'i'",), lambda j: j.lax.psum(ONES(3), "i")),
    "lax.sort dimension": ("sort", "dimension", ("1", "(3,)"), lambda j: j.lax.sort(ONES(3), dimension=1)),
    "lax.fft": ("fft", "fft_lengths", ("(4,)", "(8,)"), lambda j: j.lax.fft(np.ones(4, np.complex64), "fft", (8,))),
    # ---- random
    "normal without a key": ("normal", "key", ("(3, 3)",), lambda j: j.random.normal((3, 3))),
    "uniform of a seed": ("uniform", "key", ("3",), lambda j: j.random.uniform(3)),
    "split no key": ("split", "key", ("float32",), lambda j: j.random.split(ONES(2))),
    "split count": ("split", "num", ("-1",), lambda j: j.random.split(j.random.key(0), -1)),
    "key of a float": ("key", "seed", ("1.5",), lambda j: j.random.key(1.5)),
    "key of an array": ("key", "seed", ("(2,)",), lambda j: j.random.key(np.arange(2))),
    "normal dtype": ("normal", "dtype", ("int32",), lambda j: j.random.normal(j.random.key(0), (3,), I32)),
    "randint dtype": ("randint", "dtype", ("float32",), lambda j: j.random.randint(j.random.key(0), (3,), 0, 9, F32)),
    "randint bounds": ("randint", "maxval", ("(2,)", "(3,)"), lambda j: j.random.randint(j.random.key(0), (3,), np.arange(2), 9)),
    "choice size": ("choice", "shape", ("(5,)", "3"), lambda j: j.random.choice(j.random.key(0), 3, (5,), replace=False)),
    "choice weights": ("choice", "p", ("(4,)",), lambda j: j.random.choice(j.random.key(0), 3, (2,), p=ONES(4) / 4)),
    "categorical axis": ("categorical", "axis", ("2", "(3,)"), lambda j: j.random.categorical(j.random.key(0), ONES(3), axis=2)),
    "fold_in float": ("fold_in", "data", ("(2,)",), lambda j: j.random.fold_in(j.random.key(0), np.arange(2))),
    "several keys": ("normal", "key", ("(3,)",), lambda j: j.random.normal(j.random.split(j.random.key(0), 3), (2,))),
    "normal shape text": ("normal", "shape", ("'a'",), lambda j: j.random.normal(j.random.key(0), "a")),
    "multivariate_normal": ("multivariate_normal", "cov", ("(3,)", "(2, 2)"), lambda j: j.random.multivariate_normal(j.random.key(0), ONES(3), ONES((2, 2)))),
    # ---- linalg
    "solve shapes": ("solve", "b", ("(3, 3)", "(4,)"), lambda j: j.numpy.linalg.solve(ONES((3, 3)), ONES(4))),
    "solve not square": ("solve", "a", ("(2, 3)",), lambda j: j.numpy.linalg.solve(ONES((2, 3)), ONES(2))),
    "inv not square": ("inv", "a", ("(2, 3)",), lambda j: j.numpy.linalg.inv(ONES((2, 3)))),
    "inv of a vector": ("inv", "a", ("(3,)",), lambda j: j.numpy.linalg.inv(ONES(3))),
    "cholesky": ("cholesky", "a", ("(2, 3)",), lambda j: j.numpy.linalg.cholesky(ONES((2, 3)))),
    "det": ("det", "a", ("(2, 3)",), lambda j: j.numpy.linalg.det(ONES((2, 3)))),
    "qr mode": ("qr", "mode", ("'x'",), lambda j: j.numpy.linalg.qr(ONES((3, 3)), mode="x")),
    "norm order": ("norm", "ord", ("'x'",), lambda j: j.numpy.linalg.norm(ONES((3, 3)), "x")),
    "eigh not square": ("eigh", "a", ("(2, 3)",), lambda j: j.numpy.linalg.eigh(ONES((2, 3)))),
    "svd of a vector": ("svd", "a", ("(3,)",), lambda j: j.numpy.linalg.svd(ONES(3))),
    "lstsq": ("lstsq", "b", ("(3, 2)", "(4,)"), lambda j: j.numpy.linalg.lstsq(ONES((3, 2)), ONES(4))),
    "matrix_power": ("matrix_power", "n", ("1.5",), lambda j: j.numpy.linalg.matrix_power(ONES((3, 3)), 1.5)),
    "triangular_solve": ("solve_triangular", "b", ("(3, 3)", "(4,)"), lambda j: j.scipy.linalg.solve_triangular(ONES((3, 3)), ONES(4))),
    "multi_dot": ("multi_dot", "arrays", ("(2, 3)", "(4, 5)"), lambda j: j.numpy.linalg.multi_dot([ONES((2, 3)), ONES((4, 5))])),
    # ---- nn, scipy
    "softmax axis": ("softmax", "axis", ("2", "(3,)"), lambda j: j.nn.softmax(ONES(3), axis=2)),
    "relu of a list": ("relu", "x", ("list",), lambda j: j.nn.relu([1.0, 2.0])),
    "one_hot": ("one_hot", "num_classes", ("'a'",), lambda j: j.nn.one_hot(1, "a")),
    "attention": ("dot_product_attention", "key", ("(1, 4, 2, 8)", "(1, 4, 2, 6)"), lambda j: j.nn.dot_product_attention(ONES((1, 4, 2, 8)), ONES((1, 4, 2, 6)), ONES((1, 4, 2, 8)))),
    "initializer shape": ("", "shape", ("(3,)",), lambda j: j.nn.initializers.glorot_normal()(j.random.key(0), (3,))),
    "glu": ("glu", "x", ("(3,)",), lambda j: j.nn.glu(ONES(3))),
    "logsumexp axis": ("logsumexp", "axis", ("2", "(3,)"), lambda j: j.scipy.special.logsumexp(ONES(3), axis=2)),
    "erf of text": ("erf", "x", ("str",), lambda j: j.scipy.special.erf("a")),
    "erf of complex": ("erf", "x", ("complex64",), lambda j: j.scipy.special.erf(np.ones(3, np.complex64))),
    "convolve2d": ("convolve2d", "in1", ("(3,)",), lambda j: j.scipy.signal.convolve2d(ONES(3), ONES(3))),
    "minimize method": ("minimize", "method", ("'x'",), lambda j: j.scipy.optimize.minimize(lambda x: (x**2).sum(), ONES(3), method="x")),
    "map_coordinates": ("map_coordinates", "coordinates", ("(4, 4)", "1"), lambda j: j.scipy.ndimage.map_coordinates(ONES((4, 4)), [ONES(2)], 1)),
    "cg operator": ("cg", "A", ("(3,)",), lambda j: j.scipy.sparse.linalg.cg(lambda x: x[:2], ONES(3))),
    "logpdf": ("logpdf", "x", ("list",), lambda j: j.scipy.stats.norm.logpdf([1.0])),
    "resize": ("resize", "shape", ("(4, 4, 3)", "(8, 8)"), lambda j: j.image.resize(ONES((4, 4, 3)), (8, 8), "linear")),
    "resize method": ("resize", "method", ("'x'",), lambda j: j.image.resize(ONES((4, 4)), (8, 8), "x")),
    "segment_sum": ("segment_sum", "segment_ids", ("(3,)", "(4,)"), lambda j: j.ops.segment_sum(ONES(3), np.zeros(4, I32), 2)),
    # ---- trees
    "tree.map structures": ("map", "tree", (), lambda j: j.tree.map(lambda a, b: a, [1, 2], [1])),
    "tree.map keys": ("map", "tree", ("'a'", "'b'"), lambda j: j.tree.map(lambda a, b: a, {"a": 1}, {"b": 1})),
    "tree.unflatten": ("unflatten", "leaves", ("3", "2"), lambda j: j.tree.unflatten(j.tree.structure([1, 2]), [1, 2, 3])),
    "node registered twice": ("register_pytree_node", "list", (), lambda j: j.tree_util.register_pytree_node(list, lambda x: (x, None), lambda _, c: list(c))),
    "ravel_pytree text": ("ravel_pytree", "pytree", ("str",), lambda j: j.flatten_util.ravel_pytree({"a": "b"})),
    # ---- custom rules
    "custom_vjp without rules": ("", "defvjp", (), lambda j: j.grad(j.custom_vjp(lambda x: x))(1.0)),
    "custom_jvp without rules": ("", "defjvp", (), lambda j: j.grad(j.custom_jvp(lambda x: x))(1.0)),
    "custom_vjp count": ("", "bwd", (), lambda j: _vjp_rule(j, lambda res, g: (g, g))),
    "custom_vjp shape": ("", "bwd", ("()", "(3,)"), lambda j: _vjp_rule(j, lambda res, g: (ONES(3),))),
    "custom_vjp no tuple": ("", "bwd", (), lambda j: _vjp_rule(j, lambda res, g: g)),
    "custom_jvp shape": ("", "jvp", ("()", "(3,)"), lambda j: _jvp_rule(j, lambda p, t: (p[0], ONES(3)))),
    "custom_jvp no pair": ("", "jvp", (), lambda j: _jvp_rule(j, lambda p, t: p[0])),
    "custom_vjp keyword": ("", "nondiff_argnums", ("3",), lambda j: _nondiff(j)),
    "pure_callback shape": ("pure_callback", "result_shape_dtypes", ("(3,)", "(4,)"), lambda j: j.block_until_ready(j.pure_callback(lambda x: ONES(4), j.ShapeDtypeStruct((3,), F32), ONES(3)))),
    # ---- devices and settings
    "shard_map rank": ("shard_map", "in_specs", ("()",), lambda j: _sharded(j, F32(3))),
    "device_put rank": ("device_put", "x", ("(3,)", "rank at least 2"), lambda j: j.device_put(ONES(3), j.sharding.NamedSharding(_mesh(j), j.P("x", None)))),
    "shard_map of no function": ("shard_map", "f", ("int",), lambda j: j.shard_map(3, mesh=_mesh(j), in_specs=j.P(), out_specs=j.P())),
    "shard_map specs": ("shard_map", "in_specs", ("'y'",), lambda j: _sharded(j, ONES(4), "y")),
    "mesh axis twice": ("NamedSharding", "'x'", (), lambda j: j.sharding.NamedSharding(_mesh(j), j.sharding.PartitionSpec("x", "x"))),
    "mesh axis unknown": ("NamedSharding", "y", (), lambda j: j.sharding.NamedSharding(_mesh(j), j.sharding.PartitionSpec("y"))),
    "device_put place": ("device_put", "device", ("'cpu'",), lambda j: j.device_put(ONES(3), "cpu")),
    "setting unknown": ("update", "jax_enable_x65", (), lambda j: j.config.update("jax_enable_x65", True)),
    "setting value": ("update", "jax_default_matmul_precision", ("'hihg'",), lambda j: j.config.update("jax_default_matmul_precision", "hihg")),
    "setting flag": ("update", "jax_debug_nans", ("'maybe'",), lambda j: j.config.update("jax_debug_nans", "maybe")),
    "deleted": ("", "donate", ("(3,)",), lambda j: _deleted(j)),
    "promotion strict": ("add", "other", ("float32", "int32"), lambda j: _strict(j)),
    "rank promotion": ("add", "other", ("(2, 3)", "(3,)"), lambda j: _rank(j)),
})
# fmt: on


def _leak(j: Any) -> Any:
    kept: list[Any] = []
    j.jit(lambda x: kept.append(x))(1.0)
    return kept[0] + 1


def _vjp_rule(j: Any, backward: Callable[..., Any]) -> Any:
    def bwd(residuals: Any, g: Any) -> Any:
        return backward(residuals, g)

    f = j.custom_vjp(lambda x: x * 2)
    f.defvjp(lambda x: (x * 2, None), bwd)
    return j.grad(f)(1.0)


def _jvp_rule(j: Any, rule: Callable[..., Any]) -> Any:
    def jvp(primals: Any, tangents: Any) -> Any:
        return rule(primals, tangents)

    f = j.custom_jvp(lambda x: x * 2)
    f.defjvp(jvp)
    return j.grad(f)(1.0)


def _nondiff(j: Any) -> Any:
    f = j.custom_vjp(lambda x: x, nondiff_argnums=(3,))
    f.defvjp(lambda x: (x, None), lambda n, r, g: (g,))
    return f(1.0)


def _mesh(j: Any) -> Any:
    return j.make_mesh((1,), ("x",))


def _sharded(j: Any, x: Any, axis: str = "x") -> Any:
    spec = j.sharding.PartitionSpec(axis)
    return j.shard_map(lambda v: v * 2, mesh=_mesh(j), in_specs=spec, out_specs=spec)(x)


def _deleted(j: Any) -> Any:
    x = j.numpy.ones(3)
    x.delete()
    return x + 1


def _strict(j: Any) -> Any:
    with j.numpy_dtype_promotion("strict"):
        return j.numpy.ones(3) + j.numpy.ones(3, I32)


def _rank(j: Any) -> Any:
    with j.numpy_rank_promotion("raise"):
        return j.numpy.ones((2, 3)) + j.numpy.ones(3)
