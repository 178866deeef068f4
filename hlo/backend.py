"""The interface between programs and backends: the tracer reaches a backend only through it.

The names follow XLA's "Developing a new backend": Compiler, Executable. A backend registers itself under a name;
importing this module imports no backend. Nothing specific to one backend belongs here.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .collectives.world import local_numbers, run_on_devices
from .errors import UnsupportedError
from .ir import HloModule
from .library import part_above
from .notebooks import in_notebooks
from .passes.record import PassRecord
from .runners import ArraySlots
from .shape import Shape
from .stream_executor import StreamExecutor
from .support.records import dataclass
from .support.shared_value import SharedValue
from .support.tables import Table
from .target import Target

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from .buffers.report import MemoryReport
    from .passes.manager import PassOptions, Pipeline
    from .passes.stages import Stages
    from .timeline.work import Work

NDArray = np.ndarray[Any, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class MemoryAnalysis:
    """Bytes that one execution needs, by purpose, and where each buffer is: `text` is the readable map, `report` the
    same as data, where the backend has it."""

    argument_size_in_bytes: int
    output_size_in_bytes: int
    alias_size_in_bytes: int
    temp_size_in_bytes: int
    constant_size_in_bytes: int
    generated_code_size_in_bytes: int
    text: str = field(repr=False)
    report: MemoryReport | None = field(default=None, repr=False)

    @property
    def peak_memory_in_bytes(self) -> int:
        """The most bytes that a call needs at once: all buffers except the temporaries live as long as the call. The
        temporaries share one arena, sized for the most that they need together, with gaps. An argument that gives its
        memory to a result is counted once. Code is not counted."""
        once = self.argument_size_in_bytes + self.output_size_in_bytes - self.alias_size_in_bytes
        return once + self.temp_size_in_bytes + self.constant_size_in_bytes

    def table(self) -> Table:
        """Bytes by purpose."""
        rows = [
            ("arguments", self.argument_size_in_bytes),
            ("results", self.output_size_in_bytes),
            ("  of them in memory of arguments", self.alias_size_in_bytes),
            ("temporaries", self.temp_size_in_bytes),
            ("constants", self.constant_size_in_bytes),
            ("peak of a call", self.peak_memory_in_bytes),
            ("code", self.generated_code_size_in_bytes),
        ]
        return Table(("memory", "bytes"), [(name, f"{size:,}") for name, size in rows], frozenset({1}))

    def __str__(self) -> str:
        return f"{self.table().to_text()}\n\n{self.text}"

    _repr_html_ = in_notebooks


class DeviceBuffer(ABC):
    """Memory that holds one array in the layout of its shape. It is freed when the last reference disappears.

    `address`: where the array is in the memory of this process. A buffer of a device with memory of its own
    (`remote.RemoteBuffer`) makes a copy there when it is first asked for.
    `device`: the device that owns the memory; None: this process's.
    """

    __slots__ = ()

    shape: Shape
    address: int
    device: StreamExecutor | None = None

    @abstractmethod
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        """The array, with the shape's dimensions, read-only. A view of the memory if the layout is dense and `copy` is
        not set; otherwise a copy, or ValueError if the caller forbids one."""

    def is_exclusive(self) -> bool:
        """True if no other object can see the memory: no NumPy array of it is left. Then it may be donated."""
        return False

    def is_ready(self) -> bool:
        """False while a device has still to compute the contents."""
        return True

    def block_until_ready(self) -> None:  # noqa: B027  # memory of this process is always ready
        """Return when the contents are there; raises the error of the program that should have computed them."""


class Executable(SharedValue, ABC):
    """A compiled module."""

    module: HloModule
    """The module that is executed: after all passes of the backend."""

    device: StreamExecutor | None = None
    """The device that `call` runs on, and that owns the results' buffers; None: this process's. Buffers of donated
    parameters are of this memory; all others may be of any."""

    @property
    @abstractmethod
    def parameter_shapes(self) -> Sequence[Shape]:
        """The leaves of the parameters' shapes, in the layouts in which `call` takes them."""

    @property
    @abstractmethod
    def result_shapes(self) -> Sequence[Shape]:
        """The leaves of the root's shape, in the layouts in which `call` returns them: one for each result."""

    @abstractmethod
    def call(self, arguments: list[DeviceBuffer]) -> list[DeviceBuffer]:
        """Run on buffers of `parameter_shapes`, in those layouts. Nothing is checked: jit's dispatch calls this.

        Buffers of donated parameters may be overwritten and may become the memory of results. All others are only read,
        and no result shares memory with them.
        """

    def direct_call(self) -> tuple[Sequence[Callable[[], DeviceBuffer]], Callable[[list[int]], None]] | None:
        """`call` with less around it: for each result a function that makes a buffer, and one function that runs the
        program. It takes a list with the addresses of the arguments' buffers and of these, and may change it. The
        caller holds the buffers meanwhile. None where there is none."""
        return None

    def native_runner(
        self, run: Callable[[Sequence[Any]], Any], arrays: ArraySlots, captured: Sequence[DeviceBuffer],
        avals: Sequence[object], finish: Callable[[Sequence[Any]], Any] | None, donated: Sequence[int],
    ) -> Callable[[Sequence[Any]], Any]:  # fmt: skip
        """A function that does the same as `run`, from a list or tuple of arrays to the result, in machine code; `run`
        itself where there is none.

        `arrays`: the class of arrays. `captured`: the buffers of the parameters after those of the arguments. `avals`:
        the types of the results. `finish`: a function of the tuple of results; None: the result is the only array.
        `donated`: the numbers of the arguments that the call deletes.
        """
        return run

    @abstractmethod
    def execute(self, arguments: Sequence[NDArray]) -> list[NDArray]:
        """Run on arrays: a flat sequence, one for each leaf of the parameters. Returns one for each leaf of the root.

        ExecutionError if the dtype or the dimensions of an argument differ from the parameter's. An argument is used in
        place if it is aligned and has the strides of the parameter's layout; otherwise it is copied first. In tiled,
        padded and packed layouts arguments and results are always copied.
        """

    def call_on_devices(
        self, arguments: Sequence[list[DeviceBuffer]], devices: Sequence[int] | None = None
    ) -> list[list[DeviceBuffer]]:
        """Run on the module's replica_count * num_partitions devices at once; the results of each.

        `arguments` has the arguments of `call` for each device of this process, in the order of the devices' numbers
        (replica
        * num_partitions + partition); `devices`: the id of the device with each number, by default the first ones. As
        in `call`, the contents of buffers are not checked. ExecutionError if there are not so many devices or lists;
        CollectiveError if devices do not come to the same collectives.
        """
        return self._on_devices(self.call, arguments, devices)

    def execute_on_devices(
        self, arguments: Sequence[Sequence[NDArray]], devices: Sequence[int] | None = None
    ) -> list[list[NDArray]]:
        """As `call_on_devices`, on arrays, which are checked as in `execute`."""
        return self._on_devices(self.execute, arguments, devices)

    def _on_devices(
        self, run: Callable[[Any], list[T]], arguments: Sequence[Any], devices: Sequence[int] | None
    ) -> list[list[T]]:
        replicas, partitions = self.module.replica_count, self.module.num_partitions
        of_device = dict(
            zip(local_numbers(replicas, partitions, devices, len(arguments)), arguments, strict=True)
        )
        return run_on_devices(lambda d: run(of_device[d.device]), replicas, partitions, devices, self.module)

    @abstractmethod
    def kernels(self) -> Mapping[str, str]:
        """The text of each distinct kernel, by name, in the language that the backend compiles. Empty if it has no
        kernels."""

    @abstractmethod
    def memory_analysis(self) -> MemoryAnalysis:
        """The memory that one execution needs."""

    @abstractmethod
    def passes(self) -> Sequence[PassRecord]:
        """A record of each stage of the compilation, in order: the passes, then the stages of the backend itself."""

    def stages(self) -> Stages:
        """The program before any pass, and after each pass, which all run once more. UnsupportedError if the backend
        does not say what its passes do."""
        raise UnsupportedError(f"{type(self).__name__} has no stages: its backend does not say what its passes do")

    def rows(self) -> Sequence[Work]:
        """The work of each step of the program, in order; empty if the backend does not say."""
        return ()

    def __reduce__(self) -> Any:
        raise TypeError(
            f"an executable ({self.module.name}) cannot be pickled: it is bound to the memory of this process. Pickle "
            "the module that was compiled, and compile it where it is loaded: kernels come from the store on disk."
        )

    def as_text(self, dialect: str | None = None, *, metadata: bool = False, debug_info: bool = False) -> str:
        """The module after all passes, as `HloModule.as_text` writes it."""
        return self.module.as_text(dialect, metadata=metadata, debug_info=debug_info)


AUTOTUNE = ("hloom_autotune", "true")
"""The frontend attribute of a module that tells its compiler to time variants and to keep the fastest. A compiler that
has no variants does not look at it."""

SCHEDULES = "hloom_schedules"
"""The frontend attribute of a module with other schedules for its kernels, as text, where a backend has such."""

MEMORY_BUDGET = "hloom_memory_budget"
"""The frontend attribute of a module with the most bytes that its program may need, where a backend can keep that."""

ALLOWS_EXCESS = ("xla_allow_excess_precision", "true")
"""The frontend attribute of a module that allows results that are more precise than each operation's own type is."""


KERNEL_COMPILER = "hloom_compiler"
"""The frontend attribute of a module that says which compiler makes machine code of its kernels, where a backend has
several. Modules without it have the one of `DEFAULT_KERNEL_COMPILER`."""

DEFAULT_KERNEL_COMPILER = os.environ.get("HLOOM_COMPILER", "llvm")
"""The value of HLOOM_COMPILER."""


class Compiler(ABC):
    """Turns modules into executables."""

    @abstractmethod
    def pipeline(self, target: str | Target = "cpu") -> Pipeline:
        """The passes that `compile` runs for a target, in order: passes of `hlo/passes/` and others.

        `target`: see `compile`.
        """

    @abstractmethod
    def compile(self, module: HloModule, *, target: str | Target = "cpu", donated: Sequence[int] = ()) -> Executable:
        """`target`: the target that determines the layouts and memories inside of the program; a name or a `Target`.
        UnsupportedError, which names those that exist, for another. `donated`: entry parameters that the program may
        overwrite with results.
        """

    def compile_function(self, module: HloModule, *, target: str | Target = "cpu") -> Executable:
        """As `compile`, for a module that applies one op of `elementary.FUNCTIONS` to the parameters, with scalars
        broadcast: for operations outside of jit. A backend overrides this if it has such programs ready; they must give
        the same results bit for bit."""
        return self.compile(module, target=target)

    def compile_all(
        self, modules: Sequence[HloModule], *, target: str | Target = "cpu"
    ) -> Sequence[Executable | UnsupportedError]:
        """The executable of each module, or its UnsupportedError. A backend overrides this if many modules compile
        faster together."""
        found: list[Executable | UnsupportedError] = []
        for module in modules:
            try:
                found.append(self.compile(module, target=target))
            except UnsupportedError as error:
                found.append(error)
        return found


def optimize(
    module: HloModule,
    target: str | Target = "cpu",
    *,
    options: PassOptions | None = None,
    backend: str | None = None,
) -> tuple[HloModule, Sequence[PassRecord]]:
    """The module after the passes of a backend for `target` (a name, or a `Target`), and a record of each pass.

    `backend`: its name; None: the default backend. Nothing is compiled; only NumPy is needed.
    `options` default to the environment's (HLOOM_VERIFY_PASSES, HLOOM_DUMP_TO, HLOOM_DISABLE_PASSES).
    UnsupportedError for a target or a backend that does not exist.

    >>> from hloom import hlo
    >>> module = hlo.parse("ENTRY main { x = f32[3] parameter(0) ROOT y = f32[3] negate(x) }")
    >>> optimised, passes = hlo.optimize(module)
    >>> passes[0].name
    'spmd-partitioner'
    """
    return get_compiler(backend).pipeline(target).run(module, options)


ENTRY_POINTS = "hloom.backends"
"""The group of entry points in which an installed package declares its backends: name = "module:factory"."""

_BACKENDS: dict[str, Callable[[], Compiler]] = {}
_INSTANCES: dict[str, Compiler] = {}
_default = os.environ.get("HLOOM_BACKEND")
_default_target: str | Target = os.environ.get("HLOOM_TARGET", "cpu")


def default_backend() -> str:
    """The backend that is used if none is named: HLOOM_BACKEND, until `hloom.config` sets another."""
    return _default or str(_own_backends().DEFAULT)


def set_default_backend(name: str) -> None:
    """As `hloom.config.update("hloom_backend", name)`, without `hloom.config`."""
    global _default
    _default = name


def default_target() -> str | Target:
    """The target that programs are compiled for if none is named: HLOOM_TARGET, until `hloom.config` sets another."""
    return _default_target


def set_default_target(target: str | Target) -> None:
    """As `hloom.config.update("hloom_target", target)`, without `hloom.config`."""
    global _default_target
    _default_target = target


def register_backend(name: str, factory: Callable[[], Compiler]) -> None:
    """Make a backend known; `factory` runs when the backend is first used. ValueError if the name is taken."""
    if name in _BACKENDS:
        raise ValueError(f"there is a backend named {name!r} already")
    _BACKENDS[name] = factory


def unregister_backend(name: str) -> None:
    """Forget a backend that was registered; UnsupportedError if no backend has this name."""
    if name not in _BACKENDS:
        raise UnsupportedError(_unknown(name))
    del _BACKENDS[name]
    _INSTANCES.pop(name, None)


def registered_backends() -> list[str]:
    """The names of the backends that are registered. Backends that installed packages declare may be missing in it."""
    return list(_BACKENDS)


def get_compiler(name: str | None = None) -> Compiler:
    """The compiler of a registered backend, or of one that an installed package brings; None: of the default one.

    UnsupportedError names the backends that exist.
    """
    name = name or default_backend()
    found = _INSTANCES.get(name)
    if found is None:
        if name not in _BACKENDS:
            _own_backends()
        if name in _BACKENDS:
            factory = _BACKENDS[name]
        else:
            brought = _brought().get(name)
            if brought is None:
                raise UnsupportedError(_unknown(name))
            factory = brought.load()
        found = _INSTANCES[name] = factory()
    return found


def _brought() -> dict[str, EntryPoint]:
    """The backends that installed packages declare, registered or not. Reading the installed packages takes an import
    that programs with a backend of this package avoid."""
    found = import_module("importlib.metadata").entry_points(group=ENTRY_POINTS)
    return {point.name: point for point in found}


def _unknown(name: str) -> str:
    known = dict.fromkeys([*_BACKENDS, *_brought()])
    return f"no backend named {name!r}; known: {', '.join(known) or 'none'}"


def _own_backends() -> Any:
    """The module that registers the backends of this package: a program may have imported only `hloom.hlo`."""
    return part_above("backends")
