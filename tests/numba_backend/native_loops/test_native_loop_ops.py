"""Operations with rows of their own inside of loops: as a part of one kernel, as rows, and on the evaluator."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hloom.hlo.builder import make_parameter
from hloom.hlo.element_type import ElementType
from hloom.hlo.passes.fuse.outline_loops import OutlineLoops
from hloom.hlo.passes.manager import Pipeline
from hloom.hlo.shape import Shape
from hloom.numba_backend.native_loops import joining
from hloom.numba_backend.native_loops.cost import is_native
from hloom.numba_backend.pipeline import pipeline
from hloom.numba_backend.runtime.program import LoweringRefused

import hloom
from hloom import hlo, lax
from support.evaluator_fixture import x64  # noqa: F401  # a fixture
from support.loop_modules import loop_module
from support.native_loops import compile_module

NDArray = np.ndarray[Any, Any]

CASES: dict[str, tuple[tuple[str, ...], str, str, list[NDArray], float]] = {}
"""Name -> types of the state, body, computations, initial state, tolerance relative to the largest element."""

DTYPES = {t.value: t.dtype for t in ElementType if not t.is_small}
TOLERANCE = {"f16": 4e-3, "bf16": 4e-2, "f32": 2e-5, "c64": 2e-5, "f64": 1e-12, "c128": 1e-12}
RNG = np.random.default_rng(5)


def normal(t: str, *dims: int) -> NDArray:
    values = RNG.standard_normal(dims)
    if t in ("c64", "c128"):
        values = values + 1j * RNG.standard_normal(dims)
    return values.astype(DTYPES[t])


def whole(t: str, *dims: int) -> NDArray:
    return RNG.integers(-50 if t[0] == "s" else 0, 50, dims).astype(DTYPES[t])


def definite(t: str, *dims: int) -> NDArray:
    x = normal(t, *dims).astype("c16")
    return _cast(x @ x.conj().swapaxes(-1, -2) + 2 * dims[-1] * np.eye(dims[-1]), t)


def triangle(t: str, *dims: int) -> NDArray:
    """Both triangles have numbers; the diagonal is large."""
    return _cast(normal(t, *dims) + 3 * dims[-1] * np.eye(dims[-1]), t)


def _cast(x: NDArray, t: str) -> NDArray:
    return (x if t in ("c64", "c128") else x.real).astype(DTYPES[t])


def case(name: str, state: list[NDArray], body: str, computations: str = "") -> None:
    """A case with a loop that changes `state`. In `body`, {0} is the type of element 0 of the state, and so on."""
    names = {v: k for k, v in DTYPES.items()}
    kinds = [names[x.dtype] for x in state]
    types = tuple(f"{t}[{','.join(map(str, x.shape))}]" for t, x in zip(kinds, state))
    tolerance = max(TOLERANCE.get(t, 0.0) for t in kinds)
    assert name not in CASES
    CASES[name] = types, body.format(*types), computations, state, tolerance


# Factorisations. The matrix is scaled in each iteration, so that the work is not moved out of the loop.

SCALED = """
  half = {0} multiply(x0, x0)
  twice = {0} add(x0, x0)
  y0 = {0} add(x0, twice)
"""


def _factorisations() -> Iterator[tuple[str, list[NDArray], str]]:
    for t in ("f32", "f64", "c64", "c128", "f16"):
        sizes: tuple[tuple[int, ...], ...] = ((3, 3),)
        if t in ("f32", "f64"):
            sizes = ((1, 1), (2, 2), (3, 8, 8)) if t == "f32" else ((4, 4), (16, 16))
        for dims in sizes:
            for lower in (True, False):
                a = definite(t, *dims)
                unread = np.triu(np.ones(dims[-2:], bool), 1) if lower else np.tril(np.ones(dims[-2:], bool), -1)
                a[..., unread] = np.nan
                body = SCALED + f"  f = {{0}} cholesky(x0), lower={str(lower).lower()}\n  y1 = {{1}} add(x1, f)"
                yield f"cholesky-{t}-{dims}-{lower}", [a, np.zeros_like(a)], body
    bad = definite("f32", 5, 3, 3)
    bad[1, -1, -1] *= -1
    bad[2, 0] = bad[2, :, 0] = 0
    bad[3, 1, 1] = np.nan
    bad[4, 0, 0] = np.inf
    body = SCALED + "  f = {0} cholesky(x0), lower=true\n  y1 = {1} add(x1, f)"
    yield "cholesky-indefinite", [bad, np.zeros_like(bad)], body
    yield from _solves()
    yield from _calls()


def _solves() -> Iterator[tuple[str, list[NDArray], str]]:
    kinds = ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")
    forms = list(itertools.product((True, False), (True, False), kinds, (False, True)))
    sizes = ((4, 3), (2, 5, 4), (1, 1), (8, 1), (1, 9), (0, 3), (3, 16, 2))
    given = [("f32", dims, form) for dims, form in zip(itertools.cycle(sizes), forms, strict=False)]
    given += [("c64", (3, 2), form) for form in forms if not form[-1]]
    given += [("f64", (4, 3), forms[4]), ("f64", (3, 4), forms[13]), ("bf16", (3, 3), forms[0])]
    for t, dims, (left, lower, kind, unit) in given:
        n = dims[-2] if left else dims[-1]
        a, b = triangle(t, *dims[:-2], n, n), normal(t, *dims)
        if unit:
            a = (a / (4 * max(n, 1))).astype(a.dtype)
        attributes = f"left_side={left}, lower={lower}, transpose_a={kind}, unit_diagonal={unit}"
        body = f"""
  y0 = {{0}} negate(x0)
  f = {{1}} triangular-solve(x0, x1), {attributes.replace("True", "true").replace("False", "false")}
  y1 = {{1}} add(f, x1)
"""
        yield f"solve-{t}-{dims}-{left}-{lower}-{kind}-{unit}", [a, b], body


TRSM = "diag = 78 : ui8, side = 76 : ui8, trans_x = 67 : ui8, uplo = 76 : ui8"


def _typed(letter: str, routine: str, config: str = "") -> str:
    """The attributes of a call of LAPACK."""
    text = f', backend_config="{{{{{config}}}}}"' if config else ""
    return f'custom_call_target="lapack_{letter}{routine}_ffi", api_version=API_VERSION_TYPED_FFI{text}'


def _calls() -> Iterator[tuple[str, list[NDArray], str]]:
    for t, letter in (("f32", "s"), ("f64", "d"), ("c64", "c"), ("c128", "z")):
        for dims in ((1, 1), (2, 2), (2, 5, 3), (3, 5), (12, 12)) if t == "f32" else ((4, 4), (2, 4, 3)):
            k = min(dims[-2:])
            a = normal(t, *dims)
            types = f"({{0}}, {{2}}, s32[{','.join(map(str, dims[:-2]))}])"
            body = SCALED + f"""
  f = {types} custom-call(x0), {_typed(letter, "getrf")}
  lu = {{0}} get-tuple-element(f), index=0
  y1 = {{1}} add(x1, lu)
  y2 = {{2}} get-tuple-element(f), index=1
"""
            yield f"lu-{t}-{dims}", [a, np.zeros_like(a), np.zeros((*dims[:-2], k), "i4")], body
        for dims in ((4, 4), (2, 3, 3)):
            a = definite(t, *dims)
            types = f"({{0}}, s32[{','.join(map(str, dims[:-2]))}])"
            body = SCALED + f"""
  f = {types} custom-call(x0), {_typed(letter, "potrf", "uplo = 85 : ui8")}
  c = {{0}} get-tuple-element(f), index=0
  y1 = {{1}} add(x1, c)
"""
            yield f"potrf-{t}-{dims}", [a, np.zeros_like(a)], body
            b = normal(t, *dims[:-1], 2)
            body = f"""
  y0 = {{0}} negate(x0)
  f = {{1}} custom-call(x0, x1), {_typed(letter, "trsm", TRSM)}
  y1 = {{1}} add(f, x1)
"""
            yield f"trsm-{t}-{dims}", [triangle(t, *dims), b], body
    for t, letter in (("f32", "s"), ("f64", "d")):
        for dims in ((1, 1), (4, 4), (2, 5, 3), (3, 5), (8, 8)):
            a = normal(t, *dims)
            k = min(dims[-2:])
            body = SCALED + f"""
  f = ({{0}}, {{2}}) custom-call(x0), {_typed(letter, "geqrf")}
  qr = {{0}} get-tuple-element(f), index=0
  tau = {{2}} get-tuple-element(f), index=1
  y2 = {{2}} add(x2, tau)
"""
            if dims[-2] >= dims[-1]:
                body += f"""
  q = {{0}} custom-call(qr, tau), {_typed(letter, "orgqr")}
  s = {{0}} add(q, qr)
  y1 = {{1}} add(x1, s)
"""
            else:
                body += "  y1 = {1} add(x1, qr)\n"
            yield f"qr-{t}-{dims}", [a, np.zeros_like(a), np.zeros((*dims[:-2], k), a.dtype)], body


for _name, _state, _body in _factorisations():
    case(_name, _state, _body)

ZERO_COLUMN = np.array([[0, 1, 2], [0, 0, 3], [0, 4, 0]], np.float32)
case(
    "lu-singular",
    [np.stack([ZERO_COLUMN, ZERO_COLUMN * 0, np.eye(3, dtype="f4")[::-1]]), np.zeros((3, 3), "i4"), np.zeros(3, "i4")],
    SCALED + f"""
  f = ({{0}}, {{1}}, {{2}}) custom-call(x0), {_typed("s", "getrf")}
  y1 = {{1}} get-tuple-element(f), index=1
  y2 = {{2}} get-tuple-element(f), index=2
""",
)
case(
    "potrf-info",
    [np.stack([np.diag(d).astype("f4") for d in ([1, 2, 3], [1, -1, 2], [0, 1, -1], [-1, -2, 0])]), np.zeros(4, "i4")],
    SCALED + f"""
  f = ({{0}}, {{1}}) custom-call(x0), {_typed("s", "potrf", "uplo = 76 : ui8")}
  y1 = {{1}} get-tuple-element(f), index=1
""",
)
huge = normal("f32", 4, 4) * np.float32(1e30)
case(
    "qr-large", [huge, np.zeros(4, "f4")],
    f"""
  y0 = {{0}} negate(x0)
  f = ({{0}}, {{1}}) custom-call(x0), {_typed("s", "geqrf")}
  y1 = {{1}} get-tuple-element(f), index=1
""",
)

# Products

for _t in ("f16", "bf16", "f32", "f64", "c64", "c128", "s32", "s64", "u32", "u8"):
    _make = whole if _t[0] in "su" else normal
    for _dims in ((1,), (2,), (5,), (13,), (70,), (8, 8), (20, 16)) if _t in ("f32", "c64") else ((5,), (4, 3)):
        for _side in (1, 0):
            _n = _dims[0]
            _a = _make(_t, _n, _n)
            if _make is normal:
                _a = (_a / (2 * _n)).astype(_a.dtype)
            _numbers = f"lhs_contracting_dims={{{{{_side}}}}}, rhs_contracting_dims={{{{0}}}}"
            for _name in ("negate", "copy"):  # the matrix changes, or does not
                if _name == "copy" and _t not in ("f32", "f64", "c64"):
                    continue
                _body = f"  y1 = {{1}} {_name}(x1)\n  f = {{0}} dot(x1, x0), {_numbers}\n  y0 = {{0}} add(f, x0)"
                case(f"dot-{_t}-{_dims}-{_side}-{_name}", [_make(_t, *_dims), _a], _body)
case(
    "dot-batches", [normal("f32", 3, 2, 4), normal("f32", 3, 4, 4) / 4],
    """
  y1 = {1} negate(x1)
  y0 = {0} dot(x0, x1), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}},
    rhs_contracting_dims={{1}}
""",
)

# Sorting

LESS = """
less {{
  a = {t}[] parameter(0)
  b = {t}[] parameter(1)
  ROOT r = pred[] compare(a, b), direction={d}{more}
}}
"""
for _t in ("f32", "s32", "u8", "f16", "f64"):
    for _dims, _axis in (((1,), 0), ((2,), 0), ((40,), 0), ((3, 5), 0), ((4, 9), 1)) if _t == "f32" else (((7,), 0),):
        _x = (whole if _t[0] in "su" else normal)(_t, *_dims)
        if _t[0] == "f" and _x.size > 4:
            _x.reshape(-1)[:4] = np.nan, np.inf, -np.inf, -0.0
        _more = ", type=TOTALORDER" if _t[0] == "f" else ""
        case(
            f"sort-{_t}-{_dims}-{_axis}", [_x],
            f"  n0 = {{0}} {'multiply(x0, x0)' if _t == 'u8' else 'negate(x0)'}\n"
            f"  y0 = {{0}} sort(n0), dimensions={{{{{_axis}}}}}, to_apply=less",
            LESS.format(t=_t, d="LT", more=_more),
        )  # fmt: skip
case(
    "sort-pairs", [normal("f32", 3, 12), np.arange(36, dtype="i4").reshape(3, 12)],
    """
  n0 = {0} negate(x0)
  s = ({0}, {1}) sort(n0, x1), dimensions={{1}}, is_stable=true, to_apply=before
  y0 = {0} get-tuple-element(s), index=0
  y1 = {1} get-tuple-element(s), index=1
""",
    """
before {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=GT
}
""",
)
case(
    "topk", [normal("f32", 3, 9), np.zeros((3, 4), "f4"), np.zeros((3, 4), "i4")],
    """
  y0 = {0} negate(x0)
  t = ({1}, {2}) topk(x0), k=4, largest=true
  v = {1} get-tuple-element(t), index=0
  y1 = {1} add(v, x1)
  y2 = {2} get-tuple-element(t), index=1
""",
)

# Windows

REDUCERS = """
combine {{
  a = {t}[] parameter(0)
  b = {t}[] parameter(1)
  ROOT r = {t}[] {op}(a, b)
}}
"""
for _t, _op, _init in (("f32", "add", 0), ("s32", "add", 0), ("f64", "minimum", "inf")):
    _make = whole if _t[0] in "su" else normal
    for _dims, _window in (
        ((1,), "size=1 pad=0_0"), ((2,), "size=2 pad=1_0"), ((9,), "size=9 pad=8_0"), ((9,), "size=9 pad=0_8"),
        ((3, 7), "size=1x7 pad=0_0x6_0"), ((5, 3), "size=5x1 pad=4_0x0_0"), ((8,), "size=3 pad=1_1"),
        ((4, 5), "size=3x3 pad=1_1x1_1"),
    ):  # fmt: skip
        _x = _make(_t, *_dims)
        if _t[0] == "f" and _x.size > 4:
            _x.reshape(-1)[2] = np.nan if _op == "add" else np.inf
        case(
            f"window-{_t}-{_op}-{_dims}-{_window}", [_x],
            f"  init = {_t}[] constant({_init})\n  n0 = {{0}} negate(x0)\n"
            f"  y0 = {{0}} reduce-window(n0, init), window={{{{{_window}}}}}, to_apply=combine",
            REDUCERS.format(t=_t, op=_op),
        )  # fmt: skip
case(
    "window-scan-in-pieces", [normal("f32", 2, 5000)],
    """
  init = f32[] constant(0)
  h = f32[] constant(0.01)
  hs = {0} broadcast(h), dimensions={{}}
  n0 = {0} multiply(x0, hs)
  y0 = {0} reduce-window(n0, init), window={{size=1x5000 pad=0_0x4999_0}}, to_apply=combine
""",
    REDUCERS.format(t="f32", op="add"),
)
case(
    "select-and-scatter", [normal("f32", 4, 6), normal("f32", 2, 3)],
    """
  init = f32[] constant(0.5)
  y1 = {1} negate(x1)
  y0 = {0} select-and-scatter(x0, x1, init), window={{size=2x2 stride=2x2}}, select=ge, scatter=combine
""",
    REDUCERS.format(t="f32", op="add") + """
ge {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=GE
}
""",
)

# Convolutions

for _t in ("f32", "s32", "c64"):
    _make = whole if _t[0] in "su" else normal
    for _labels, _x_dims, _k_dims, _window in (
        ("b0f_0io->b0f", (1, 9, 2), (3, 2, 2), "size=3 pad=1_1"),
        ("bf0_oi0->bf0", (1, 1, 8), (1, 1, 3), "size=3 pad=1_1"),
        ("bf01_oi01->bf01", (2, 2, 4, 5), (2, 2, 3, 3), "size=3x3 pad=1_1x1_1"),
        ("b01f_01io->b01f", (1, 4, 4, 3), (1, 1, 3, 3), "size=1x1"),
    ):
        case(
            f"convolution-{_t}-{_labels}", [_make(_t, *_x_dims), _make(_t, *_k_dims)],
            f"  y1 = {{1}} negate(x1)\n  f = {{0}} convolution(x0, x1), window={{{{{_window}}}}}, "
            f"dim_labels={_labels}\n  y0 = {{0}} add(f, x0)",
        )


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", CASES)
def test_three_ways(name: str) -> None:
    types, body, computations, state, tolerance = CASES[name]
    module = loop_module(types, body, computations)
    native, rows = compile_module(module, "native"), compile_module(module, "rows")
    if all(x.size for x in state):
        assert any("native_loop" in text for text in dict(native.kernels()).values())
    assert not any("native_loop" in text for text in dict(rows.kernels()).values())
    for trips in (0, 1, 7):
        arguments = [np.int32(trips), *state]
        results = native.execute(arguments), rows.execute(arguments), hlo.evaluate(module, *arguments)
        for first, second, third in zip(*(tuple(map(np.asarray, r)) for r in results), strict=True):
            _check(first, second, tolerance, f"{name}, {trips} iterations, native and rows")
            allowed = tolerance * (10 if trips > 1 else 1)
            _check(first, third, allowed, f"{name}, {trips} iterations, native and evaluator")


def _check(actual: NDArray, expected: NDArray, tolerance: float, what: str) -> None:
    """Equal up to `tolerance` of the largest finite element; NaN and infinities are where they should be."""
    if not tolerance or actual.dtype.kind in "iub":
        np.testing.assert_array_equal(actual, expected, what)
        return
    kind = "c16" if actual.dtype.kind == "c" else "f8"
    a, b = actual.astype(kind), expected.astype(kind)
    scale = np.abs(b[np.isfinite(b)]).max(initial=0)
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale, err_msg=what)


KEPT = {
    "a Python function": (
        ("f32[3]",), 'y0 = {0} custom-call(x0), custom_call_target="native_loop_ops.twice"', [np.ones(3, "f4")]
    ),
    "another routine of LAPACK": (
        ("f32[3,3]", "f32[3]", "s32[]"),
        "f = ({0}, {1}, {2}) custom-call(x0), "
        + _typed("s", "syevd", "mode = 86 : ui8, uplo = 76 : ui8").replace("{{", "{").replace("}}", "}")
        + "\n  y0 = {0} get-tuple-element(f), index=0\n  y1 = {1} get-tuple-element(f), index=1"
        "\n  y2 = {2} get-tuple-element(f), index=2",
        [np.diag([1, 2, 3]).astype("f4"), np.zeros(3, "f4"), np.int32(0)],
    ),
    "a large factorisation": (("f32[40,40]",), "y0 = {0} cholesky(x0), lower=true", [np.eye(40, dtype="f4")]),
    "a Fourier transform": (("c64[8]",), "y0 = {0} fft(x0), fft_type=FFT, fft_length={8}", [np.ones(8, "c8")]),
}
"""Operations that a kernel cannot contain."""


@pytest.mark.parametrize("name", KEPT)
def test_what_is_no_kernel_keeps_the_loop_in_rows(name: str) -> None:
    types, body, state = KEPT[name]
    for k, type_ in enumerate(types):
        body = body.replace(f"{{{k}}}", type_)
    hloom.register_custom_call("native_loop_ops.twice", lambda x: x + x)
    try:
        module = loop_module(types, body)
        executable = compile_module(module, "native")
        assert not any("native_loop" in text for text in dict(executable.kernels()).values())
        arguments = [np.int32(3), *state]
        for one, two in zip(executable.execute(arguments), hlo.evaluate(module, *arguments), strict=True):
            _check(np.asarray(one), np.asarray(two), 1e-5, name)
    finally:
        hloom.unregister_custom_call("native_loop_ops.twice")


def test_a_function_in_the_place_of_a_factorisation_is_called() -> None:
    body = f"f = ({{0}}, s32[]) custom-call(x0), {_typed('s', 'potrf', 'uplo = 76 : ui8')}"
    body = body.replace("{{", "{").replace("}}", "}").replace("{0}", "f32[2,2]")
    module = loop_module(("f32[2,2]",), body + "\n  y0 = f32[2,2] get-tuple-element(f), index=0")
    own = "lapack_spotrf_ffi"
    hloom.register_custom_call(own, lambda a, uplo: (a + uplo, np.zeros((), np.int32)), replace=True)
    try:
        (result,) = compile_module(module, "native").execute([np.int32(2), np.eye(2, dtype="f4")])
    finally:
        hloom.unregister_custom_call(own)
    np.testing.assert_array_equal(np.asarray(result), np.eye(2) + 2 * 76)


CHOICES = {
    "cholesky of 8 x 8": (["f32[8,8]"], "y0 = f32[8,8] cholesky(x0), lower=true", True),
    "1,000 of them": (["f32[1000,8,8]"], "y0 = f32[1000,8,8] cholesky(x0), lower=true", False),
    "a product of 16 x 16": (["f32[16,16]"], "y0 = f32[16,16] dot(x0, x0), {by}", True),
    "a product of 24 x 24": (["f32[24,24]"], "y0 = f32[24,24] dot(x0, x0), {by}", False),
    "a product of complex 12 x 12": (["c64[12,12]"], "y0 = c64[12,12] dot(x0, x0), {by}", False),
    "a short convolution": (
        ["f32[1,32,4]", "f32[3,4,4]"],
        "y0 = f32[1,32,4] convolution(x0, x1), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f\n"
        "  y1 = f32[3,4,4] negate(x1)", True,
    ),
    "a convolution for BLAS": (
        ["f32[1,64,8]", "f32[3,8,8]"],
        "y0 = f32[1,64,8] convolution(x0, x1), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f\n"
        "  y1 = f32[3,8,8] negate(x1)", False,
    ),
}  # fmt: skip
"""Which is faster, as measured: one kernel (True) or rows."""


@pytest.mark.parametrize("name", CHOICES)
def test_the_faster_way_is_chosen(name: str) -> None:
    types, body, native = CHOICES[name]
    module = loop_module(types, body.replace("{by}", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"))
    chosen = [is_native(i) for i in _optimised_loops(module)]
    assert chosen == [native]


def _optimised_loops(module: hlo.HloModule) -> list[hlo.HloInstruction]:
    """The loops as the backend decides about them."""
    seen: list[hlo.HloInstruction] = []
    passes = pipeline("cpu")
    steps = tuple(
        OutlineLoops(lambda loop: bool(seen.append(loop))) if isinstance(p, OutlineLoops) else p for p in passes.steps
    )
    Pipeline("observed", steps).run(module)
    return seen


@pytest.mark.usefixtures("x64")
def test_bytes_read_as_another_width_in_a_loop() -> None:
    """A loop's variables and local arrays have one type: such a loop is rows."""

    def scrambled(words: Any) -> Any:
        def step(_: Any, words: Any) -> Any:
            wide = lax.bitcast_convert_type(words.reshape(2, 2), np.uint64)
            wide = wide * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            return lax.bitcast_convert_type(wide, np.uint32).reshape(4)

        return lax.fori_loop(0, 5, step, words)

    found = np.asarray(hloom.jit(scrambled)(np.arange(4, dtype=np.uint32)))
    state = [1 << 32, 2 | 3 << 32]
    for _ in range(5):
        state = [(s * 6364136223846793005 + 1442695040888963407) % 2**64 for s in state]
    assert found.tolist() == [half for s in state for half in (s % 2**32, s >> 32)]


def test_a_context_that_takes_kernels_refuses_all_other_rows() -> None:
    instruction = make_parameter(0, Shape.parse("f32[2]"))
    recorder = joining._Recorder(instruction)
    place = recorder.results(instruction)
    for row in (
        lambda: recorder.builder,
        lambda: recorder.device_word(0),
        lambda: recorder.product(None, *place, *place, *place),
        lambda: recorder.by_pieces(1, []),
    ):
        with pytest.raises(LoweringRefused, match=r"^it "):
            row()
