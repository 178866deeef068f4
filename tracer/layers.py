"""The layers of the bottom trace: the steps of an operation outside of every transformation, above its evaluation.

`bottom.py` lists all layers in order. In most programs none is on, and `core.EvalTrace` evaluates at once: it tests
`LAYERS.top` for each operation. A layer is turned on when the process first needs it (a setting, several devices, a
`jit_scope`), and stays on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..hlo.support.forking import Order, fork_lock


class Layer:
    """A step above the evaluation. A subclass overrides methods, and calls those of `below` to go on.

    The methods are those of `core.EvalTrace`, and have its arguments.
    """

    below: Any
    """The next layer that is on; at the end the evaluation."""

    def process(self, opcode: Any, operands: Any, attributes: Any, shape: Any) -> Any:
        return self.below.process(opcode, operands, attributes, shape)

    def process_with_scalar(self, opcode: Any, x: Any, y: Any, attributes: Any, shape: Any, aval: Any) -> Any:
        return self.below.process_with_scalar(opcode, x, y, attributes, shape, aval)

    def process_call(self, call: Any, operands: Any) -> Any:
        return self.below.process_call(call, operands)

    def run_program(self, computation: Any, arrays: Any) -> Any:
        return self.below.run_program(computation, arrays)


class Layers:
    """The layers that are on."""

    __slots__ = ("_defined", "_evaluation", "_linked", "_made", "_on", "top")

    def __init__(self) -> None:
        self.top: Layer | None = None
        """The outermost layer that is on."""
        self._evaluation: Any = None
        self._defined: dict[str, Callable[[], Layer]] = {}
        self._made: dict[str, Layer] = {}
        self._on: set[str] = set()
        self._linked: set[str] = set()

    def define(self, evaluation: Any, **layers: Callable[[], Layer]) -> None:
        """Set all layers, outermost first: functions that make them. `evaluation` is below the last one."""
        self._evaluation, self._defined = evaluation, layers
        self._link()

    @property
    def are_defined(self) -> bool:
        """Whether `define` was called."""
        return bool(self._defined)

    def turn_on(self, name: str) -> None:
        """Send operations through a layer from now on, in all threads."""
        if name not in self._linked:
            self._on.add(name)
            self._link()

    def _link(self) -> None:
        for name in [name for name in self._defined if name in self._on and name not in self._made]:
            made = self._defined[name]()  # imports a module, which may turn on layers
            self._made.setdefault(name, made)
        with _lock:
            below = self._evaluation
            for name in reversed(self._defined):  # from the bottom: operations of other threads always find a way down
                if name in self._on and name in self._made:
                    layer = self._made[name]
                    layer.below = below
                    below = layer
                    self._linked.add(name)
            if below is not self._evaluation:
                self.top = below


_lock = fork_lock(Order.LEAF)
LAYERS = Layers()
