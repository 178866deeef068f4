"""Errors that say what JAX's say, in its words: people search for these, and programs match them. Each program is run
here, and in JAX where that is installed."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom

F32 = np.float32
ONES = np.ones((2, 3), F32)


def _gather(j: Any, offset_dims: tuple[int, ...]) -> Any:
    numbers = j.lax.GatherDimensionNumbers(
        offset_dims=offset_dims, collapsed_slice_dims=(), start_index_map=(0, 1, 2, 3, 4)
    )
    return j.lax.gather(np.ones((10, 9, 8, 7, 6), np.int32), np.ones((5, 4, 3, 2, 1), np.int32), numbers, (1,) * 5)


def _ragged_general(j: Any, ragged: list[int], groups: list[int]) -> Any:
    numbers = j.lax.RaggedDotDimensionNumbers((([1], [1]), ([], [])), ragged, groups)
    return j.lax.ragged_dot_general(np.ones((11, 3), F32), np.ones((3, 3, 7), F32), np.ones(3, np.int32), numbers)


def _leak(j: Any) -> Any:
    leaked = []
    j.jit(lambda x: leaked.append(x + 1))(1.0)
    return leaked[0] + 1


def _custom_jvp(j: Any, rule_of: Callable[..., Any], use: Callable[..., Any] | None = None) -> Any:
    def f(x: Any) -> Any:
        return x

    def rule(primals: Any, tangents: Any) -> Any:
        return rule_of(*primals, *tangents)

    fun = j.custom_jvp(f)
    fun.defjvp(rule)
    looped = lambda x: j.lax.scan(lambda c, _: (fun(c), None), x, None, length=1)[0]  # noqa: E731
    return use(fun) if use else j.jvp(looped, (F32(1),), (F32(1),))


def _custom_vjp(j: Any, bwd: Callable[..., Any]) -> Any:
    fun = j.custom_vjp(lambda x, y: x * y)
    fun.defvjp(lambda x, y: (x * y, None), bwd)
    return j.grad(fun, (0, 1))(F32(1), F32(1))


def _ragged(j: Any, lhs: Any, sizes: tuple[int, ...]) -> Any:
    return j.lax.ragged_dot(np.ones(lhs, F32), np.ones((3, 5, 7), F32), np.ones(sizes, np.int32))


PROGRAMS: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "scan: dtype of a carry": (
        lambda j: j.lax.scan(lambda x, _: (x.astype(F32), None), j.numpy.int32(0), None, length=1),
        TypeError,
        r"function carry input and carry output must have equal types, but they differ:\n\nThe input carry x has type "
        r"int32\[\] but the corresponding output carry component has type float32\[\], so the dtypes do not match",
    ),
    "scan: dtypes and shapes of carries": (
        lambda j: j.lax.scan(
            lambda x, _: ((x[0].astype(F32), x[1].astype(F32).reshape(1, 1), x[2]), None),
            (j.numpy.int32(0),) * 3,
            None,
            length=1,
        ),
        TypeError,
        r"differ:\n\n  \* the input carry component x\[0\] has type int32\[\] but the corresponding output carry "
        r"component has type float32\[\], so the dtypes do not match;\n  \* the input carry component x\[1\] has type "
        r"int32\[\] but the corresponding output carry component has type float32\[1,1\], so the dtypes do not match, "
        "and the shapes do not match.",
    ),
    "scan: lengths": (
        lambda j: j.lax.scan(lambda c, x: ((0, 0, 0), x), (1, (2, 3)), np.ones(5, F32)),
        TypeError,
        "The input carry c is a tuple of length 2 but .* of the carry output is a tuple of length 3, so the lengths",
    ),
    "scan: Python types": (
        lambda j: j.lax.scan(lambda x, _: ([x[0]] * 2, None), (np.int32(0),) * 2, None, length=1),
        TypeError,
        "The input carry x is a <class 'tuple'> but the corresponding .*, so their Python types differ",
    ),
    "scan: children": (
        lambda j: j.lax.scan(lambda x, _: (({"a": 0, "b": 0},) * 2, None), ({"a": 0},) * 2, None, length=1),
        TypeError,
        r"  \* the input carry component x\[0\] is a <class 'dict'> with 1 child but the corresponding component of "
        "the carry output is a <class 'dict'> with 2 children, so the numbers of children do not match",
    ),
    "fori_loop: keys": (
        lambda j: j.lax.fori_loop(0, 1, lambda i, c: {"T": c["t"]}, {"t": ONES}),
        TypeError,
        r"with pytree metadata \('t',\) .*with pytree metadata \('T',\), so the pytree node metadata does not match",
    ),
    "cond: structures": (
        lambda j: j.lax.cond(True, lambda x: {"a": 2.0}, lambda x: {"a": (3.0, 3.0)}, 1.0),
        TypeError,
        r"(?s)but they differ:.*true_fun output at path \['a'\] is a pytree leaf but false_fun output at path \['a'\] "
        "is a <class 'tuple'>, so their Python types differ",
    ),
    "cond: types": (
        lambda j: j.lax.cond(True, lambda x: j.numpy.ones(1, F32), lambda x: F32(1), 1.0),
        TypeError,
        r"(?s)cond branches must have equal output types but they differ.*The output of true_fun has type float32\[1\] "
        r"but the corresponding output of false_fun has type float32\[\], so the shapes do not match",
    ),
    "jit: a truth value": (
        lambda j: j.jit(lambda x: 1 if x > 0 else 0)(0),
        hloom.errors.TracerBoolConversionError,
        r"Attempted boolean conversion of traced array with shape bool\[\]\.",
    ),
    **{
        f"jit: {kind.__name__}": (
            lambda j, kind=kind: j.jit(lambda x: kind(x))(1.0),
            TypeError,
            rf"[Tt]ry using `x.astype\({kind.__name__}\)`",
        )
        for kind in (int, float, complex)
    },
    "jit: a number of an array": (
        lambda j: j.jit(float)(ONES),
        TypeError,
        "Only scalar arrays can be converted to Python scalars",
    ),
    "a number of an array": (
        lambda j: int(j.numpy.ones(1)),
        TypeError,
        "Only scalar arrays can be converted to Python scalars",
    ),
    "jit: an index of a float": (
        lambda j: j.jit(hex)(F32(0)),
        TypeError,
        "Only integer scalar arrays can be converted to a scalar index.",
    ),
    "jit: no array": (
        lambda j: j.jit(lambda x: x)({"a": "foo"}),
        TypeError,
        "Error interpreting argument to .* as an abstract array. The problematic value is of type <class 'str'> and "
        r"was passed to the function at path x\['a'\]",
    ),
    "jit: a type": (
        lambda j: j.jit(lambda x: x)({"a": j.ShapeDtypeStruct((4, 2), np.int32)}),
        TypeError,
        r"Argument 'x\['a'\]' of shape int32\[4,2\] of type <class .*ShapeDtypeStruct'> is not a valid JAX type",
    ),
    "jit: an integer": (
        lambda j: j.jit(lambda x: x)({"a": 2**31}),
        OverflowError,
        r"An overflow was encountered while parsing an argument to a jitted computation, whose argument path is "
        r"x\['a'\]. Got <class 'int'> with value 2147483648",
    ),
    "jvp: structures": (
        lambda j: j.jvp(lambda x: x, (1.0,), [1.0]),
        TypeError,
        "primal and tangent arguments to (jax|hloom).jvp must have the same tree structure",
    ),
    "vmap: out_axes": (
        lambda j: j.vmap(lambda x: x, out_axes=None)(ONES),
        ValueError,
        "at vmap out_axes, got axis spec None but output was batched on axis 0",
    ),
    "custom_jvp: structure": (
        lambda j: _custom_jvp(j, lambda x, t: ((x, x), (t, t))),
        TypeError,
        r"Custom JVP rule rule for function f must produce a pair \(list or tuple of length two\) where the first "
        r"element represents the primal output \(equal in value to the output of the custom_jvp-decorated function f, "
        r"and in particular of the same container/pytree structure\), but instead the JVP rule output's first element "
        r"had container/pytree structure:\n    \(float32\[\], float32\[\]\)\nwhile the custom_jvp-decorated function f "
        r"had output container/pytree structure:\n    float32\[\]\.",
    ),
    "custom_jvp: an argument": (
        lambda j: _custom_jvp(j, lambda x, t: (x, t), lambda f: f(y=1.0)),
        TypeError,
        "arguments to the custom_jvp-decorated function f.* could not be resolved to positional-only arguments. "
        "Binding failed with the error:\nmissing a required argument: 'x'|got an unexpected keyword argument 'y'",
    ),
    "custom_vjp: types": (
        lambda j: _custom_vjp(j, lambda _, g: (g, np.ones(3, F32))),
        ValueError,
        r"at output\[1\] the bwd rule produced an output of type float32\[3\] corresponding to an input of type "
        r"float32\[\]",
    ),
    "vmap: a result": (
        lambda j: j.vmap(lambda x: "hello")(ONES),
        TypeError,
        "Output from batched function 'hello' with type <class 'str'> is not a valid JAX type",
    ),
    "while_loop: condition": (
        lambda j: j.lax.while_loop(lambda x: x, lambda x: x, 1.0),
        TypeError,
        r"cond_fun must return a boolean scalar, but got output type\(s\) \[ShapedArray\(float32\[\]",
    ),
    "a value that leaked": (
        _leak,
        hloom.errors.UnexpectedTracerError,
        "was created on line",
    ),
    "vmap: axis_size": (
        lambda j: j.vmap(lambda x: x, axis_size=2)(np.arange(8, dtype=np.int32)),
        ValueError,
        r"vmap got inconsistent sizes for array axes to be mapped:\n  \* the `axis_size` argument was 2;\n  \* one "
        r"axis had size 8: axis 0 of argument x of type int32\[8\]",
    ),
    "vmap: a keyword": (
        lambda j: j.vmap(lambda x, y: x + y)(np.ones(1, np.int32), y=np.ones(2, np.int32)),
        ValueError,
        r"  \* one axis had size 1: axis 0 of argument x of type int32\[1\];\n  \* one axis had size 2: axis 0 of "
        r"kwargs\['y'\] of type int32\[2\]",
    ),
    "vmap: in_axes": (
        lambda j: j.vmap(lambda x: x, in_axes=([0],))(np.ones(3)),
        ValueError,
        "(?s)vmap in_axes specification must be a tree prefix of the corresponding value;.*Mismatch details.*different",
    ),
    "device_put": (
        lambda j: j.device_put({"a": ONES, "b": ONES}, device={"a": [None, None], "b": (None, None)}),
        ValueError,
        r"(?s)device_put device specification must be a tree prefix of the corresponding value.*Mismatch details \(2",
    ),
    "dot": (
        lambda j: j.numpy.dot(np.zeros(3, F32), np.zeros(4, F32)),
        TypeError,
        r"dot_general requires contracting dimensions to have the same shape, got \(3,\) and \(4,\)\.",
    ),
    "float0": (
        lambda j: j.grad(lambda x: x + 0.0, allow_int=True)(1) + j.numpy.zeros(()),
        TypeError,
        "float0s do not support any operations by design",
    ),
    **{
        name: (
            lambda j, name=name: j.jit(lambda a, b: getattr(j.numpy, name)[a:b])(0, 2),
            hloom.errors.ConcretizationTypeError,
            f"slice start of jnp.{name}",
        )
        for name in ("mgrid", "ogrid", "r_", "c_")
    },
    "choose": (
        lambda j: j.jit(lambda a: j.numpy.choose(a, [1, 2], mode="raise"))(np.int32(0)),
        hloom.errors.ConcretizationTypeError,
        "The error occurred because jnp.choose was jit-compiled with mode='raise'. Use mode='wrap' or mode='clip'",
    ),
    "closure_convert": (
        lambda j: j.closure_convert(lambda x: x, 1.0)[0](1.0, [2.0]),
        TypeError,
        "The inputs to the closure produced by closure_convert",
    ),
    "pmap": (
        lambda j: j.pmap(lambda a, b: a + b, static_broadcasted_argnums=(1,))(np.ones((1, 1), F32), b=1),
        ValueError,
        r"pmapped function has static_broadcasted_argnums=\(1,\) but was called with only 1 positional argument. All "
        "static broadcasted arguments must be passed positionally.",
    ),
    "broadcast_in_dim": (
        lambda j: j.lax.broadcast_in_dim(np.ones(2, F32), (2, 2), (0, 1)),
        TypeError,
        "broadcast_dimensions must have length equal to operand ndim",
    ),
    "broadcast_in_dim: ranks": (
        lambda j: j.lax.broadcast_in_dim(ONES, (2,), (0, 1)),
        TypeError,
        "target broadcast shape must have equal or higher rank to the operand shape",
    ),
    "broadcast_in_dim: subset": (
        lambda j: j.lax.broadcast_in_dim(ONES[0], (2, 3), (2,)),
        TypeError,
        "broadcast_in_dim broadcast_dimensions must be a subset of output dimensions",
    ),
    "broadcast_in_dim: sizes": (
        lambda j: j.lax.broadcast_in_dim(ONES[0], (2,), (0,)),
        TypeError,
        "operand dimension sizes must either be 1, or be equal to their corresponding dimensions in the target",
    ),
    "broadcast_in_dim: twice": (
        lambda j: j.lax.broadcast_in_dim(np.ones((2, 2), F32), (2, 2), (0, 0)),
        TypeError,
        "broadcast_in_dim broadcast_dimensions must not contain duplicates",
    ),
    "dynamic_slice": (
        lambda j: j.lax.dynamic_slice(ONES, (np.int32(1), np.int16(2)), (1, 1)),
        TypeError,
        "index arguments to dynamic_slice must be integers of the same type",
    ),
    "dynamic_update_slice": (
        lambda j: j.lax.dynamic_update_slice(ONES, ONES[:1, :1], (np.int32(1), np.int16(2))),
        TypeError,
        "index arguments to dynamic_update_slice must be integers of the same type",
    ),
    "gather: order": (lambda j: _gather(j, (4, 5, 6, 8, 7)), TypeError, "offset_dims in gather op must be sorted"),
    "gather: twice": (lambda j: _gather(j, (4, 5, 6, 7, 7)), TypeError, "offset_dims in gather op must not repeat"),
    "pad": (
        lambda j: j.lax.pad(np.zeros(2, F32), np.zeros(2, F32), [(0, 0, 0)]),
        TypeError,
        "padding_value must be a scalar",
    ),
    "pad: interior": (
        lambda j: j.lax.pad(np.zeros(2, F32), F32(0), [(0, 1, -1)]),
        ValueError,
        "interior padding in padding_config must be nonnegative",
    ),
    "pad: sizes": (
        lambda j: j.lax.pad(np.zeros(2, F32), F32(0), [(-3, 0, 0)]),
        ValueError,
        "Dimension size after padding is not at least 0",
    ),
    "reduce_window: sizes": (
        lambda j: j.lax.reduce_window(np.ones(1, F32), 0.0, j.lax.add, (0,), (1,), "VALID"),
        TypeError,
        "must have every element be (strictly )?positive",
    ),
    "reduce_window: structures": (
        lambda j: j.lax.reduce_window(np.ones(1, F32), 0.0, lambda x, y: [x + y], (1,), (1,), "VALID"),
        ValueError,
        "reduce_window output must have the same tree structure as the operands",
    ),
    "convolution: strides": (
        lambda j: j.lax.conv(np.ones((1, 1, 3, 3), F32), np.ones((1, 1, 1, 1), F32), [1], "SAME"),
        ValueError,
        "conv_general_dilated window and window_strides must have the same number of dimensions",
    ),
    "top_k: int32 indices": (
        lambda j: j.eval_shape(lambda x: j.lax.top_k(x, 1), j.ShapeDtypeStruct((2**31 + 1,), F32)),
        ValueError,
        "top_k returns int32 indices, which will overflow",
    ),
    "tensordot: lengths": (
        lambda j: j.numpy.tensordot(ONES, ONES, ([0], [0, 1])),
        TypeError,
        "tensordot requires axes lists to have equal length",
    ),
    "tensordot: strings": (
        lambda j: j.numpy.tensordot(ONES, ONES, ("bad", "axes")),
        TypeError,
        "tensordot requires both axes lists to be either ints, tuples or lists",
    ),
    "tensordot: axes": (
        lambda j: j.numpy.tensordot(ONES, ONES, "badaxes"),
        TypeError,
        "tensordot axes argument must be an int, a pair of ints, or a pair of lists",
    ),
    "arange: stop": (
        lambda j: j.jit(j.numpy.arange)(3), TypeError, "It arose in the jnp.arange argument 'stop'",
    ),
    "arange: start": (
        lambda j: j.jit(lambda n: j.numpy.arange(n, 3))(0), TypeError, "It arose in the jnp.arange argument 'start'",
    ),
    "tolist": (
        lambda j: j.jit(lambda x: x.tolist())(ONES), TypeError, r"The tolist\(\) method was called on traced array",
    ),
    "tobytes": (
        lambda j: j.jit(lambda x: x.tobytes())(ONES), TypeError, r"The tobytes\(\) method was called on traced array",
    ),
    "mean: where": (
        lambda j: j.numpy.mean(ONES, where=np.ones(3, np.int32)),
        ValueError,
        "jnp.mean: where must be None or a boolean array",
    ),
    "std: where": (
        lambda j: j.numpy.std(ONES, where=np.ones(3, np.int32)),
        ValueError,
        "jnp.std: where must be None or a boolean array",
    ),
    "qr: half precision": (
        lambda j: j.numpy.linalg.qr(np.ones((2, 2), np.float16)),
        NotImplementedError,
        "Unsupported dtype float16|qr does not accept dtype float16",  # the latter is JAX 0.12's
    ),
    "split": (lambda j: j.lax.split(np.arange(5), [6]), ValueError, "Sum of sizes 6 must be equal"),
    "squeeze: twice": (lambda j: j.lax.squeeze(ONES[None], (0, 0)), ValueError, "dimensions are not unique"),
    "squeeze: size": (lambda j: j.lax.squeeze(ONES, (1,)), ValueError, "cannot select an axis to squeeze out"),
    "squeeze: None": (lambda j: j.lax.squeeze(ONES, (None,)), TypeError, "cannot be interpreted as an integer"),
    "complex: rem": (lambda j: j.lax.rem(2 + 3j, 4 + 5j), TypeError, "does not accept dtype complex64"),
    "complex: lt": (lambda j: j.lax.lt(2 + 3j, 4 + 5j), TypeError, "lt does not accept dtype complex64"),
    "abs": (lambda j: j.lax.abs(j.lax.iota("uint4", 3)), TypeError, "abs does not accept dtype uint4."),
    "reduce: structures": (
        lambda j: j.lax.reduce({"x": ONES}, {"y": F32(0)}, lambda x, y: x, [0]),
        TypeError,
        "Operands must have the same tree structure as init_values",
    ),
    "reduce: no scalar": (
        lambda j: j.lax.reduce({"x": np.ones(5, F32)}, {"x": np.ones(5, F32)}, lambda x, y: x, [0]),
        TypeError,
        "reduce found non-scalar initial value",
    ),
    **{
        f"ragged_dot: {words}": (
            lambda j, given=given: _ragged_general(j, *given), TypeError, f"ragged_dot_general {words}",
        )
        for given, words in (
            (([0, 1], [0]), "expects exactly one lhs ragged dimension"),
            (([2], [0]), "requires lhs ragged dimension numbers to be nonnegative and less than the number of axes"),
            (([0], [1]), "requires rhs group dimension numbers to be distinct from contracting and batch dimensions"),
            (([0], []), "requires exactly one rhs group dimension when lhs ragged dimension is noncontracting"),
            (([1], [0]), "requires zero group dimensions in the rhs when lhs ragged dimension is contracting or batch"),
        )
    },
    "ragged_dot: groups": (lambda j: _ragged(j, (11, 5), (2,)), TypeError, "group dimension size to be 2, got 3"),
    "ragged_dot: group sizes": (
        lambda j: _ragged(j, (11, 5), (2, 3)),
        TypeError,
        r"expected group_sizes to have shape \(3,\), got \(2, 3\)",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("library", ["hloom", "jax"])
def test_the_words(library: str, name: str) -> None:
    j = pytest.importorskip(library)
    importlib.import_module(f"{library}.numpy")
    program, error, words = PROGRAMS[name]
    with pytest.raises(error if library == "hloom" else Exception, match=words):
        program(j)
