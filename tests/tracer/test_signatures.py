"""A transformed function keeps its name, signature and documentation; type checkers' view: `test_static_tools.py`."""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import sys
import types
from collections.abc import Callable
from typing import Any

import pytest
from hloom.tracer.settings.setting import Setting

import hloom
import hloom.numpy as jnp
from hloom.extend.core import Primitive


def loss(w: hloom.Array, x: hloom.Array, *, scale: float = 1.0) -> hloom.Array:
    """How far it is off."""
    return ((w * x) ** 2).sum() * scale


TRANSFORMATIONS: dict[str, Callable[[Any], Any]] = {
    "jit": hloom.jit,
    "jit with options": hloom.jit(static_argnames="scale"),
    "grad": hloom.grad,
    "grad with aux": lambda f: hloom.grad(f, has_aux=True),
    "value_and_grad": hloom.value_and_grad,
    "jacfwd": hloom.jacfwd,
    "jacrev": hloom.jacrev,
    "hessian": hloom.hessian,
    "checkpoint": hloom.checkpoint,
    "custom_jvp": hloom.custom_jvp,
    "custom_vjp": hloom.custom_vjp,
    "jit of grad": lambda f: hloom.jit(hloom.grad(f)),
    "make_hlo": hloom.make_hlo,
}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_a_transformed_function_looks_like_the_function(name: str) -> None:
    found = TRANSFORMATIONS[name](loss)
    assert inspect.signature(found) == inspect.signature(loss)
    assert (found.__name__, found.__doc__, found.__module__) == ("loss", loss.__doc__, __name__)
    assert inspect.unwrap(found) is loss
    assert found.__annotations__ == loss.__annotations__


@pytest.mark.parametrize("name", [n for n in TRANSFORMATIONS if "custom" not in n])
def test_functions_without_a_name_are_transformed(name: str) -> None:
    with_scale = functools.partial(loss, scale=2.0)
    found = TRANSFORMATIONS[name](with_scale if "aux" not in name else lambda w, x: (loss(w, x), 1.0))
    assert found(jnp.ones(3), jnp.ones(3)) is not None


@pytest.mark.parametrize("custom", [hloom.custom_jvp, hloom.custom_vjp])
def test_methods(custom: Any) -> None:
    class Model:
        weight = 3.0

        @functools.partial(hloom.jit, static_argnums=0)
        def apply(self, x: hloom.Array) -> hloom.Array:
            """Apply."""
            return x * self.weight

        @functools.partial(custom, nondiff_argnums=0)
        def own(self, x: hloom.Array) -> hloom.Array:
            """Its own rule."""
            return x * self.weight

    if custom is hloom.custom_jvp:
        Model.own.defjvp(lambda self, primals, tangents: (self.own(*primals), tangents[0] * 7.0))
    else:
        Model.own.defvjp(lambda self, x: (self.own(x), None), lambda self, _, ct: (ct * 7.0,))
    assert Model.apply.__doc__ == "Apply." and Model.own.__doc__ == "Its own rule."
    assert float(Model().apply(2.0)) == 6.0
    assert float(hloom.grad(lambda x: Model().own(x))(2.0)) == 7.0


# ---- what inspect says


def plain(a: Any, b: int = 2, *, c: int = 3) -> Any:
    return a


@pytest.mark.parametrize("wrap", [hloom.jit, hloom.custom_jvp, hloom.custom_vjp, lambda f: hloom.jit(hloom.jit(f))])
def test_inspect_needs_not_follow_what_is_wrapped(wrap: Callable[[Any], Any]) -> None:
    found = wrap(plain)
    assert inspect.getfullargspec(found) == inspect.getfullargspec(plain)
    assert inspect.signature(found, follow_wrapped=False) == inspect.signature(plain)
    assert inspect.getsource(found) == inspect.getsource(plain)


def test_inspect_of_a_ufunc() -> None:
    mine = jnp.frompyfunc(plain, 2, 1)
    assert inspect.getsource(mine) == inspect.getsource(plain)
    assert list(inspect.signature(mine).parameters) == ["args", "out", "where"]
    assert inspect.getfullargspec(jnp.add).args == ["x1", "x2"]
    assert "def add(" in inspect.getsource(jnp.add)


PUBLIC = (
    *("hloom", "numpy", "numpy.linalg", "numpy.fft", "lax", "lax.linalg", "nn", "nn.initializers", "random"),
    *("scipy.linalg", "scipy.special", "scipy.signal", "scipy.stats", "scipy.fft", "scipy.optimize", "image", "ops"),
    *("scipy.stats.norm", "scipy.stats.poisson"),
    *("scipy.sparse.linalg", "scipy.integrate", "scipy.ndimage", "experimental.sparse"),
    *("experimental.ode", "experimental.jet", "experimental.checkify", "tree", "debug", "custom_batching"),
)


@pytest.mark.parametrize("name", PUBLIC)
def test_public_callables_answer_inspect(name: str) -> None:
    """Each has a signature, and the text that is shown is its own."""
    module, checked = importlib.import_module("hloom" if name == "hloom" else f"hloom.{name}"), 0
    for public in module.__all__:
        f = getattr(module, public)
        no_function = isinstance(f, type | types.GenericAlias | Primitive | Setting)
        if not callable(f) or no_function or not hasattr(f, "__name__"):
            continue
        if type(f).__name__ in ("_CallableGenericAlias", "NewType"):  # for annotations
            continue
        parameters = inspect.signature(f).parameters
        assert {*inspect.getfullargspec(f).args} <= {*parameters}, public
        shown = re.search(r"def (\w+)", inspect.getsource(f))
        assert shown is not None, public
        names = {public, f.__name__, inspect.unwrap(f).__name__}  # an alias shows the function of the other name
        assert any(shown[1] in name or name in shown[1] for name in names), f"{public} shows {shown[1]}"
        checked += 1
    assert checked


@pytest.mark.skipif(sys.version_info < (3, 14), reason="functions compute annotations when they are made")
@pytest.mark.parametrize("name", [n for n in TRANSFORMATIONS if n != "jit with options"])
def test_annotations_may_name_what_is_defined_later(name: str) -> None:
    namespace: dict[str, Any] = {}
    exec(compile("def f(x: Later) -> Later: return x", "<test>", "exec", dont_inherit=True), namespace)
    found = TRANSFORMATIONS[name](namespace["f"])
    with pytest.raises(NameError, match="Later"):
        _ = found.__annotations__
    namespace["Later"] = int
    assert found.__annotations__ == {"x": int, "return": int} == inspect.get_annotations(found)


@pytest.mark.parametrize("make", [hloom.jit, hloom.custom_jvp, hloom.custom_vjp])
def test_annotations_of_a_class_are_not_those_of_its_objects(make: Any) -> None:
    """A `partial` has none."""
    found = make(functools.partial(loss, scale=2.0))
    assert isinstance(type(found).__annotations__, dict) and not hasattr(found, "__annotations__")


@pytest.mark.skipif(sys.version_info < (3, 14), reason="functions compute annotations when they are made")
def test_functions_with_annotations_that_are_never_defined() -> None:
    """Names that only type checkers see: every use of a signature."""
    namespace: dict[str, Any] = {}
    text = "def f(x: Never, n: Never = 2) -> Never: return x * n\nclass C:\n def __call__(self, x: Never): return -x"
    exec(compile(text, "<test>", "exec", dont_inherit=True), namespace)
    f, c = namespace["f"], namespace["C"]()
    assert hloom.jit(f, static_argnames="n")(3.0, n=4) == hloom.jit(f, static_argnums=1)(3.0, 4) == 12
    assert hloom.jit(c)(3.0) == -3 == hloom.vmap(c)(jnp.full(1, 3.0))[0]
    with_rule = hloom.custom_jvp(f, nondiff_argnames="n")
    with_rule.defjvp(lambda n, primals, tangents: (f(*primals, n), 5 * tangents[0]))
    assert hloom.grad(with_rule)(3.0, n=2) == 5
    assert hloom.checkpoint(f, static_argnums=1)(3.0, 4) == 12
    assert list(inspect.signature(hloom.jit(f)).parameters) == ["x", "n"]
    with pytest.raises(TypeError, match="carry input"):
        hloom.lax.while_loop(c, lambda x: jnp.stack([x, x]), 1.0)
    with pytest.raises(TypeError, match="resolved to positional"):
        with_rule(3.0, m=1)
