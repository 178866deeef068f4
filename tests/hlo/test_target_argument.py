"""`target`, by name or as an object, in every interface: jit's setting, lower().compile, run_hlo, optimize, clients."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from hloom.hlo import ComputationBuilder, LocalClient, Shape, UnsupportedError, optimize, parse
from hloom.hlo.backend import default_target, get_compiler
from hloom.hlo.layout import Layout
from hloom.hlo.target import CpuTarget, Target

import hloom

X = np.arange(6, dtype=np.float32).reshape(2, 3)
TEXT = """HloModule double
ENTRY main {
  x = f32[2,3]{1,0} parameter(0)
  ROOT y = f32[2,3]{1,0} add(x, x)
}
"""


class Columns(Target):
    """A target that is in no table."""

    name = "columns"

    def buffer_layout(self, shape: Shape) -> Layout:
        return CpuTarget().buffer_layout(shape)


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    before = hloom.config.hloom_backend, hloom.config.hloom_target
    yield
    hloom.config.update("hloom_backend", before[0])
    hloom.config.update("hloom_target", before[1])


@pytest.mark.parametrize("backend", ["numba", "evaluator"])
def test_an_unknown_target_is_refused_everywhere(backend: str) -> None:
    hloom.config.update("hloom_backend", backend)
    module = parse(TEXT)
    doors = (
        lambda: hloom.jit(lambda x: x + x).lower(X).compile(target="abacus"),
        lambda: hloom.run_hlo(TEXT, X, target="abacus"),
        lambda: optimize(module, "abacus"),
        lambda: get_compiler(backend).compile(module, target="abacus"),
    )
    for door in doors:
        with pytest.raises(UnsupportedError, match=r"'abacus'.*'cpu'"):
            door()


def test_the_setting_is_checked() -> None:
    with pytest.raises(ValueError, match=r"'abacus'.*'cpu'"):
        hloom.config.update("hloom_target", "abacus")
    with pytest.raises(TypeError, match="hloom_target must be a str or a Target, not 3"):
        hloom.config.update("hloom_target", 3)
    assert hloom.config.hloom_target == "cpu"
    assert "hloom_target='cpu'" in repr(hloom.config)


def test_programs_of_two_targets_are_two_programs() -> None:
    hloom.config.update("hloom_backend", "evaluator")
    f = hloom.jit(lambda x: x + x)
    for count, target in enumerate(["cpu", Columns(), "cpu"], 1):
        hloom.config.update("hloom_target", target)
        np.testing.assert_array_equal(f(X), 2 * X)
        assert f._cache_size() == min(count, 2)
        assert default_target() == target
        f(X)
        assert f._cache_size() == min(count, 2)


def test_operations_outside_of_jit_follow_the_setting() -> None:
    """Control flow on concrete values is compiled too."""
    x = hloom.numpy.asarray(X)
    for target in ("cpu", Columns(), "cpu"):
        hloom.config.update("hloom_backend", "evaluator")
        hloom.config.update("hloom_target", target)
        np.testing.assert_array_equal(hloom.lax.fori_loop(0, 3, lambda i, y: y + 1, x), X + 3)


def test_run_hlo_takes_the_setting_or_its_argument() -> None:
    hloom.config.update("hloom_backend", "evaluator")
    hloom.config.update("hloom_target", Columns())
    for target in (None, "cpu", Columns()):
        (y,) = hloom.run_hlo(TEXT, X, target=target)
        np.testing.assert_array_equal(y, 2 * X)


def test_a_client_takes_the_setting_or_its_argument() -> None:
    target = Columns()
    hloom.config.update("hloom_target", target)
    assert LocalClient("evaluator").target is target
    client = LocalClient("evaluator", "cpu")
    assert client.target == "cpu"
    builder = ComputationBuilder("sum")
    x = builder.parameter(0, Shape.parse("f32[2,3]"), "x")
    builder.add(x, x)
    computation = builder.build()
    result = client.execute_and_transfer(computation, [client.transfer_to_server(X)])
    np.testing.assert_array_equal(np.asarray(result.array), 2 * X)
    with pytest.raises(UnsupportedError, match="'abacus'"):
        LocalClient("evaluator", "abacus").compile(computation)


@pytest.mark.parametrize(
    "name, code, printed", [("cpu", 0, "[2."), ("abacus", 1, "there is no target 'abacus'; there are 'cpu'")]
)
def test_the_environment_names_the_default(name: str, code: int, printed: str) -> None:
    program = "import numpy, hloom; print(hloom.jit(lambda x: x + x)(numpy.ones(1)))"
    environment = {**os.environ, "HLOOM_TARGET": name}
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120)
    assert ran.returncode == code and printed in ran.stdout + ran.stderr
