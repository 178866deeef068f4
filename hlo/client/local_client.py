"""LocalClient: values go to the memory where computations run, computations are compiled and run, values come back.

Source: the seeds' "Getting started" and "Moving data into and out of XLA"; the names of XLA's Client. The "server" is
this process, so data crosses no boundary; a backend compiles (see `backend.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from ..backend import DeviceBuffer, Executable, default_backend, default_target, get_compiler
from ..element_type import element_type_of
from ..errors import ExecutionError
from ..host_buffers import HostBuffer
from ..host_queues import transfer_from_outfeed, transfer_to_infeed
from ..layout import Layout
from ..literal import Literal
from ..shape import Shape
from ..support.records import dataclass
from ..support.tracebacks import boundaries
from ..target import Target
from .data import GlobalData, LiteralValue, array_tree, literal_of
from .handle import Computation, ComputationDataHandle

NDArray = np.ndarray[Any, Any]


class ComputesConstants(Protocol):
    """The part of a ComputationBuilder that a client uses."""

    def compute_constant(self, operand: ComputationDataHandle, output_layout: Layout | None = None) -> GlobalData: ...


@boundaries
class LocalClient:
    """A client of this process. A computation is compiled when it is first executed, and kept while it is alive.

    >>> import numpy as np
    >>> from hloom import hlo, LocalClient
    >>> builder = hlo.ComputationBuilder("double")
    >>> x = builder.parameter(0, hlo.Shape.parse("f32[3]"), "x")
    >>> doubled = builder.add(x, x)
    >>> client = LocalClient()
    >>> client.execute_and_transfer(builder.build(), [client.transfer_to_server(np.ones(3, np.float32))])
    Literal(array([2., 2., 2.], dtype=float32))
    """

    def __init__(self, backend: str | None = None, target: str | Target | None = None) -> None:
        """`backend`: a name such as "numba" or "evaluator"; None: the default (`hloom.config.hloom_backend`,
        HLOOM_BACKEND).

        `target`: the target that determines the layouts inside of programs; None: the default
        (`hloom.config.hloom_target`, HLOOM_TARGET).
        """
        self.backend: str = default_backend() if backend is None else backend
        self.target: str | Target = default_target() if target is None else target
        self._compiler = get_compiler(self.backend)
        self._programs: WeakKeyDictionary[Computation, _Program] = WeakKeyDictionary()

    def __reduce__(self) -> Any:
        """Without its compiled programs."""
        return LocalClient, (self.backend, self.target)

    # ---- values

    def transfer_to_server(self, literal: LiteralValue | ArrayLike) -> GlobalData:
        """A copy of a Literal (or of an array, a number, a tuple of such) that computations can be executed on."""
        return GlobalData.of_literal(_as_literal(literal))

    def transfer(self, data: GlobalData) -> LiteralValue:
        """A copy of the data as a Literal; of a tuple, a tuple of Literals."""
        return data.to_literal()

    def transfer_to_server_in_process(self, array: NDArray) -> GlobalData:
        """The array as data, without a copy: it must not change as long as the data is used.

        Arrays that are not dense, row-major and aligned are copied.
        """
        shape = Shape.array(element_type_of(array.dtype), array.shape)
        return GlobalData(shape, [HostBuffer(array, shape)])

    def transfer_in_process(self, data: GlobalData, destination: NDArray | None = None) -> NDArray:
        """The contents of an array: a read-only view without a copy, or written into `destination`, which is returned.

        ExecutionError for a tuple, and for a destination of another type or other dimensions.
        """
        if not data.shape.is_array:
            raise ExecutionError(f"{data!r} is a tuple: take it apart with deconstruct_tuple")
        contents = data.buffers[0].__array__()
        if destination is None:
            return contents
        if destination.dtype != contents.dtype or destination.shape != contents.shape:
            found = f"an array of {destination.dtype} with dimensions {list(destination.shape)}"
            raise ExecutionError(f"the destination of {data.shape} must be of that type, not {found}")
        destination[...] = contents
        return destination

    def get_shape(self, data: GlobalData) -> Shape:
        """The type of the data."""
        return data.shape

    def deconstruct_tuple(self, data: GlobalData) -> list[GlobalData]:
        """The elements of a tuple, without copies. ExecutionError if the data is an array."""
        if data.shape.is_array:
            raise ExecutionError(f"{data!r} is no tuple")
        buffers = iter(data.buffers)
        return [GlobalData(shape, [next(buffers) for _ in shape.leaves()]) for shape in data.shape.elements]

    def unregister(self, data: GlobalData) -> None:
        """Give the data up: using it afterwards raises ExecutionError."""
        data.release()

    # ---- queues; one in and one out for the whole process

    def transfer_to_infeed(self, literal: LiteralValue | ArrayLike) -> None:
        """Append a copy of a value to the queue that the `infeed` of computations reads."""
        transfer_to_infeed(array_tree(_as_literal(literal)))

    def transfer_from_outfeed(self, shape: Shape) -> LiteralValue:
        """The next value that a computation wrote by `outfeed`; waits for it.

        ExecutionError if it is not of type `shape`, or does not come in time.
        """
        return literal_of(transfer_from_outfeed(shape), shape)

    # ---- computations

    def compile(self, computation: Computation) -> Executable:
        """The computation as an executable: its `kernels()`, `memory_analysis()`, `passes()`, `as_text()`."""
        return self._program(computation).executable

    def execute(self, computation: Computation, arguments: Sequence[GlobalData] = ()) -> GlobalData:
        """The result of `computation` on `arguments`, one for each parameter.

        ExecutionError if they are not of the parameters' types.
        """
        program = self._program(computation)
        _check_arguments(program, arguments)
        buffers: list[DeviceBuffer] = [b for data in arguments for b in data.buffers]
        if program.is_row_major:
            return GlobalData(program.result, program.executable.call(buffers))
        arrays = program.executable.execute([b.__array__() for b in buffers])
        leaves = zip(arrays, program.result.leaves(), strict=True)
        return GlobalData(program.result, [HostBuffer(a, leaf.with_default_layout()) for a, leaf in leaves])

    def execute_and_transfer(self, computation: Computation, arguments: Sequence[GlobalData] = ()) -> LiteralValue:
        """`execute`, then `transfer`."""
        return self.transfer(self.execute(computation, arguments))

    def compute_constant(
        self, builder: ComputesConstants, operand: ComputationDataHandle, output_layout: Layout | None = None
    ) -> LiteralValue:
        """The value of a constant of the computation that `builder` is building; see its `compute_constant`."""
        return self.transfer(builder.compute_constant(operand, output_layout))

    def _program(self, computation: Computation) -> _Program:
        found = self._programs.get(computation)
        if found is None:
            executable = self._compiler.compile(computation.module, target=self.target)
            parameters, result = computation.parameter_shapes, computation.result_shape
            shapes = (*parameters, result, *executable.parameter_shapes, *executable.result_shapes)
            is_row_major = all(map(_is_row_major, shapes))
            found = _Program(computation.name, parameters, result, executable, is_row_major)
            self._programs[computation] = found
        return found


@dataclass(frozen=True, slots=True)
class _Program:
    """A compiled computation, and the facts that each call needs."""

    name: str
    parameters: tuple[Shape, ...]
    result: Shape
    executable: Executable
    is_row_major: bool
    """True if the executable takes and returns row-major arrays, as GlobalData is."""


def _check_arguments(program: _Program, arguments: Sequence[GlobalData]) -> None:
    name, wanted = program.name, program.parameters
    if len(arguments) != len(wanted):
        raise ExecutionError(f"{name} takes {len(wanted)} arguments, not {len(arguments)}")
    for k, (data, shape) in enumerate(zip(arguments, wanted)):
        if not isinstance(data, GlobalData):
            why = f"must be a result of transfer_to_server, not {type(data).__name__}"
            raise ExecutionError(f"argument {k} of {name} {why}")
        if data.shape is not shape and not data.shape.compatible(shape):
            raise ExecutionError(f"argument {k} of {name} must be {shape}, not {data.shape}")


def _is_row_major(shape: Shape) -> bool:
    return all(leaf.array_layout.is_row_major for leaf in shape.leaves())


def _as_literal(value: Any) -> LiteralValue:
    if isinstance(value, Literal):
        return value
    if isinstance(value, tuple):
        return tuple(_as_literal(v) for v in value)
    return Literal(value, np.float32 if isinstance(value, float) else np.int32 if type(value) is int else None)
