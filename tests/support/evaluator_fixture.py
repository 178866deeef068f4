"""Fixtures for tests of the tracer, not of code generation: programs run on the evaluator."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hloom import config


@pytest.fixture(autouse=True)
def on_the_evaluator() -> Iterator[None]:
    """Compile with the evaluator; restore the settings afterwards."""
    names = ("hloom_backend", "jax_enable_x64")
    before = [getattr(config, name) for name in names]
    config.update("hloom_backend", "evaluator")
    yield
    for name, value in zip(names, before, strict=True):
        config.update(name, value)


@pytest.fixture
def x64() -> Iterator[None]:
    """64-bit types are kept."""
    config.update("jax_enable_x64", True)
    yield
    config.update("jax_enable_x64", False)
