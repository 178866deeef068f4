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

import pytest
from hloom.tracer.settings.config import SETTINGS
from hloom.tracer.settings.setting import OfJax, OfProcess, Setting

import hloom
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
