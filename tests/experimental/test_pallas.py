"""Kernels on blocks: results, transformations, errors."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import lax, test_util
from hloom.errors import JaxRuntimeError, UnsupportedError
from hloom.experimental import checkify
from hloom.experimental import pallas as pl
from hloom.experimental.pallas import mosaic_gpu as plgpu
from hloom.experimental.pallas import tpu as pltpu
from hloom.experimental.pallas import triton as pltriton
from support.pallas_kernels import CASES, tools

MESH = pltpu.create_tensorcore_mesh("core", num_cores=2)
SCALE = np.float32(3)
TOOLS = tools(hloom, jnp, lax, pl, pltpu)


def _attention(q_ref: Any, k_ref: Any, v_ref: Any, o_ref: Any, most_ref: Any, sum_ref: Any, total_ref: Any) -> None:
    @pl.when(pl.program_id(2) == 0)
    def _() -> None:
        most_ref[...] = jnp.full_like(most_ref, -1e30)
        sum_ref[...] = jnp.zeros_like(sum_ref)
        total_ref[...] = jnp.zeros_like(total_ref)

    scores = q_ref[...] @ k_ref[...].T
    most = jnp.maximum(most_ref[...], scores.max(-1))
    parts, factor = jnp.exp(scores - most[:, None]), jnp.exp(most_ref[...] - most)
    sum_ref[...] = sum_ref[...] * factor + parts.sum(-1)
    total_ref[...] = total_ref[...] * factor[:, None] + parts @ v_ref[...]
    most_ref[...] = most

    @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
    def _() -> None:
        o_ref[...] = total_ref[...] / sum_ref[...][:, None]


def attention() -> Any:
    rows, columns = (pl.BlockSpec((None, 2, 4), m) for m in (lambda h, i, j: (h, i, 0), lambda h, i, j: (h, j, 0)))
    return pl.pallas_call(
        _attention, hloom.ShapeDtypeStruct((2, 8, 4), jnp.float32), grid=(2, 4, 4), in_specs=[rows, columns, columns],
        out_specs=rows, scratch_shapes=[pltpu.VMEM((2,), np.float32)] * 2 + [pltpu.VMEM((2, 4), np.float32)],
    )  # fmt: skip


def same(found: Any, expected: Any) -> None:
    pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
    for one, other in pairs:
        assert one.dtype == other.dtype and one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_kernels(name: str) -> None:
    make, arguments, expected = CASES[name]
    same(hloom.jit(make(TOOLS))(*arguments), expected)


@pytest.mark.parametrize("name", ["softmax", "product_with_scratch", "histogram", "prefetched_order"])
def test_kernels_outside_of_jit(name: str) -> None:
    make, arguments, expected = CASES[name]
    same(make(TOOLS)(*arguments), expected)
    with hloom.disable_jit():
        same(make(TOOLS)(*arguments), expected)


@pytest.mark.parametrize("name", CASES)
def test_kernels_are_as_in_jax(name: str) -> None:
    jax = pytest.importorskip("jax")
    from jax.experimental import pallas
    from jax.experimental.pallas import tpu

    make, arguments, expected = CASES[name]
    if name == "empty_grid":
        pytest.skip("JAX refuses sizes that are 0")
    given = tools(jax, jax.numpy, jax.lax, pallas, tpu)
    found = jax.jit(make(given))(*arguments)
    same(found if isinstance(expected, tuple) else np.asarray(found), expected)


# ---- how a kernel becomes a program


def _loops(name: str) -> int:
    """The loops in the program of a kernel."""
    make, arguments, _ = CASES[name]
    text = hloom.jit(make(TOOLS)).lower(*arguments).as_text()
    return len(re.findall(r" while\(", text))


@pytest.mark.parametrize(
    "name, loops",
    [
        *(("add", 0), ("softmax", 0), ("transposed_with_borders", 0), ("overlapping_windows", 0), ("four_axes", 0)),
        *(("prefetched_order", 0), ("program_ids", 0), ("product_with_scratch", 1), ("sums_of_parts_of_rows", 1)),
        *(("loops_side_by_side", 1), ("loops_with_a_shared_row", 1), ("loops_on_two_axes", 1)),
        *(("scratch_that_goes_on", 1), ("scattered_results", 1), ("histogram", 2), ("data_dependent_loop", 2)),
        ("scratch_set_once", 2),
    ],
)
def test_independent_points_are_a_batch(name: str, loops: int) -> None:
    assert _loops(name) == loops


def test_a_kernel_is_traced_once() -> None:
    count = 0

    def kernel(x_ref: Any, o_ref: Any) -> None:
        nonlocal count
        count += 1
        o_ref[...] = x_ref[...] + 1

    call = pl.pallas_call(kernel, hloom.ShapeDtypeStruct((), jnp.float32))
    assert hloom.jit(lambda x: call(call(x)))(jnp.float32(1)) == 3
    assert count == 1


def test_points_that_print_run_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    def kernel(o_ref: Any) -> None:
        pl.debug_print("at {} of {}", pl.program_id(0), pl.num_programs(0))
        o_ref[...] = jnp.zeros_like(o_ref)

    block = pl.BlockSpec((1,), lambda i: (i,))
    pl.pallas_call(kernel, hloom.ShapeDtypeStruct((3,), jnp.float32), grid=(3,), out_specs=block)()
    assert capsys.readouterr().out == "at 0 of 3\nat 1 of 3\nat 2 of 3\n"


@pytest.mark.parametrize("name", ["product_with_scratch", "attention"])
def test_a_batch_may_not_take_too_much_memory(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then axes of the grid are loops, the last of the batch first."""
    if name == "attention":
        x = np.random.default_rng(0).standard_normal((2, 8, 4)).astype(np.float32)
        make, arguments = attention, (x, x[:, ::-1], 2 * x)
        scores = np.exp(np.einsum("hid,hjd->hij", x, arguments[1]))
        expected = np.einsum("hij,hjd->hid", scores / scores.sum(-1, keepdims=True), arguments[2])
    else:
        make_case, arguments, expected = CASES[name]
        make = lambda: make_case(TOOLS)  # noqa: E731
    same(hloom.jit(make())(*arguments), expected)
    monkeypatch.setattr("hloom.experimental.pallas.grids.MOST_BYTES", -(10**9))
    one_by_one = hloom.jit(make())
    assert len(re.findall(r" while\(", one_by_one.lower(*arguments).as_text())) == 3
    same(one_by_one(*arguments), expected)


def test_debugging_prints_the_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    def double(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = 2 * x_ref[...]

    pl.pallas_call(double, A, debug=True, name="twice")(A)
    printed = capsys.readouterr().out
    assert "twice for kernel function" in printed and "s32[8]{0} multiply(" in printed


# ---- transformations


@pytest.mark.parametrize("name", ["softmax", "product_with_scratch", "scratch_that_goes_on", "update_in_place"])
def test_batches(name: str) -> None:
    make, arguments, _ = CASES[name]
    call = make(TOOLS)
    batches = [np.stack([a, 2 * a, -a]) for a in arguments]
    found = hloom.jit(hloom.vmap(call))(*batches)
    same(found, np.stack([call(*[b[k] for b in batches]) for k in range(3)]))
    same(hloom.vmap(call, (None,) * (len(batches) - 1) + (0,))(*arguments[:-1], batches[-1])[0], call(*arguments))


@pytest.mark.parametrize("name", ["softmax", "product_with_scratch", "sums_of_parts_of_rows", "overlapping_windows"])
def test_derivatives(name: str) -> None:
    make, arguments, _ = CASES[name]
    call = make(TOOLS)
    test_util.check_grads(call, arguments, 1, modes=["fwd", "rev"], atol=2e-2, rtol=2e-2)


# ---- blocks


@pytest.mark.parametrize(
    "shape, block",
    [
        *(((0,), (3,)), ((4, 0), (2, 1)), ((3,), (0,)), ((), ()), ((1,), (1,)), ((1,), (4,)), ((9, 5), (4, 2))),
        ((2, 3, 4), (2, 1, 3)),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "bfloat16", "uint16", "complex64"])
def test_copies_of_any_size(shape: tuple[int, ...], block: tuple[int, ...], dtype: str) -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...]

    x = jnp.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    spec = pl.BlockSpec(block, lambda *ids: ids)
    grid = tuple([max(pl.cdiv(n, b), 1) if b else 1 for n, b in zip(shape, block, strict=True)])
    found = hloom.jit(pl.pallas_call(kernel, x, grid=grid, in_specs=[spec], out_specs=spec))(x)
    expected = x if all(block) else jnp.full_like(x, pl.empty((), x.dtype))
    assert str(found.tolist()) == str(expected.tolist()) and found.dtype == x.dtype


def test_bounded_slices() -> None:
    def kernel(starts_ref: Any, sizes_ref: Any, x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...]

    where = lambda i, starts, sizes: (pl.ds(starts[i], sizes[i]),)  # noqa: E731
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=2, grid=(3,), in_specs=[pl.BlockSpec((pl.BoundedSlice(4),), where)],
        out_specs=pl.BlockSpec((pl.BoundedSlice(4),), where),
    )  # fmt: skip
    call = pl.pallas_call(kernel, hloom.ShapeDtypeStruct((10,), jnp.int32), grid_spec=spec)
    found = call(jnp.array([0, 4, 9]), jnp.array([2, 4, 1]), jnp.arange(10) * 10)
    least = np.iinfo(np.int32).min
    assert found.tolist() == [0, 10, least, least, 40, 50, 60, 70, least, 90]
    padded = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=2, grid=(3,), in_specs=[pl.BlockSpec((pl.BoundedSlice(4),), where)],
        out_specs=pl.BlockSpec((None, 4), lambda i, starts, sizes: (i, 0)),
    )  # fmt: skip
    call = pl.pallas_call(kernel, hloom.ShapeDtypeStruct((3, 4), jnp.int32), grid_spec=padded)
    found = call(jnp.array([0, 4, 9]), jnp.array([2, 4, 1]), jnp.arange(10) * 10)
    assert found.tolist() == [[0, 10, least, least], [40, 50, 60, 70], [90, least, least, least]]


def test_references_from_outside() -> None:
    total = hloom.new_ref(jnp.zeros(2))

    def kernel(x_ref: Any) -> None:
        total[...] += x_ref[...]

    x = jnp.arange(6.0).reshape(3, 2)
    call = pl.pallas_call(kernel, (), grid=(3,), in_specs=[pl.BlockSpec((None, 2), lambda i: (i, 0))])
    assert hloom.jit(call)(x) == ()
    assert total[...].tolist() == [6.0, 9.0]


def test_named_axes() -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        assert (lax.axis_size("i"), lax.axis_size("k")) == (2, 4)
        o_ref[...] = x_ref[...]

    block = pl.BlockSpec((1, 1), lambda i, k: (i, k))
    x = jnp.arange(8).reshape(2, 4)
    grid = (("i", 2), ("k", 4))
    assert pl.pallas_call(kernel, x, grid=grid, in_specs=[block], out_specs=block)(x).tolist() == x.tolist()
    with pytest.raises(UnsupportedError, match=r"uses the grid's axis i in a collective: the points of a grid run one"):
        pl.pallas_call(lambda o_ref: o_ref.set(lax.psum(o_ref[0], "i"), 0), x[0], grid=(("i", 2),))()


def test_places_along_named_axes() -> None:
    def kernel(o_ref: Any) -> None:
        inner = hloom.vmap(lambda x: x + lax.axis_index("i"), axis_name="i")(jnp.zeros(2, jnp.int32))
        o_ref[...] = inner + 10 * lax.axis_index("i")
        lax.fori_loop(0, 2, lambda k, _: o_ref.addupdate(100 * lax.axis_index("k")), None)

    out = pl.BlockSpec((None, None, 2), lambda i, k: (i, k, 0))
    grid = (("i", 2), ("k", 2))
    found = pl.pallas_call(kernel, hloom.ShapeDtypeStruct((2, 2, 2), jnp.int32), grid=grid, out_specs=out)()
    assert found.tolist() == [[[0, 1], [200, 201]], [[10, 11], [210, 211]]]


def test_functions_of_kernels_make_arrays() -> None:
    """Arrays that a function makes while it is traced are not from outside, nor are numbers."""

    @hloom.jit
    def weights() -> Any:
        return np.arange(4, dtype=np.float32) * jnp.hamming(4)

    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] * weights() + jnp.array([0.0, 1, 2, 3]) * np.float32(2) + SCALE

    x = jnp.ones(4)
    expected = np.arange(4) * np.hamming(4) + 2 * np.arange(4) + 3
    for _ in range(2):
        np.testing.assert_allclose(pl.pallas_call(kernel, x)(x), expected, rtol=1e-6)


ORTHOGONAL: dict[str, tuple[Any, tuple[Any, ...], tuple[int, ...]]] = {
    "a block and an array": (lambda i: (pl.ds(i, 2), J()), ([1, 2], [0, 2]), (0, 1, 2)),
    "an array and a block": (lambda i: (J(), pl.ds(i, 2)), ([0, 2], [1, 2]), (0, 1, 2)),
    "two blocks with steps": (
        lambda i: (pl.ds(i, 2, 1), pl.ds(i, 2, 2), pl.ds(0, 1, 0)), ([1, 2], [1, 3], [0]), (0, 1, 2)
    ),
    "an integer, and a block apart": (lambda i: (i, slice(None), pl.ds(i, 2, 2)), ([1], [0, 1, 2, 3], [1, 3]), (1, 2)),
    "a block after all others": (lambda i: (..., pl.ds(i, 2, 2), i), ([0, 1, 2], [1, 3], [1]), (0, 1)),
    "arrays around a block": (lambda i: (J(), pl.ds(i, 2, 2), 3), ([0, 2], [1, 3], [3]), (0, 1)),
}  # fmt: skip
"""Indices of a start that is 1, the positions along each dimension, and the dimensions that a result has."""


@pytest.mark.usefixtures("evaluator")
@pytest.mark.parametrize("name", ORTHOGONAL)
def test_a_block_is_a_dimension_of_its_own(name: str) -> None:
    index, places, kept = ORTHOGONAL[name]
    x = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    where = np.ix_(*places, *[np.arange(n) for n in x.shape[len(places) :]])
    part = x[where]
    part = part.reshape([part.shape[d] for d in kept])

    def kernel(i_ref: Any, x_ref: Any, o_ref: Any, written_ref: Any, added_ref: Any) -> None:
        place = index(i_ref[0])
        o_ref[...] = x_ref[place]
        written_ref[...] = added_ref[...] = x_ref[...]
        written_ref[place] = -o_ref[...]
        added_ref[place] += 1

    found = pl.pallas_call(kernel, (part, x, x))(np.ones(1, np.int32), x)
    written, added = x.copy(), x.copy()
    written[where] *= -1
    added[where] += 1
    same(found, (part, written, added))


def test_a_block_that_does_not_fit_beside_an_array() -> None:
    """As in JAX: a read is moved inside, and what is written beyond the border is lost."""

    def kernel(i_ref: Any, x_ref: Any, o_ref: Any, written_ref: Any) -> None:
        place = pl.ds(i_ref[0], 2), jnp.zeros(1, jnp.int32)
        o_ref[...] = x_ref[place]
        written_ref[...] = x_ref[...]
        written_ref[place] = jnp.full((2, 1), -1.0)

    x = jnp.arange(6.0)[:, None]
    for start, read, written in ((5, [5, 5], [0, 1, 2, 3, 4, -1]), (-1, [5, 0], [-1, 1, 2, 3, 4, -1])):
        found = pl.pallas_call(kernel, (x[:2], x))(np.array([start], np.int32), x)
        assert found[0][:, 0].tolist() == read and found[1][:, 0].tolist() == written


def test_a_reference_as_an_index() -> None:
    def kernel(rows_ref: Any, x_ref: Any, o_ref: Any, p_ref: Any) -> None:
        o_ref[...] = x_ref[rows_ref]
        p_ref[...] = jnp.zeros_like(p_ref)
        p_ref[rows_ref.at[:2], 1:] = x_ref[:2, 1:]

    x = jnp.arange(8.0).reshape(4, 2)
    rows = jnp.array([3, 0, 3])
    found, written = pl.pallas_call(kernel, (x[:3], x))(rows, x)
    assert found.tolist() == x[rows].tolist()
    assert written.tolist() == [[0, 3], [0, 0], [0, 0], [0, 1]]


def test_checks_of_kernels() -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        pl.debug_check(x_ref[0] < 3, "too large")
        o_ref[...] = x_ref[...]

    block = pl.BlockSpec((1,), lambda i: (i,))
    run = hloom.jit(lambda x: pl.pallas_call(kernel, x, grid=(x.size,), in_specs=[block], out_specs=block)(x))
    x = jnp.arange(4)
    assert run(x).tolist() == [0, 1, 2, 3]
    with pl.enable_debug_checks(True):
        assert run(x[:3]).tolist() == [0, 1, 2]
        with pytest.raises(JaxRuntimeError, match=r"too large\n  at .*test_pallas.py:\d+"):
            run(x)
    error, _ = checkify.checkify(run)(x)
    assert "too large" in (error.get() or "")


# ---- cores


def test_kernels_on_cores() -> None:
    def kernel(x_ref: Any, ref: Any, o_ref: Any, *, memory: Any) -> None:
        core = lax.axis_index("core")
        assert lax.axis_size("core") == 2
        memory[...] = x_ref[pl.ds(2 * core, 2)] + pl.program_id(0)
        o_ref[pl.ds(2 * core, 2)] = memory[...] * 2
        ref[...] += core + 1

    count = hloom.new_ref(jnp.int32(0))
    x = jnp.arange(4)
    scratch = {"memory": pltpu.VMEM((2,), jnp.int32)}
    run = pl.kernel(kernel, x, mesh=MESH, scratch_types=scratch, interpret=True)
    assert hloom.jit(run)(x, count).tolist() == [0, 2, 6, 8] and count[...] == 3
    found = pl.kernel(mesh=MESH, out_type=(x, x))(lambda x_ref, o_ref, p_ref: o_ref.set(x_ref[...]))(x)
    assert found[0].tolist() == x.tolist() and (found[1] < 0).all()


def test_a_function_on_cores() -> None:
    ref = hloom.new_ref(jnp.zeros((2, 2), jnp.int32))

    @pl.core_map(MESH, scratch_shapes=[pltpu.VMEM((2,), jnp.int32)])
    def _(memory: Any) -> None:
        core = lax.axis_index("core")
        memory[...] = jnp.full(2, core)
        ref[core] = memory[...] + 1

    assert ref[...].tolist() == [[1, 1], [2, 2]]


def test_atomic_operations() -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        mask = x_ref[...] > 1
        pltriton.atomic_add(o_ref, (slice(None),), pltriton.load(x_ref, mask=mask, other=0))
        pltriton.store(o_ref.at[pl.ds(0, 1)], jnp.array([7], jnp.int32), mask=mask[:1])

    x = jnp.arange(6).reshape(3, 2)
    spec = pl.BlockSpec((None, 2), lambda i: (i, 0))
    call = pl.pallas_call(kernel, x[0], grid=(3,), in_specs=[spec, pl.BlockSpec()], input_output_aliases={1: 0})
    with pytest.raises(TypeError, match="takes 2 positional arguments but 3 were given"):
        call(x, jnp.zeros(2, jnp.int32))
    call = pl.pallas_call(
        lambda x, _, o: kernel(x, o), x[0], grid=(3,), in_specs=[spec, pl.BlockSpec()], input_output_aliases={1: 0}
    )
    assert call(x, jnp.zeros(2, jnp.int32)).tolist() == [7, 8]


# ---- errors

A = jnp.arange(8)
J = lambda: jnp.array([0, 2])  # noqa: E731
N = np.arange(8, dtype=np.int32)
ONE = N[:1]
B = A[:, None]
_nothing = lambda *_: None  # noqa: E731
ERRORS: dict[str, tuple[Any, type[Exception], str]] = {
    "a result": (lambda: pl.pallas_call(lambda *_: 0, A)(A), ValueError, r"The kernel function .*test_pallas.py:.*"
                 r"should return None. It returns a PyTree: PyTreeDef\(\*\)"),
    "too few parameters": (
        lambda: pl.pallas_call(lambda x: None, A)(A), TypeError,
        r"takes 1 positional argument but 2 were given\n  The kernel function in the pallas_call .*test_pallas.py:\d+ "
        r"takes \(x\). It is given 2 arguments: args\[0\] Ref{int32\[8\]}, outputs Ref{int32\[8\]}.\n  at .*pallas.py:",
    ),
    "too many parameters": (
        lambda: pl.pallas_call(lambda x, y, o, *, s: None, (A,), scratch_shapes={"s": pl.ANY((2,), "int8")})(A),
        TypeError,
        r"missing 1 required positional argument: 'o'\n.* takes \(x, y, o, s\). It is given 3 arguments: args\[0\] "
        r"Ref{int32\[8\]}, outputs\[0\] Ref{int32\[8\]}, s= Ref{int8\[2\]}.",
    ),
    "an error of the kernel's own": (lambda: pl.pallas_call(lambda x, o: len(3), A)(A), TypeError,
                                     r"^object of type 'int' has no len\(\)$"),
    "no function": (lambda: pl.pallas_call(A, A), TypeError, "takes a kernel, a function of references, not Array"),
    "specs that are no sequence": (lambda: pl.pallas_call(_nothing, A, in_specs=pl.BlockSpec()), ValueError,
                                   "`in_specs` must be a tuple or a list"),
    "too many specs": (lambda: pl.pallas_call(_nothing, A, in_specs=[pl.BlockSpec()] * 2)(A), ValueError,
                       "`in_specs` is a tuple of length 2 but `inputs` is a tuple of length 1"),
    "a spec for a container": (lambda: pl.pallas_call(_nothing, A, in_specs=[pl.BlockSpec()])({"a": A}), ValueError,
                               r"at \[0\], `in_specs` is a pytree leaf but `inputs` is a pytree of <class 'dict'>"),
    "rank of a block": (lambda: pl.pallas_call(_nothing, A, in_specs=[pl.BlockSpec((1, 1))])(A), ValueError,
                        r"Block shape for args\[0\] .* must have the same number of dimensions as the array shape \(8"),
    "positions": (lambda: pl.pallas_call(_nothing, A, in_specs=[pl.BlockSpec((4,), lambda: (0, 0))])(A), ValueError,
                  r"for args\[0\] must return 1 values to match .* Currently returning 2 values"),
    "a float position": (lambda: pl.pallas_call(_nothing, A, in_specs=[pl.BlockSpec((4,), lambda: 0.5)])(A),
                         ValueError, r"must return integer scalars. Output\[0\] has type float32"),
    "an index map that needs more": (lambda: pl.pallas_call(_nothing, A, out_specs=pl.BlockSpec((4,), lambda i: i))(A),
                                     TypeError, r"missing 1 required positional argument: 'i'\n  Index map function .*"
                                     r"for outputs takes \(i\). It is given 0 indices of the grid."),
    "an index map with prefetched arrays": (
        lambda: pl.pallas_call(
            _nothing, A, grid_spec=pltpu.PrefetchScalarGridSpec(1, 2, out_specs=pl.BlockSpec((4,), lambda i: i))
        )(A), TypeError, r"is given 1 index of the grid and 1 prefetched arguments",
    ),
    "more prefetched arguments than there are": (
        lambda: pl.pallas_call(_nothing, A, grid_spec=pltpu.PrefetchScalarGridSpec(2))(A), ValueError,
        "prefetches 2 arguments, but it is called with 1",
    ),
    "an index map first": (lambda: pl.BlockSpec(lambda i: i, (4,)), TypeError, "the shape of a block, then the index"),
    "a negative block": (lambda: pl.pallas_call(_nothing, A, in_specs=[pl.BlockSpec((-4,))])(A), ValueError,
                         r"Block shape for args\[0\] .* has a negative size"),
    "half a block": (lambda: pl.pallas_call(_nothing, A, in_specs=[pl.BlockSpec((2.5,))])(A), ValueError,
                     "Unsupported block dimension type"),
    "a shape as a spec": (lambda: pl.pallas_call(_nothing, A, in_specs=[4])(A), ValueError,
                          r"for args\[0\] must be a BlockSpec or no_block_spec, not 4"),
    "a negative grid": (lambda: pl.pallas_call(_nothing, A, grid=(2, -1)), ValueError, r"be negative, got \(2, -1"),
    "one scratch memory": (lambda: pl.pallas_call(_nothing, A, scratch_shapes=pl.ANY((2,), "int8")), ValueError,
                           "`scratch_shapes` must be a sequence or a dictionary"),
    "two inputs in one result": (
        lambda: pl.pallas_call(_nothing, A, input_output_aliases={0: 0, 1: 0})(A, A), ValueError, "several inputs for",
    ),
    "aliases of arguments": (lambda: pl.pallas_call(_nothing, A, input_output_aliases={2: 0})(A), ValueError,
                             r"the mapping '2:0' with input index 2 outside the range \[0, 1\)"),
    "aliases of other types": (lambda: pl.pallas_call(_nothing, A[:4], input_output_aliases={0: 0})(A), ValueError,
                               r"input\[0\] with abstract value int32\[8\] .*different abstract value int32\[4\]"),
    "a grid that is no number": (lambda: pl.pallas_call(_nothing, A, grid=("i",)), ValueError, "Grid must be a tuple"),
    "a grid twice": (lambda: pl.pallas_call(_nothing, A, grid=(2,), grid_spec=pl.GridSpec()), ValueError,
                     r"If `grid_spec` is specified, then `grid` must be `\(\)`"),
    "an axis": (lambda: pl.pallas_call(lambda *_: pl.program_id(1), A, grid=(2,))(A), ValueError,
                r"Axis 1 is out of bounds for grid \(2,\)"),
    "no kernel": (lambda: pl.program_id(0), ValueError, "program_id is used outside of a kernel"),
    "references": (lambda: pl.pallas_call(lambda x, o: o.set(x), A)(A), ValueError, "Cannot store a Ref into another"),
    "a reference as an array": (lambda: pl.pallas_call(lambda x, o: o.set(lax.sin(x)), A)(A), ValueError,
                                r"Attempting to pass a Ref Ref{int32\[8\]} to an operation -- did you forget"),
    "an index": (lambda: pl.pallas_call(lambda x, o: x[8], A)(A), ValueError, "Out of bound indexer: idx=8, dim=8"),
    "too many indices": (lambda: pl.pallas_call(lambda x, o: x[0, 0], A)(A), ValueError,
                         r"`indices` must not be longer than `shape`: indices=\(0, 0\), shape=\(8,\)"),
    "indices of several shapes": (lambda: pl.pallas_call(lambda x, o: x[jnp.arange(2), jnp.arange(3)], B)(B),
                                  ValueError, r"Cannot broadcast shapes for indexing: \[\(2,\), \(3,\)\]"),
    "a block": (lambda: pl.pallas_call(lambda x, o: x[pl.ds(4, 5)], A)(A), ValueError, "Out of bound slice: start=4"),
    "a negative start": (lambda: pl.pallas_call(lambda x, o: x[pl.ds(-1, 2)], A)(A), ValueError,
                         "Out of bound slice: start=-1, dim=8. A start that is known must not be negative"),
    "a large block": (
        lambda: pl.pallas_call(lambda x, o: x[pl.ds(pl.program_id(0), 9)], A, grid=1)(A), ValueError,
        "Out of bound slice: size=9, dim=8",
    ),
    "a captured array": (lambda: pl.pallas_call(lambda x, o: o.set(x[...] + A), A)(A), ValueError,
                         r"captures constants \[int32\[8\]\]. You should pass them as inputs"),
    "a captured array of NumPy": (lambda: pl.pallas_call(lambda x, o: o.set(x[...] + N), A)(A), ValueError,
                                  r"captures constants \[int32\[8\]\]"),
    "a captured element of NumPy": (lambda: pl.pallas_call(lambda x, o: o.set(x[...] + ONE), A)(A), ValueError,
                                    r"captures constants \[int32\[1\]\]"),
    "a captured array in a loop": (
        lambda: pl.pallas_call(lambda x, o: lax.fori_loop(0, 2, lambda i, _: o.set(x[...] * A), None), A)(A),
        ValueError, r"captures constants \[int32\[8\]\]",
    ),
    "a captured tracer": (lambda: hloom.jit(lambda a: pl.pallas_call(lambda x, o: o.set(a), A)(A))(A), ValueError,
                          r"captures constants \[int32\[8\]\]"),
    "a position from outside": (
        lambda: pl.pallas_call(_nothing, A, grid=(1,), in_specs=[pl.BlockSpec((4,), lambda i: A[i])])(A), ValueError,
        r"for args\[0\] must not capture constants",
    ),
    "indirect blocks": (lambda: pl.pallas_call(_nothing, A, in_specs=[pl.BlockSpec((pl.Indirect(4),))])(A),
                        UnsupportedError, "is for TPUs"),
    "no mesh": (lambda: pl.kernel(_nothing, A, mesh=None), UnsupportedError, "run on a mesh of cores"),
    "several meshes": (lambda: pl.kernel([_nothing], A, mesh=[MESH]), UnsupportedError, "several bodies and meshes"),
    "a mesh of this machine": (lambda: pltpu.create_tensorcore_mesh("core"), ValueError, "needs num_cores"),
    "a reference twice": (lambda: pl.kernel(_nothing, (), mesh=MESH)(*[hloom.new_ref(A)] * 2), UnsupportedError,
                          "Cannot pass the same ref"),
    "references as indices": (lambda: pl.pallas_call(lambda x, o: x[x, x], B)(B), UnsupportedError, "Multiple Ref"),
    "a reference beside an integer": (lambda: pl.pallas_call(lambda x, o: x[x, 0], B)(B), UnsupportedError,
                                      "Ref cannot be mixed with other non-slice indexers"),
    "a slice": (lambda: pl.pallas_call(lambda x, o: x[8:], A)(A), ValueError, "Out of bound slice: start=8, dim=8"),
    "semaphores": (lambda: pl.semaphore_signal(None), UnsupportedError, "is not written yet: it is for copies"),
    "copies": (lambda: pltpu.make_async_copy(None, None, None), UnsupportedError, "between the memories of a TPU"),
    "scratch": (lambda: pl.pallas_call(_nothing, A, scratch_shapes=[pltpu.SemaphoreType.DMA])(A), UnsupportedError,
                "SemaphoreType"),
    "kernels of Mosaic": (lambda: plgpu.kernel(_nothing, A), UnsupportedError, "it is about kernels for GPUs"),
    "packed registers": (lambda: pltpu.pack_elementwise([A], packed_dtype="int16"), UnsupportedError, "registers"),
    "inline assembly": (lambda: pltriton.elementwise_inline_asm(""), UnsupportedError, "it is about kernels for GPUs"),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    use, kind, words = ERRORS[name]
    with pytest.raises(kind, match=re.compile(words, re.DOTALL)):
        use()


def test_descriptions() -> None:
    assert str(pl.Element(4, (1, 2))) == "Element(4, padding=(1, 2))" and str(pl.Blocked(3)) == "Blocked(3)"
    assert pl.BlockSpec((2,), memory_space=pltpu.SMEM).replace(block_shape=(3,)).memory_space is pltpu.SMEM
    assert pl.ANY((2, 3), jnp.int8).get_ref_aval().shape == (2, 3) and pl.MemorySpace.ANY.memory_kind == "device"
    assert "grid=(2,)" in repr(pl.GridSpec(grid=2)) and repr(pl.no_block_spec) == "NoBlockSpec"
    with pytest.raises(ValueError, match="flops is not an int"):
        pl.CostEstimate(flops=1.5, transcendentals=0, bytes_accessed=0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Invalid out_shape type"):
        pl.pallas_call(_nothing, 3)()


def test_costs() -> None:
    def attention(q: Any, k: Any, v: Any) -> Any:
        return hloom.nn.softmax(q @ k.T) @ v

    q, k, v = (hloom.ShapeDtypeStruct(s, jnp.float32) for s in ((64, 16), (128, 16), (128, 4)))
    cost = pl.estimate_cost(attention, q, k, v)
    scores = 64 * 128
    assert cost.transcendentals == scores
    assert cost.flops == 2 * scores * 16 + 2 * scores * 4 + 2 * scores + 64
    assert cost.bytes_accessed == 4 * (64 * 16 + 128 * 16 + 128 * 4 + 64 * 4)


def test_small_functions() -> None:
    assert pltpu.roll(jnp.arange(6).reshape(2, 3), 1, 1, stride=1, stride_axis=0).tolist() == [[2, 0, 1], [4, 5, 3]]
    words = pltpu.bitcast(jnp.arange(4, dtype=jnp.int16).reshape(2, 2), jnp.int32)
    assert words.tolist() == [[2 << 16, 1 + (3 << 16)]]
    assert pltpu.bitcast(words, jnp.int16).tolist() == [[0, 1], [2, 3]]
    assert hloom.jit(pl.cdiv)(jnp.int32(7), 2) == 4 and pl.align_to(7, 4) == 8
    assert pl.reciprocal(jnp.float32(3), approx=True) != pl.reciprocal(jnp.float32(3))
    for use in (lambda: pltpu.roll(A, -1, 0), lambda: pltpu.roll(A, 1, 2), lambda: pltpu.bitcast(A, jnp.int8)):
        with pytest.raises(ValueError):
            use()
