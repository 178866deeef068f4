"""The trace context: settings of threads and of the process, and what depends on them."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hloom.tracer.errors import TypePromotionError

import hloom
import hloom.numpy as jnp
from hloom import config, experimental, lax

X = np.arange(4, dtype=np.float32)


def in_thread(f: Callable[[], Any]) -> Any:
    """The result of `f` in another thread."""
    found: list[Any] = []
    worker = threading.Thread(target=lambda: found.append(f()))
    worker.start()
    worker.join()
    return found[0]


def wide() -> bool:
    return bool(jnp.arange(2.0).dtype == np.float64)


@pytest.fixture
def x64_process() -> Iterator[None]:
    config.update("jax_enable_x64", True)
    yield
    config.update("jax_enable_x64", False)


def test_contexts_are_interned_and_immutable() -> None:
    before = config.context
    with hloom.enable_x64():
        inside = config.context
        assert inside is not before
        assert inside.enable_x64
    assert config.context is before
    with hloom.enable_x64():
        assert config.context is inside
    with pytest.raises(AttributeError, match="cannot assign to field 'enable_x64'"):
        before.enable_x64 = True  # type: ignore[misc]
    with pytest.raises(AttributeError, match="settings are changed by"):
        config.jax_enable_x64 = True


def test_overrides_belong_to_the_thread() -> None:
    with hloom.enable_x64():
        assert wide()
        assert not in_thread(wide)
    assert not wide()


@pytest.mark.usefixtures("x64_process")
def test_updates_reach_all_threads() -> None:
    assert wide()
    assert in_thread(wide)
    with hloom.enable_x64(False):
        assert not wide()
        assert in_thread(wide)


def test_an_update_reaches_a_thread_that_overrides_something_else() -> None:
    with hloom.numpy_dtype_promotion("strict"):
        config.update("jax_enable_x64", True)
        try:
            assert config.jax_enable_x64
            assert config.x64_enabled
            assert config.jax_numpy_dtype_promotion == "strict"
        finally:
            config.update("jax_enable_x64", False)
    assert config.jax_numpy_dtype_promotion == "standard"


def test_blocks_nest_and_decorate() -> None:
    with hloom.enable_x64(), hloom.enable_x64(False), experimental.enable_x64():
        assert wide()
        with experimental.disable_x64():
            assert not wide()
        assert wide()

    @hloom.enable_x64()
    def count(n: int) -> int:
        return (wide() + count(n - 1)) if n else 0

    assert count(3) == 3
    assert not wide()


def test_a_block_is_left_when_it_raises() -> None:
    with pytest.raises(KeyError), hloom.enable_x64():
        raise KeyError
    assert not config.jax_enable_x64


def test_programs_depend_on_the_context() -> None:
    f = hloom.jit(lambda x: (x * 2, jnp.arange(2.0)))
    assert f(jnp.asarray(X))[1].dtype == np.float32
    with hloom.enable_x64():
        assert f(jnp.asarray(X))[1].dtype == np.float64
    assert f(jnp.asarray(X))[1].dtype == np.float32
    assert f._cache_size() == 2


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("jax_numpy_dtype_promotion", "loose", ValueError),
        ("jax_numpy_dtype_promotion", 1, TypeError),
        ("jax_default_matmul_precision", "exact", ValueError),
        ("jax_enable_x64", 1, TypeError),
        ("jax_no_such", True, AttributeError),
    ],
)
def test_values_are_checked(name: str, value: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        config.update(name, value)


# ---- strict promotion


@pytest.mark.parametrize(
    ("f", "dtype"),
    [
        (lambda: jnp.asarray(X) + 1, "float32"),
        (lambda: jnp.asarray(X) + 1.5, "float32"),
        (lambda: jnp.arange(3) + 1, "int32"),
        (lambda: jnp.asarray(X) * 1j, TypePromotionError),
        (lambda: jnp.asarray(X) + jnp.arange(4), TypePromotionError),
        (lambda: jnp.arange(3) + 1.5, TypePromotionError),
        (lambda: jnp.asarray(X) + np.float16(1), TypePromotionError),
        (lambda: jnp.arange(3) + True, TypePromotionError),
        (lambda: (jnp.asarray(X) > 1) & True, "bool"),
        (lambda: hloom.jit(lambda a, b: a + b)(jnp.asarray(X), jnp.arange(4)), TypePromotionError),
        (lambda: jnp.var(jnp.asarray(X)), "float32"),
        (lambda: hloom.nn.softmax(jnp.asarray(X)), "float32"),
        (lambda: hloom.nn.gelu(jnp.asarray(X)), "float32"),
        (lambda: jnp.linspace(0.0, 1.0, 5), "float32"),
        (lambda: hloom.random.normal(hloom.random.PRNGKey(0), (3,)), "float32"),
        (lambda: jnp.mean(jnp.asarray(X)), "float32"),
        (lambda: jnp.matmul(jnp.ones((2, 3)), jnp.ones((3, 2), np.int32)), TypePromotionError),
    ],
)
def test_strict_promotion(f: Callable[[], Any], dtype: Any) -> None:
    with hloom.numpy_dtype_promotion("strict"):
        if isinstance(dtype, str):
            assert f().dtype == dtype
        else:
            with pytest.raises(dtype, match="strict"):
                f()


PAIRS: list[Any] = [np.bool_, np.int8, np.uint32, np.int32, np.float16, np.float32, np.complex64, int, float, complex]


@pytest.mark.parametrize("a", PAIRS, ids=lambda t: t.__name__)
@pytest.mark.parametrize("b", PAIRS, ids=lambda t: t.__name__)
def test_strict_promotion_as_jax(a: Any, b: Any) -> None:
    jax = pytest.importorskip("jax")
    with jax.numpy_dtype_promotion("strict"):
        try:
            expected = str(jax.numpy.result_type(a, b))
        except Exception:
            expected = "error"
    with hloom.numpy_dtype_promotion("strict"):
        try:
            found = str(jnp.result_type(a, b))
        except TypePromotionError:
            found = "error"
    assert found == expected


# ---- the precision of products


def precision_of(f: Callable[..., Any]) -> str:
    text = hloom.make_hlo(f)(jnp.ones((2, 2)), jnp.ones((2, 2))).to_text()
    return text.split("operand_precision={")[1].split("}")[0] if "operand_precision" in text else "default"


@pytest.mark.parametrize(
    ("default", "f", "expected"),
    [
        (None, jnp.matmul, "default"),
        ("highest", jnp.matmul, "highest,highest"),
        ("float32", jnp.dot, "highest,highest"),
        ("tensorfloat32", lambda a, b: jnp.einsum("ij,jk->ik", a, b), "high,high"),
        ("highest", lambda a, b: jnp.matmul(a, b, precision="high"), "high,high"),
        ("highest", lambda a, b: jnp.matmul(a, b, precision=lax.Precision.DEFAULT), "default"),
        ("bfloat16", jnp.matmul, "default"),
    ],
)
def test_default_matmul_precision(default: str | None, f: Callable[..., Any], expected: str) -> None:
    with hloom.default_matmul_precision(default):
        assert precision_of(f) == expected


def test_one_function_has_a_program_for_each_precision() -> None:
    def f(a: Any, b: Any) -> Any:
        return a @ b

    assert precision_of(f) == "default"
    with hloom.default_matmul_precision("highest"):
        assert precision_of(f) == "highest,highest"


SUMS_OF_HALVES: dict[str, tuple[Any, bool]] = {
    "lax.reduce_sum": (lambda x: lax.reduce_sum(x, (0,)), True),
    "lax.reduce": (lambda x: lax.reduce(x, np.zeros((), x.dtype), lax.add, (0,)), True),
    "reduce_sum along one element": (lambda x: lax.reduce_sum(x[:, None], (1,)), False),
    "lax.reduce_max": (lambda x: lax.reduce_max(x, (0,)), False),
    "numpy.sum": (lambda x: jnp.sum(x), False),
    "numpy.mean": (lambda x: jnp.mean(x), False),
    "numpy.var": (lambda x: jnp.var(x), False),
    "softmax": (lambda x: hloom.nn.softmax(x), False),
    "gradient": (hloom.grad(lambda x: jnp.sum(x * x)), False),
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("name", SUMS_OF_HALVES)
def test_sums_of_halves_that_are_not_allowed(name: str, dtype: str) -> None:
    fun, refused = SUMS_OF_HALVES[name]
    x = jnp.ones(4, dtype)
    for f in (fun, hloom.jit(fun)):
        f(x)
        with hloom.allow_f16_reductions(False):
            if refused and dtype != "float32":
                with pytest.raises(ValueError, match="jax_allow_f16_reductions=False"):
                    f(x)
            else:
                f(x)
        f(x)


@pytest.mark.parametrize(
    "first", ["dtypes.canonicalize_dtype('float64')", "dtypes.result_type(1, 2.0)", "ref.new_ref(1.0)",
              "sharding.get_mesh()"]
)  # fmt: skip
def test_settings_are_there_for_the_first_call_of_a_process(first: str) -> None:
    """Names that load little of the library ask for settings, too."""
    subprocess.run([sys.executable, "-c", f"import hloom; hloom.{first}"], check=True)
