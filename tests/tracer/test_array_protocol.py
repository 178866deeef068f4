"""Objects that say by `__jax_array__` which array they are; types of Jacobians; arguments of jit by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import lax


class Wrapped:
    def __init__(self, x: Any) -> None:
        self.x = x

    def __jax_array__(self) -> Any:
        return self.x


@pytest.mark.parametrize(
    "use",
    [
        jnp.asarray,
        jnp.array,
        lambda a: jnp.array([a, a])[1],
        lambda a: a.x * 0 + a,
        lambda a: a + a.x * 0,
        lambda a: jnp.ones(2) * a,
        lambda a: jnp.eye(2) @ a,
        lambda a: jnp.zeros(2).at[:].set(a),
        lambda a: hloom.jit(lambda y: y + a)(0.0),
        lambda a: jnp.add(a, 0),
        lambda a: jnp.where(True, a, 0.0),
    ],
)
def test_objects_that_are_arrays(use: Callable[[Any], Any]) -> None:
    assert use(Wrapped(jnp.array([1.0, 2.0]))).tolist() == [1, 2]


@pytest.mark.parametrize("transformation", [hloom.grad, hloom.jacfwd, hloom.jacrev, hloom.hessian])
@pytest.mark.parametrize(
    ("function", "argument", "weak"),
    [
        (lambda x: x * x, 1.0, True),
        (lambda x: x * np.float32(2), 1.0, None),
        (lambda x: x * 2.0, jnp.float32(1), False),
    ],
)
def test_derivatives_are_weakly_typed_as_in_jax(transformation: Any, function: Any, argument: Any, weak: Any) -> None:
    found = transformation(function)(argument)
    if weak is None:  # by columns: the type of the result; by rows: the type of the argument
        weak = transformation is not hloom.jacfwd
    assert found.weak_type is weak


def by_position(a: Any, /, b: Any, *args: Any, **kwargs: Any) -> Any:
    return a


@pytest.mark.parametrize("option", ["static_argnames", "donate_argnames"])
@pytest.mark.parametrize("name", ["a", "args", "kwargs"])
def test_arguments_that_have_no_name(option: str, name: str) -> None:
    if name == "kwargs":
        hloom.jit(by_position, **{option: "other"})  # one that **kwargs takes
        return
    with pytest.raises(ValueError, match=r"cannot be given to by_position .* by name"):
        hloom.jit(by_position, **{option: name})


def test_small_promises_of_arrays() -> None:
    x = hloom.device_put(jnp.ones(2), hloom.devices()[0])
    assert hloom.device_put(x, hloom.devices()[0]) is x and x.is_ready()
    place = hloom.sharding.SingleDeviceSharding(hloom.devices()[0])
    with pytest.raises(ValueError, match="must match the dtype of the addressable shards"):
        hloom.make_array_from_single_device_arrays((2,), place, [x], dtype="int32")
    with pytest.raises(ValueError, match="nested tuple"):
        hloom.P((("a", "b"),))
    lowered = hloom.jit(lambda x: x + 1).lower(1.0)
    assert lowered.compile(compiler_options={"xla_embed_ir_in_executable": True})(1.0) == 2
    assert hloom.jit(lambda x: x + 1, compiler_options={"exec_time_optimization_effort": 0.0})(1.0) == 2
    options: list[dict[str, Any]] = [
        {"in_shardings": place, "backend": "cpu"},
        {"out_shardings": place, "device": x.device},
    ]
    for given in options:
        with pytest.raises(ValueError, match=f"then {next(iter(given))} should not be specified"):
            hloom.jit(lambda x: x, **given)
    with pytest.raises(ValueError, match="No such compile option: 'speed'"):
        lowered.compile(compiler_options={"speed": 1})


@pytest.mark.parametrize("wide", ["float32", "float16"])
def test_a_rule_may_compute_in_another_type(wide: str) -> None:
    @hloom.custom_vjp
    def f(x: Any) -> Any:
        return x.astype(wide)

    f.defvjp(lambda x: (f(x), None), lambda _, g: (g,))
    found = hloom.grad(lambda x: f(x).sum())(jnp.ones(2, "bfloat16"))
    assert found.dtype == jnp.bfloat16 and found.tolist() == [1, 1]


def test_a_program_with_references_as_a_jaxpr() -> None:
    ref = hloom.new_ref(jnp.zeros(2))

    def write(r: Any) -> Any:
        r[...] += 1.0
        return r[...].sum()

    as_argument, captured = hloom.make_jaxpr(write)(ref), hloom.make_jaxpr(lambda: write(ref))()
    assert [str(v.aval) for v in as_argument.jaxpr.outvars] == ["float32[]", "float32[2]"]
    assert len(captured.jaxpr.constvars) == 1 and len(captured.jaxpr.outvars) == 2
    assert ref[...].tolist() == [0, 0]
    found = hloom.core.eval_jaxpr(as_argument.jaxpr, as_argument.consts, jnp.array([1.0, 2.0]))
    assert [x.tolist() for x in found] == [5, [2, 3]]


PLACED: dict[str, Callable[..., Any]] = {
    "zeros": lambda s: jnp.zeros(2, out_sharding=s),
    "full": lambda s: jnp.full(2, 3, out_sharding=s),
    "full of rows": lambda s: jnp.full((2, 2), jnp.ones(2), out_sharding=s),
    "ones_like": lambda s: jnp.ones_like(jnp.zeros(2), out_sharding=s),
    "asarray": lambda s: jnp.asarray([1, 2], out_sharding=s),
    "array": lambda s: jnp.array([1, 2], out_sharding=s),
    "arange": lambda s: jnp.arange(2, out_sharding=s),
    "lax.empty": lambda s: lax.empty(2, jnp.float32, out_sharding=s),
    "broadcasted_iota": lambda s: lax.broadcasted_iota(jnp.int32, (2,), 0, out_sharding=s),
}
ON_A_DEVICE: dict[str, Callable[..., Any]] = {
    "lax.full": lambda d: lax.full((2,), 1.0, sharding=d),
    "lax.full_like": lambda d: lax.full_like(jnp.ones(2), 1.0, sharding=d),
    "full_like": lambda d: jnp.full_like(jnp.ones(2), 1.0, device=d),
    "zeros_like": lambda d: jnp.zeros_like(jnp.ones(2), device=d),
    "empty_like": lambda d: jnp.empty_like(jnp.ones(2), device=d),
    "eye": lambda d: jnp.eye(2, device=d),
    "linspace": lambda d: jnp.linspace(0, 1, 2, device=d),
    "linspace and its step": lambda d: jnp.linspace(0, 1, 2, retstep=True, device=d)[0],
    "astype": lambda d: jnp.astype(jnp.ones(2), jnp.int32, device=d),
    "Array.astype": lambda d: jnp.ones(2).astype(jnp.int32, device=d),
    "from_dlpack": lambda d: jnp.from_dlpack(np.ones(2, np.float32), device=d),
    "fftfreq": lambda d: jnp.fft.fftfreq(2, device=d),
    "rfftfreq": lambda d: jnp.fft.rfftfreq(2, device=d),
}
CHECKED: dict[str, Callable[..., Any]] = {
    "dot": lambda s: jnp.dot(jnp.eye(2), jnp.eye(2), out_sharding=s),
    "matmul": lambda s: jnp.matmul(jnp.eye(2), jnp.eye(2), out_sharding=s),
    "tensordot": lambda s: jnp.tensordot(jnp.eye(2), jnp.eye(2), 1, out_sharding=s),
    "einsum": lambda s: jnp.einsum("ij,jk", jnp.eye(2), jnp.eye(2), out_sharding=s),
    "reshape": lambda s: jnp.reshape(jnp.eye(2), (4,), out_sharding=s),
    "ravel": lambda s: jnp.ravel(jnp.eye(2), out_sharding=s),
    "broadcast_to": lambda s: jnp.broadcast_to(jnp.eye(2), (3, 2, 2), out_sharding=s),
    "dot_general": lambda s: hloom.lax.dot_general(
        jnp.eye(2), jnp.eye(2), (((1,), (0,)), ((), ())), out_sharding=s
    ),
}


@pytest.mark.parametrize("name", [*PLACED, *CHECKED])
def test_out_sharding_is_checked(name: str) -> None:
    use = PLACED.get(name) or CHECKED[name]
    mesh, other = hloom.make_mesh((1,), ("x",)), hloom.make_mesh((1,), ("y",))
    place = hloom.NamedSharding(mesh, hloom.P("x"))
    found = use(place)
    if name in PLACED:
        assert found.sharding.is_equivalent_to(place, found.ndim) and found.committed
    with pytest.raises(ValueError, match="not under a mesh context"):
        use(hloom.P("x"))
    with pytest.raises(TypeError, match="only supports instances of `NamedSharding` or `PartitionSpec`"):
        use("x")
    with hloom.set_mesh(mesh):
        assert np.array_equal(use(hloom.P("x")), found)
        with pytest.raises(ValueError, match="should match the mesh of sharding"):
            use(hloom.NamedSharding(other, hloom.P("y")))
        with pytest.raises(ValueError, match="q of P"):
            use(hloom.P("q"))


@pytest.mark.parametrize("name", ON_A_DEVICE)
def test_device_is_where_the_result_is(name: str) -> None:
    place = hloom.NamedSharding(hloom.make_mesh((1,), ("x",)), hloom.P("x"))
    device = hloom.devices()[0]
    for given, wanted in ((place, place), (device, hloom.sharding.SingleDeviceSharding(device))):
        found = ON_A_DEVICE[name](given)
        assert found.committed and found.sharding == wanted


def test_an_array_like_another_is_where_that_is() -> None:
    place = hloom.NamedSharding(hloom.make_mesh((1,), ("x",)), hloom.P("x"))
    given = hloom.device_put(jnp.ones(2), place)
    for like in (lambda x: lax.full_like(x, 1), jnp.zeros_like, lambda x: jnp.ones_like(x, dtype=int)):
        assert like(given).sharding == place and not like(jnp.ones(2)).committed


def test_entries_of_a_place_that_say_nothing() -> None:
    mesh = hloom.make_mesh((1,), ("x",))
    assert jnp.zeros(2, out_sharding=hloom.NamedSharding(mesh, hloom.P("x", None))).sharding.spec == hloom.P("x")
    with pytest.raises(ValueError, match="rank at least 2"):
        jnp.zeros(2, out_sharding=hloom.NamedSharding(mesh, hloom.P(None, "x")))
    assert jnp.ones(2, device=hloom.devices()[0]).committed
