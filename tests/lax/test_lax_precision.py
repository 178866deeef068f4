"""`precision=` of products: algorithms, in values, types and HLO text, against JAX."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hloom
from hloom import lax

PRESETS = [p.name for p in lax.DotAlgorithmPreset]
ON_JAX_CPU = ["DEFAULT", "F16_F16_F16", "F32_F32_F32", "F64_F64_F64", "BF16_BF16_F32"]
ON_JAX_CPU += ["BF16_BF16_F32_X3", "BF16_BF16_F32_X6"]


def operands(dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    return rng.standard_normal((3, 40)).astype(dtype), rng.standard_normal((40, 4)).astype(dtype)


def instructions(text: str) -> list[str]:
    """The entry's types, opcodes and attributes, without names."""
    found = []
    for line in text.split("ENTRY", 1)[1].splitlines()[1:]:
        m = re.match(r"\s*(?:ROOT )?%?[\w.-]+ = (\w+\[[\d,]*\])\S* (\w+)\([^)]*\)(.*)", line)
        if m and m[2] != "parameter":
            found.append(" ".join(m.groups()))
    return sorted(found)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("preset", ON_JAX_CPU)
def test_algorithms_are_those_of_jax(preset: str, dtype: str) -> None:
    jax = pytest.importorskip("jax")
    x, y = operands(getattr(ml_dtypes, dtype, dtype))

    def text_of(module: Any, **options: str) -> tuple[Any, str]:
        jitted = module.jit(lambda a, b: module.lax.dot(a, b, precision=preset))
        return jitted(x, y), jitted.lower(x, y).as_text(**options)

    theirs, their_text = text_of(jax, dialect="hlo")
    ours, our_text = text_of(hloom)
    assert ours.dtype == theirs.dtype
    limit = 2e-2 if ours.dtype.itemsize == 2 else 2e-6
    np.testing.assert_allclose(np.asarray(ours, float), np.asarray(theirs, float), rtol=limit, atol=limit)
    assert instructions(our_text) == instructions(their_text)


@pytest.mark.parametrize("preset", PRESETS)
def test_types_of_presets_are_those_of_jax(preset: str) -> None:
    jax = pytest.importorskip("jax")
    ours, theirs = lax.DotAlgorithmPreset[preset], jax.lax.DotAlgorithmPreset[preset]

    def types(found: Any) -> Any:
        return None if found is None else tuple(np.dtype(t) for t in found)

    assert (str(ours), repr(ours)) == (str(theirs), repr(theirs))
    assert types(ours.supported_lhs_types) == types(theirs.supported_lhs_types)
    assert types(ours.supported_rhs_types) == types(theirs.supported_rhs_types)
    assert (ours.accumulation_type is None) == (theirs.accumulation_type is None)
    if ours.accumulation_type is not None:
        assert np.dtype(ours.accumulation_type) == np.dtype(theirs.accumulation_type)
    for pair in [("float16", "float16"), ("bfloat16", "bfloat16"), ("float32", "float16")]:
        assert types(ours.supported_output_types(*pair)) == types(theirs.supported_output_types(*pair))


@pytest.mark.parametrize("preset", [p for p in PRESETS if not p.startswith("ANY")])
def test_an_algorithm_rounds_its_operands(preset: str) -> None:
    """The product of the operands in the algorithm's types, to the precision of its sums; also if JAX lacks it."""
    x, y = operands(np.float32)
    algorithm = lax.DotAlgorithmPreset[preset]
    kinds = algorithm.supported_lhs_types
    rounded = [a if kinds is None or np.float32 in kinds else a.astype(kinds[0]) for a in (x, y)]
    expected = rounded[0].astype(float) @ rounded[1].astype(float)
    found = lax.dot(x, y, precision=preset)
    assert found.dtype == np.float32
    sums = np.dtype(algorithm.accumulation_type or np.float32)
    limit = 1e-6 if sums.itemsize > 2 else 4e-2
    np.testing.assert_allclose(np.asarray(found), expected, rtol=limit, atol=limit)


@pytest.mark.parametrize(
    ("algorithm", "name"),
    [
        (lax.DotAlgorithm(np.float32, np.float32, np.float32), "dot_f32_f32_f32"),
        (lax.DotAlgorithm("float16", "float16", np.float32), "dot_f16_f16_f32"),
        (lax.DotAlgorithm("bfloat16", "bfloat16", "float32", num_primitive_operations=6), "dot_bf16_bf16_f32_x6"),
        (lax.DotAlgorithm("float64", "float64", "float64"), "dot_f64_f64_f64"),
        ("TF32_TF32_F32_X3", "dot_tf32_tf32_f32_x3"),
    ],
)
def test_hlo_names_the_algorithm(algorithm: Any, name: str) -> None:
    x, y = operands(np.float32)
    product = hloom.jit(lambda a, b: lax.dot(a, b, precision=algorithm).sum())
    assert f"algorithm={name}" in product.lower(x, y).as_text()
    assert f"algorithm={name}" in hloom.jit(hloom.grad(product)).lower(x, y).as_text()
    np.testing.assert_allclose(product(x, y), (x.astype(float) @ y).sum(), rtol=2e-2)
    jaxpr = hloom.make_jaxpr(product)(x, y)
    np.testing.assert_array_equal(hloom.core.eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, x, y)[0], product(x, y))


def test_ragged_dots_take_algorithms() -> None:
    x, y = operands(np.float32)
    sizes = np.array([1, 2], np.int32)
    found = lax.ragged_dot(x, np.stack([y, -y]), sizes, precision="F64_F64_F64", preferred_element_type="float32")
    expected = np.concatenate([x[:1] @ y, -(x[1:] @ y)])
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_the_default_precision_may_be_an_algorithm() -> None:
    x, y = operands(np.float32)
    with hloom.default_matmul_precision("F32_F32_F32"):
        assert "algorithm=dot_f32_f32_f32" in hloom.jit(lax.dot).lower(x, y).as_text()
    with pytest.raises(ValueError, match=r"one of .*F32_F32_F32.*, not 'F33'"):
        hloom.default_matmul_precision("F33")


@pytest.mark.parametrize("precision", ["foo", 3, ("high", "foo"), ("high",) * 3])
def test_an_unknown_precision_names_those_there_are(precision: Any) -> None:
    with pytest.raises(ValueError, match=r"(?s)unknown precision .*Precision argument must be one of.*'bfloat16_3x'"):
        lax.dot(*operands(np.float32), precision=precision)


def test_algorithms_that_nobody_has() -> None:
    x, y = operands(np.float32)
    with pytest.raises(ValueError, match=r"(?s)is not supported by dot_general.*DotAlgorithmPreset has the known"):
        lax.dot(x, y, precision=lax.DotAlgorithm("float32", "float16", "float32"))
    with pytest.raises(ValueError, match=r"requires both inputs to have float8 dtypes\. Got float32 and float32"):
        lax.dot(x, y, precision="ANY_F8_ANY_F8_F32")


@pytest.mark.parametrize("word", ["float32", "bfloat16_3x", "fastest", "high"])
def test_words_for_precisions(word: str) -> None:
    jax = pytest.importorskip("jax")
    assert repr(lax.Precision(word)) == repr(jax.lax.Precision(word))
    assert str(lax.Precision(word)) == str(jax.lax.Precision(word))
