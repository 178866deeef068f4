"""alpha * x + y, twice: with alpha, x and y as parameters, and with their values as constants of the program.

This is "Getting started" of XLA's first documentation (2017): a computation is built operation by operation, compiled,
and executed on data that was transferred to the device. Prints both programs and both results.

    python examples/axpy.py
    python examples/axpy.py --size 4 --alpha -1 --backend evaluator
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from hloom import hlo


def compute_axpy_parameters(
    client: hlo.LocalClient, alpha: hlo.Literal, x: hlo.Literal, y: hlo.Literal
) -> tuple[hlo.Computation, hlo.Literal]:
    """A program with three parameters: it is compiled once, and can be executed again on other values."""
    builder = hlo.ComputationBuilder(client, "axpy")
    param_alpha = builder.parameter(0, alpha.shape, "alpha")
    param_x = builder.parameter(1, x.shape, "x")
    param_y = builder.parameter(2, y.shape, "y")
    builder.add(builder.mul(param_alpha, param_x), param_y)
    computation = builder.build()

    arguments = [client.transfer_to_server(literal) for literal in (alpha, x, y)]
    return computation, client.execute_and_transfer(computation, arguments)


def compute_axpy_constants(
    client: hlo.LocalClient, alpha: float, x: Sequence[float], y: Sequence[float]
) -> tuple[hlo.Computation, hlo.Literal]:
    """A program without parameters: the compiler can compute all of it; other values need another program."""
    builder = hlo.ComputationBuilder(client, "axpy_constants")
    constant_alpha = builder.constant_r0(alpha)
    constant_x = builder.constant_r1(x)
    constant_y = builder.constant_r1(y)
    builder.add(builder.mul(constant_alpha, constant_x), constant_y)
    computation = builder.build()
    return computation, client.execute_and_transfer(computation)


def without_metadata(computation: hlo.Computation) -> str:
    """The program's text without each instruction's source line."""
    lines = computation.to_text().splitlines()
    return "\n".join(line.partition(", metadata={")[0] for line in lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--alpha", type=float, default=2.5)
    parser.add_argument("--size", type=int, default=10)
    parser.add_argument("--backend", choices=("numba", "evaluator"), default=None)
    options = parser.parse_args(arguments)
    client = hlo.LocalClient(options.backend)

    x = np.arange(options.size, dtype=np.float32)
    y = np.ones(options.size, np.float32)
    alpha = hlo.Literal(np.float32(options.alpha))
    computation, result = compute_axpy_parameters(client, alpha, hlo.Literal(x), hlo.Literal(y))
    print(without_metadata(computation))
    print(f"\nwith parameters: {result.array.tolist()}\n")

    computation, result = compute_axpy_constants(client, options.alpha, x.tolist(), y.tolist())
    print(without_metadata(computation))
    print(f"\nwith constants:  {result.array.tolist()}")


if __name__ == "__main__":
    main()
