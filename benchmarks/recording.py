"""The cost of recording a timeline: the same programs, with a recording and without.

A recording is switched on and off by the first call of each sample, which is not measured.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from . import mlp
from .harness import Case, Program

PLAIN, RECORDED = "hloom", "hloom-recorded"
_sessions: list[Any] = []
"""The recording that runs, if one does."""


def _switched(run: Callable[[], Any], recorded: bool) -> Callable[[], Any]:
    """`run`, with a recording or without. The test is the same for both."""
    profiling = importlib.import_module("hloom.tracer.profiling.timeline")

    def call() -> Any:
        if bool(_sessions) is not recorded:
            if recorded:
                _sessions.append(profiling.Session(profiling.ProfileOptions()))
                _sessions[-1].start()
            else:
                _sessions.pop().stop()
        return run()

    return call


def _case(name: str, title: str, build: Callable[[], Program], tolerance: float = 1e-4) -> Case:
    def of(recorded: bool) -> Callable[[], Program]:
        def make() -> Program:
            program = build()
            return Program(_switched(program.run, recorded), program.wait, program.check)

        return make

    return Case(name, title, {PLAIN: of(False), RECORDED: of(True)}, tolerance)


def mlp_step() -> Case:
    def build() -> Program:
        hloom = importlib.import_module("hloom")
        step = mlp.training_step("hloom")
        state, images, labels = mlp.arguments("hloom", 128)
        kept = [state]

        def run() -> Any:
            kept[0], value = step(kept[0], images, labels)
            return value

        def check() -> Any:
            return np.asarray(step(mlp.arguments("hloom", 128)[0], images, labels)[1])

        return Program(run, hloom.block_until_ready, check)

    return _case("recorded-mlp-step", "MNIST step, batch 128", build)


def call() -> Case:
    def build() -> Program:
        hloom = importlib.import_module("hloom")
        jnp = importlib.import_module("hloom.numpy")
        f, x = hloom.jit(lambda x: x + 1), jnp.ones(4)
        return Program(lambda: f(x))

    return _case("recorded-call", "call of x + 1 on 4 elements", build)


CASES = {case().name: case for case in (mlp_step, call)}
