"""Eigenvalues and singular values of small matrices: native rows, which give LAPACK's results bit by bit."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np
import pytest
from hloom.hlo.errors import UnsupportedError
from hloom.numba_backend.rows import custom_call, spectral

import hloom
import hloom.numpy as jnp

TYPES = {"f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128}
LETTERS = {"f32": "s", "f64": "d", "c64": "c", "c128": "z"}
REAL = {"f32": "f32", "f64": "f64", "c64": "f32", "c128": "f64"}


@pytest.fixture
def native(monkeypatch: pytest.MonkeyPatch) -> None:
    """No row calls Python."""

    def refuse(context: Any, instruction: Any, function: Any) -> None:
        raise AssertionError(f"{instruction.name} is a row that calls Python")

    monkeypatch.setattr(custom_call, "host_row", refuse)


def matrices(kind: str, *shape: int) -> Any:
    rng = np.random.default_rng(sum(shape))
    a = rng.standard_normal(shape)
    return (a + 1j * rng.standard_normal(shape) if kind[0] == "c" else a).astype(TYPES[kind])


def module(kind: str, shape: tuple[int, ...], routine: str, results: str, config: str, order: str = "") -> str:
    *batch, m, n = shape
    parts = results.format(b=",".join([*map(str, batch), ""]), t=kind, r=REAL[kind], m=m, n=n, k=min(m, n), o=order)
    parts = parts.replace(",]", "]")
    operand = f"{kind}[{','.join(map(str, shape))}]{order}"
    constraints = f", operand_layout_constraints={{{operand}}}" if order else ""
    name = "heevd" if routine == "syevd" and kind[0] == "c" else routine
    return f"""HloModule m
ENTRY e {{
  a = {operand} parameter(0)
  ROOT c = ({parts}) custom-call(a), custom_call_target="lapack_{LETTERS[kind]}{name}_ffi"{constraints},
    api_version=API_VERSION_TYPED_FFI, backend_config={{{config}}}
}}"""


SYEVD = "{t}[{b}{n},{n}]{o}, {r}[{b}{n}], s32[{b}]"
GESDD = "{t}[{b}{m},{n}]{o}, {r}[{b}{k}], {t}[{b}{m},{u}]{o}, {t}[{b}{v},{n}]{o}, s32[{b}]"
EVERY = GESDD.replace("{u}", "{m}").replace("{v}", "{n}")
FIRST = GESDD.replace("{u}", "{k}").replace("{v}", "{k}")
CASES = [
    ("syevd", (1, 1), SYEVD, "mode = 86 : ui8, uplo = 76 : ui8", ""),
    ("syevd", (4, 4), SYEVD, "mode = 86 : ui8, uplo = 85 : ui8", ""),
    ("syevd", (4, 4), SYEVD, "mode = 78 : ui8, uplo = 76 : ui8", ""),
    ("syevd", (2, 3, 5, 5), SYEVD, "mode = 86 : ui8, uplo = 76 : ui8", ""),
    ("syevd", (3, 5, 5), SYEVD, "mode = 86 : ui8, uplo = 76 : ui8", "{1,2,0}"),
    ("gesdd", (4, 3), EVERY, "mode = 65 : ui8", ""),
    ("gesdd", (3, 4), FIRST, "mode = 83 : ui8", ""),
    ("gesdd", (5, 1), FIRST, "mode = 83 : ui8", ""),
    ("gesdd", (2, 2, 3), EVERY, "mode = 78 : ui8", ""),
    ("gesdd", (2, 4, 3), EVERY, "mode = 65 : ui8", "{1,2,0}"),
]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(("routine", "shape", "results", "config", "order"), CASES)
def test_the_rows_give_the_same_bits_as_calls_from_python(
    routine: str, shape: tuple[int, ...], results: str, config: str, order: str, kind: str, native: None
) -> None:
    text = module(kind, shape, routine, results, config, order)
    a = matrices(kind, *shape)
    expected = hloom.run_hlo(text, a, backend="evaluator")
    found = hloom.run_hlo(text, a, backend="numba")
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert not found[-1].any()


def test_what_fails_says_so(native: None) -> None:
    text = module("f64", (2, 3, 3), "gesdd", EVERY, "mode = 65 : ui8")
    a = matrices("f64", 2, 3, 3)
    a[1, 0, 0] = np.nan
    assert hloom.run_hlo(text, a)[-1].tolist() == [0, -4]


@pytest.mark.parametrize("shape", [(0, 3, 3), (2, 0, 0), (1000, 20, 20), (200, 200)])
def test_what_is_empty_or_takes_long_is_a_call_from_python(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    host_row = custom_call.host_row
    monkeypatch.setattr(custom_call, "host_row", lambda c, i, f: (seen.append(i), host_row(c, i, f)))
    a = matrices("f32", *shape)
    values = jnp.linalg.eigvalsh(a)
    assert len(seen) == 1 or not a.size
    np.testing.assert_allclose(values, np.linalg.eigvalsh((a + a.swapaxes(-1, -2)) / 2), atol=1e-3)


def test_without_lapack_the_row_says_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> int:
        raise UnsupportedError("no LAPACK")

    monkeypatch.setattr(spectral, "address_of", missing)
    np.testing.assert_allclose(hloom.jit(lambda x: jnp.linalg.eigh(x)[0])(jnp.diag(jnp.arange(6.0))), np.arange(6.0))


def test_in_loops_threads_and_forks(native: None) -> None:
    def power(a: Any) -> Any:
        return hloom.lax.fori_loop(0, 3, lambda _, x: x / jnp.linalg.eigvalsh(x)[-1], a)

    a = jnp.asarray(np.diag(np.arange(1, 5, dtype=np.float32)))
    run = hloom.jit(power)
    expected = np.asarray(run(a))
    np.testing.assert_allclose(expected, a / 4)
    same: list[bool] = []
    workers = [
        threading.Thread(target=lambda: same.extend(np.array_equal(run(a), expected) for _ in range(50)))
        for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert same == [True] * 200
    child = os.fork()
    if not child:
        os._exit(0 if np.array_equal(run(a), expected) else 1)
    assert os.waitpid(child, 0)[1] == 0
