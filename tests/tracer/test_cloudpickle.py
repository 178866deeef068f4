"""cloudpickle of functions of a script, with which Dask, Ray, joblib and Spark send them to other processes."""

from __future__ import annotations

import inspect
import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import hloom
import hloom.numpy as jnp
from support import pickling_cases

SCRIPT = '''
"""Functions as users write them in a script or a notebook; `main` prints a pickle of each, in hexadecimal."""
import importlib, json, sys
from functools import partial
import {0} as jax, {0}.numpy as jnp

def plain(x):
    return x * 2
jitted = jax.jit(plain)

@jax.jit
def decorated(x):
    return x * 3

@partial(jax.jit, static_argnames="n")
def static(x, n=2):
    return x * n

@partial(jax.jit, static_argnums=0)
def recursive(n, x):
    return x if n == 0 else recursive(n - 1, x) + 1

@jax.jit
def calls(x):
    return decorated(x) + jitted(x) + OFFSET

OFFSET = 10.0

@jax.custom_jvp
def custom(x):
    return x * x
custom.defjvps(lambda t, y, x: 10 * t)

@jax.custom_vjp
def custom_backwards(x):
    return x * x
custom_backwards.defvjp(lambda x: (x * x, x), lambda x, t: (t * 100,))

class Model:
    @jax.jit
    def method(x):
        return x + 3

def closed(a):
    b = jnp.ones(3) * a
    return jax.jit(lambda x: x + b)

x = jnp.arange(3.0)
CASES = dict(
    plain=plain, jitted=jitted, decorated=decorated, static=static, recursive=partial(recursive, 3), calls=calls,
    method=Model.method, closed=closed(2.0), partial=partial(static, n=5), vmap=jax.vmap(decorated),
    grad=jax.grad(lambda x: decorated(x).sum()), jit_vmap=jax.jit(jax.vmap(decorated)), twice=jax.jit(jax.jit(plain)),
    jvp=jax.grad(lambda x: custom(x).sum()), vjp=jax.grad(lambda x: custom_backwards(x).sum()), custom=custom,
    tree=lambda x: TREE["a"] * x, tree_partial=jax.tree_util.Partial(decorated),
    scan=jax.jit(lambda x: jax.lax.scan(lambda c, y: (c + y, c), x[0], x)[1]),
    key=lambda x: jax.random.normal(KEY, (3,)),
)
TREE, KEY = {{"a": x}}, jax.random.key(3)
if __name__ == "__main__":
    dumps = importlib.import_module(sys.argv[1]).dumps
    print(json.dumps({{name: [dumps((f, x)).hex(), f(x).tolist()] for name, f in CASES.items()}}))
'''
MORE = """
pmapped = jax.pmap(decorated)
CASES.update(
    checkpoint=jax.checkpoint(plain), checkpoint_of_jit=jax.checkpoint(decorated),
    grad_of_checkpoint=jax.grad(lambda x: jax.checkpoint(jnp.sin)(x).sum()),
    pmap=lambda x: pmapped(x[None])[0], jacfwd=jax.jacfwd(decorated), jacrev=jax.jacrev(decorated),
    hessian=jax.hessian(lambda x: decorated(x).sum()), named=jax.named_call(decorated, name="called"),
    gradient=jax.custom_gradient(lambda x: (x * x, lambda t: t)), measured=jax.profiler.annotate_function(decorated),
    checked=lambda x: jax.experimental.checkify.checkify(decorated)(x)[1],
)
"""
"""Transformations that JAX's cloudpickle is not asked for."""
LOAD = """
import json, pickle, sys
shown = {}
for name, data in json.load(sys.stdin).items():
    try:
        function, x = pickle.loads(bytes.fromhex(data))
        shown[name] = function(x).tolist()
    except Exception as error:
        shown[name] = f"{type(error).__name__}: {error}"
print(json.dumps(shown))
"""


def ran(folder: Path, *command: str, given: str = "") -> Any:
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((root, str(folder)))}
    done = subprocess.run(
        [sys.executable, *command], input=given, capture_output=True, text=True, env=environment, timeout=200,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def loaded(script: str, pickler: str, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the functions give in their process, and in another one, which does not know the script."""
    (folder / "scripts").mkdir()
    (folder / "scripts" / "script.py").write_text(script)
    made = ran(folder, str(folder / "scripts" / "script.py"), pickler)
    there = ran(folder, "-c", LOAD, given=json.dumps({name: data for name, (data, _) in made.items()}))
    return {name: result for name, (_, result) in made.items()}, there


@pytest.mark.parametrize("pickler", ["cloudpickle", "own_copy"])
def test_functions_of_a_script(pickler: str, tmp_path: Path) -> None:
    """Also by a copy of cloudpickle in another library, as Ray and joblib have one."""
    there = pytest.importorskip("cloudpickle")
    shutil.copytree(Path(there.__file__).parent, tmp_path / "own_copy")
    here, elsewhere = loaded(SCRIPT.format("hloom").replace("TREE, KEY =", MORE + "TREE, KEY ="), pickler, tmp_path)
    assert elsewhere == here and len(here) == 31 and here["recursive"] == [3, 4, 5]


@pytest.mark.slow
def test_where_jax_can_hloom_can(tmp_path: Path) -> None:
    """JAX loads all of these, except a custom_vjp."""
    pytest.importorskip("jax")
    pytest.importorskip("cloudpickle")
    here, elsewhere = loaded(SCRIPT.format("jax"), "cloudpickle", tmp_path)
    assert [name for name in here if here[name] != elsewhere[name]] == ["vjp"]


def test_modules_that_shall_go_by_value() -> None:
    """`register_pickle_by_value`, for a module that the workers do not have; others go by name."""
    cloudpickle = pytest.importorskip("cloudpickle")
    by_name = cloudpickle.dumps(pickling_cases.decorated)
    assert len(by_name) < 200 and pickle.loads(by_name) is pickling_cases.decorated
    cloudpickle.register_pickle_by_value(pickling_cases)
    try:
        by_value = cloudpickle.dumps(pickling_cases.decorated)
    finally:
        cloudpickle.unregister_pickle_by_value(pickling_cases)
    copy = pickle.loads(by_value)
    assert copy is not pickling_cases.decorated
    assert pickling_cases.result(copy) == pickling_cases.result(pickling_cases.decorated)
    assert pickle.dumps(pickling_cases.decorated) == pickle.dumps(pickling_cases.decorated, 4)


SEND = """
import sys, cloudpickle, hloom
def error(of):
    try:
        of()
    except Exception as found:
        return found
print(*(cloudpickle.dumps(eval(text)).hex() for text in sys.argv[1:]))
"""
SENT = {
    'hloom.make_mesh((1,), ("x",))': 'x is hloom.make_mesh((1,), ("x",))',
    "error(lambda: hloom.jit(float)(1.0))": "isinstance(x, hloom.errors.ConcretizationTypeError)",
    'hloom.make_mesh((1,), ("x",)).axis_types[0]': "x is hloom.sharding.AxisType.Explicit",
    'hloom.P("x")': 'x == hloom.P("x") and type(x) is hloom.P',
    "hloom.NamedSharding": "x is hloom.sharding.NamedSharding",
    "hloom.numpy.ones(2).sharding": "type(x) is hloom.sharding.SingleDeviceSharding",
}
MESH, ERROR, *OTHERS = SENT


@pytest.mark.parametrize("sent", [[MESH, ERROR], *(pytest.param([x], marks=pytest.mark.slow) for x in OTHERS)], ids=str)
def test_objects_of_a_namespace_that_is_not_loaded(sent: list[str]) -> None:
    """The receiver gets the library's class, though the sender has not loaded its namespace. Pickling an object loads
    it, so a process sends one object of each namespace."""
    pytest.importorskip("cloudpickle")

    def printed(*arguments: str) -> str:
        done = subprocess.run([sys.executable, "-c", *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    lines = ["import pickle", "import hloom"]
    for made, pickled in zip(sent, printed(SEND, *sent).split(), strict=True):
        lines += [f"x = pickle.loads(bytes.fromhex({pickled!r}))", f"assert {SENT[made]}, x"]
    printed("\n".join(lines))


class Counted:
    """A callable object with a name, and things that are its own affair."""

    def __init__(self) -> None:
        self.public, self._lock = 5, hloom

    def __call__(self, x: Any) -> Any:
        return x + 1


@pytest.mark.parametrize(
    "transform",
    [hloom.vmap, hloom.checkpoint, hloom.pmap, hloom.profiler.annotate_function, hloom.sharding.auto_axes],
    ids=lambda t: t.__name__,
)
def test_a_transformed_object_keeps_its_public_attributes(transform: Any) -> None:
    counted = Counted()
    mapped = transform(counted)
    assert mapped.public == 5 and not hasattr(mapped, "_lock") and inspect.unwrap(mapped) is counted
    jitted = hloom.jit(jnp.sin)
    assert vars(transform(jitted)).get("_fun") is not vars(jitted)["_fun"]


def test_a_transformed_function_keeps_all_attributes() -> None:
    plain = lambda x: x  # noqa: E731
    plain._own = 3
    assert hloom.vmap(plain)._own == 3  # as functools.wraps
