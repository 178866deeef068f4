"""`hloom.no_execution`: nothing runs. Imported when that is on for the first time.

The setting is a part of the trace context, so jit's fast ways, which are found by the context, know no program under
it: calls take the general way, which refuses them after it has traced and compiled. Operations outside of jit are
refused by the outermost layer of the bottom trace.

The setting and the first line of the message follow JAX's `jax_no_execution`.
"""

from __future__ import annotations

from typing import Any, NoReturn

from ..layers import Layer
from ..settings.context import current_context


def refuse(name: str) -> NoReturn:
    """RuntimeError: the function or operation `name` was to run."""
    raise RuntimeError(
        f"tried to execute function {name}, but the no_execution config option is set\n  Tracing and compiling are "
        "allowed: jit(f).trace(...), jit(f).lower(...).compile(), eval_shape."
    )


class RefusingLayer(Layer):
    """Refuses each operation while `no_execution` is on in this thread."""

    def process(self, opcode: Any, operands: Any, attributes: Any, shape: Any) -> Any:
        if current_context().no_execution:
            refuse(opcode.value)
        return self.below.process(opcode, operands, attributes, shape)

    def process_with_scalar(self, opcode: Any, x: Any, y: Any, attributes: Any, shape: Any, aval: Any) -> Any:
        if current_context().no_execution:
            refuse(opcode.value)
        return self.below.process_with_scalar(opcode, x, y, attributes, shape, aval)

    def process_call(self, call: Any, operands: Any) -> Any:
        if current_context().no_execution:
            refuse(call.label or call.primitive.name)
        return self.below.process_call(call, operands)

    def run_program(self, computation: Any, arrays: Any) -> Any:
        if current_context().no_execution:
            refuse(computation.name)
        return self.below.run_program(computation, arrays)
