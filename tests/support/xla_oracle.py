"""Real XLA as an oracle: runs HLO text, or an op case, with XLA's CPU compiler. Needs jax 0.10 (the extra `oracle`).

XLA's CPU runtime sets the processor to flush subnormal numbers to zero, which IEEE arithmetic does not do: apply
`flush_subnormals` to both sides before comparing. An assertion that fails inside XLA ends the process; `UNANSWERED` has
the cases that do this, or that XLA refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from hloom.hlo import Opcode
from jax._src import xla_bridge
from jax._src.lib import xla_client
from jaxlib import _hlo, _jax, lapack

from hloom.backend_check.op_table import OpCase, build_module
from hloom.backend_check.op_values import NDArray

lapack._lapack.initialize()  # JAX does it when it first lowers to LAPACK

_JAX_FUNCTIONS: dict[Opcode, Callable[..., Any]] = {
    Opcode.ACOS: jax.lax.acos,
    Opcode.ACOSH: jax.lax.acosh,
    Opcode.ASIN: jax.lax.asin,
    Opcode.ASINH: jax.lax.asinh,
    Opcode.ATANH: jax.lax.atanh,
    Opcode.COSH: jax.lax.cosh,
    Opcode.MULHI: jax.lax.mulhi,
    Opcode.SINH: jax.lax.sinh,
}
"""HLO ops that XLA has no CPU code for, or that StableHLO has not: JAX lowers them in other ways."""


def run_hlo_text(text: str, *arguments: NDArray) -> list[NDArray]:
    """Parse `text` with XLA's parser, compile and run it; tuple results flattened. Raises what XLA raises."""
    with jax.enable_x64(True):
        module = _hlo.hlo_module_from_text(text)
        computation = _hlo.XlaComputation(module.as_serialized_hlo_module_proto())
        return run_stablehlo(_jax.mlir.xla_computation_to_mlir_module(computation), *arguments)


def run_stablehlo(program: str | bytes, *arguments: NDArray) -> list[NDArray]:
    """Compile and run a program in StableHLO, as text or bytecode; the results. Raises what XLA raises."""
    with jax.enable_x64(True):
        backend = xla_bridge.get_backend("cpu")
        devices = _jax.DeviceList(tuple(backend.devices()[:1]))
        executable = backend.compile_and_load(program, devices, xla_client.CompileOptions())
        results = executable.execute_sharded([jax.device_put(a) for a in arguments])
        return [np.asarray(shards[0]) for shards in results.disassemble_into_single_device_arrays()]


def print_hlo_text(text: str) -> str:
    """The module as XLA prints it. Raises what XLA's parser raises."""
    printed: str = _hlo.hlo_module_from_text(text).to_string()
    return printed


def run_case(case: OpCase, inputs: Sequence[NDArray]) -> list[NDArray]:
    """The case's results from XLA."""
    function = _JAX_FUNCTIONS.get(case.opcode)
    if function is None:
        return run_hlo_text(build_module(case).to_text(), *inputs)
    with jax.enable_x64(True):
        return [np.asarray(jax.jit(function)(*inputs))]
