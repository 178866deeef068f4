"""Settings: what follows from one declaration."""

from __future__ import annotations

import inspect
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hloom.tracer.settings.config import SETTINGS
from hloom.tracer.settings.setting import OfJax, OfProcess, Setting

import hloom
import hloom.numpy as jnp
from hloom import lax
from hloom.errors import UnsupportedError

NAMED = {name: f for name in hloom.__all__ if isinstance(f := getattr(hloom, name), Setting)}
"""The context managers that users call."""


def test_the_page_is_what_the_declarations_say(root: Path) -> None:
    ran = subprocess.run([sys.executable, root / "tools" / "settings_table.py"], capture_output=True, text=True)
    assert ran.returncode == 0, f"run: python tools/settings_table.py --write\n{ran.stdout}{ran.stderr}"


def test_each_has_a_text() -> None:
    assert all(setting.__doc__ and setting.name == name for name, setting in SETTINGS.items())


def _another(setting: Setting[Any]) -> Any:
    """A value other than the setting's current one."""
    if setting.values:
        return next(value for value in setting.values if value != setting.value)
    return not setting.value if isinstance(setting.value, bool) else setting.value


@pytest.mark.parametrize("name", NAMED)
def test_a_block_is_of_its_thread(name: str) -> None:
    setting = NAMED[name]
    before = setting.value
    value = before if isinstance(setting, OfJax) and setting.only else _another(setting)
    seen: list[Any] = []

    @setting(value)
    def decorated() -> Any:
        return setting.value

    with setting(value), pytest.raises(KeyError), setting(before):
        assert setting.value == before
        raise KeyError
    with setting(value):
        assert setting.value == value == getattr(hloom.config, setting.name) == hloom.config.values[setting.name]
        thread = threading.Thread(target=lambda: seen.append(setting.value))
        thread.start()
        thread.join()
    assert decorated() == value and setting.value == before and seen == [before]


@pytest.mark.parametrize("name", NAMED)
def test_a_block_says_what_it_takes(name: str) -> None:
    setting = NAMED[name]
    (parameter,) = inspect.signature(setting).parameters.values()
    if isinstance(setting.default, bool):
        assert parameter.default is True
    else:
        with pytest.raises(TypeError, match="needs a value"):
            setting()
    assert pickle.loads(pickle.dumps(setting)) is setting
    if setting.types != (object,):
        with pytest.raises((TypeError, UnsupportedError), match=setting.name):
            setting(object())


def test_settings_of_the_process_are_no_blocks() -> None:
    for setting in SETTINGS.values():
        if isinstance(setting, OfProcess):
            with pytest.raises(TypeError, match=f"config.update\\('{setting.name}'"):
                setting(setting.value)


@pytest.mark.parametrize(
    ("variable", "expected"),
    [
        ("HLOOM_AUTOTUNE=1", "True"), ("JAX_LOG_COMPILES=on", "True"), ("JAX_ALLOW_F16_REDUCTIONS=0", "False"),
        ("JAX_DEFAULT_MATMUL_PRECISION=highest", "highest"), ("JAX_THREAD_GUARD=yes", "True"),
    ],
)  # fmt: skip
def test_a_variable_of_the_environment_sets_it(variable: str, expected: str) -> None:
    name, _, text = variable.partition("=")
    code = f"import hloom; print(hloom.config.{name.lower()})"
    environment = {**os.environ, name: text}
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment).stdout == (
        f"{expected}\n"
    )


def test_nothing_runs_under_no_execution() -> None:
    x = jnp.arange(3.0)
    f = hloom.jit(lambda x: jnp.sin(x) * 2)
    wanted, compiled, text = f(x), f.lower(x).compile(), f.lower(x).as_text()
    for run in (
        lambda: f(x),
        lambda: compiled(x),
        lambda: f(np.ones(3, np.float32)),
        lambda: x + 1,
        lambda: jnp.sin(x),
        lambda: jnp.var(x),
        lambda: hloom.grad(lambda x: x * x)(1.0),
        lambda: lax.fori_loop(0, 3, lambda i, y: y + i, x),
        lambda: hloom.run_hlo(text, x),
    ):
        with hloom.no_execution(), pytest.raises(RuntimeError, match=r"tried to execute function .* no_execution"):
            run()
    with hloom.no_execution():
        assert hloom.eval_shape(f, x).shape == (3,) and hloom.config.jax_no_execution
        other = hloom.jit(lambda x: x - 1).lower(x).compile()
        with hloom.no_execution(False):
            np.testing.assert_array_equal(f(x), wanted)
    np.testing.assert_array_equal(f(x), wanted)
    assert other(x).tolist() == [-1, 0, 1] and (x + 1).tolist() == [1, 2, 3]
