"""hloom.aot.compile: from a function or an HLO module to files for C and C++."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ..hlo.buffers.assignment import ALIGNMENT
from ..hlo.effects import has_side_effect
from ..hlo.errors import UnsupportedError
from ..hlo.ir import HloModule
from ..hlo.literal import Literal
from ..hlo.subgraph import FeedError, Place, subgraph
from ..hlo.support.lazy import lazy_property
from ..hlo.text.parser import parse
from ..numba_backend.ahead.blas import Blas
from ..numba_backend.ahead.compiling import standalone
from ..numba_backend.ahead.standalone import StandaloneProgram
from ..numba_backend.ahead.targets import TargetError, TargetMachine
from ..tracer.jit import jit
from ..tracer.stages import Lowered
from ..tracer.trees import tree
from .array_files import ArrayFileError, read_arrays
from .generated import benchmark_source, build_files, test_source
from .headers import Slot, c_header, checked_class, checked_name, cpp_header
from .javascript import javascript, javascript_class, javascript_test, package
from .names import Graph, Selector, graph_of_lowered, graph_of_module
from .writing import write_files

Source = Callable[..., Any] | Lowered | HloModule | str | os.PathLike[str]


def compile(
    source: Source,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    name: str = "computation",
    cpp_class: str | None = None,
    feeds: Sequence[Selector] | None = None,
    fetches: Sequence[Selector] | None = None,
    freeze: Any = None,
    target: str = "native",
    cpu: str | None = None,
    features: str = "",
    blas: bool | str = False,
    static_arena: bool = False,
) -> AotProgram:
    """A program for C and C++ that needs neither Python nor hloom.

    Args:
      source: a function, with `args` and `kwargs` (arrays or ShapeDtypeStruct); a ``jit(f).lower(...)``; an HLO module,
        or a path of a file with one.
      name: of the files and of the C function, ``NAME_run``.
      cpp_class: of the C++ class, with namespaces: ``"foo::bar::MatMulComp"``; by default `name`.
      feeds: the arguments of the program, in order: numbers, names, paths (``"params.w"``, ``"params['w']"``; a path
        means all arrays below it); in an HLO file also names of instructions. By default all that are not frozen.
      fetches: the results, in the same way. By default all. Instructions that they do not need are left out.
      freeze: values that become constants: a dict from paths to arrays or trees of arrays, or a file of them, ``.npz``
        or ``.safetensors``.
      target, cpu, features: as in `TargetMachine`; ``cpu=None`` means x86-64-v3 (machines since about 2013) for x86-64,
        the baseline of Linux (rv64gc) for RISC-V, and the oldest CPU of other targets.

      blas: whether products call the BLAS that is linked with the program, through CBLAS; a text gives the names of
        its functions, with ``*`` for the routine: ``"scipy_cblas_*64_"`` (integers of 64 bits, as ``64_`` says).
      static_arena: whether the code has its temporary memory itself, for a caller without memory to give; then one
        thread at a time may run it so.

    Raises:
      FeedError: for feeds, fetches or frozen values that do not exist, do not fit, or are missing.
      UnsupportedError: for operations that need Python or a library: callbacks, some linear algebra, Fourier
      transforms. IdentifierError, TargetError: for names that C++ does not take, and unknown targets.

    >>> program = hloom.aot.compile(lambda x, w: jnp.tanh(x @ w), (jnp.ones((4, 3)), jnp.ones((3, 2))), name="layer")
    >>> [str(slot.comment) for slot in (*program.arguments, *program.results)]
    ['x: f32[4,3]', 'w: f32[3,2]', 'result: f32[4,2]']
    """
    import_module("..numpy", __package__)  # arrays have their methods from there, and tracing its settings
    checked_name(name)
    checked_class(cpp_class or name)
    machine = _machine(target, cpu, features)
    if machine.is_wasm:
        javascript_class(cpp_class or name)
    graph = _graph(source, tuple(args), dict(kwargs or {}))
    frozen = _frozen(graph, freeze)
    module, arguments, results = _cut(graph, feeds, fetches, frozen)
    called = Blas("cblas_*" if blas is True else blas) if blas else None
    if called is not None and machine.is_wasm:
        raise TargetError(f"{machine.triple} has no BLAS to call; leave out blas=")
    return AotProgram(name, cpp_class or name, machine, module, arguments, results, called, static_arena)


def _machine(target: str, cpu: str | None, features: str) -> TargetMachine:
    if cpu is None:
        triple = TargetMachine(target).resolved().triple
        cpu = "x86-64-v3" if triple.startswith("x86_64") else ""
        if triple.startswith("riscv64") and "linux" in triple:
            features = ",".join(filter(None, ["+m,+a,+f,+d,+c", features]))
    return TargetMachine(target, cpu, features).resolved()


def _graph(source: Source, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Graph:
    if isinstance(source, Lowered):
        lowered, fun = source, source.fun
    elif isinstance(source, HloModule):
        return graph_of_module(source)
    elif isinstance(source, (str, os.PathLike)):
        path = Path(source)
        return graph_of_module(parse(path.read_text(encoding="utf-8"), str(path)))
    elif callable(source):
        # of a function that `hloom.schedule` checks, too, the scheduled program
        lowered = (source if hasattr(source, "lower") else jit(source)).lower(*args, **kwargs)
        fun = source
    else:
        raise TypeError(
            f"hloom.aot.compile takes a function, a jit(f).lower(...), an HLO module or the path of one, not {source!r}"
        )
    if lowered.with_references:
        raise UnsupportedError("the function changes mutable arrays (Ref); return their new contents instead")
    return graph_of_lowered(lowered, fun)


def _frozen(graph: Graph, freeze: Any) -> dict[Place, Literal]:
    """The places of frozen inputs, and their values."""
    if freeze is None:
        return {}
    if isinstance(freeze, (str, os.PathLike)):
        freeze = _read_values(Path(freeze))
    if not isinstance(freeze, Mapping):
        kind = type(freeze).__name__
        raise TypeError(f"freeze= takes a dict from paths to values, or the path of a file, not {kind}")
    found: dict[Place, Literal] = {}
    for path, value in freeze.items():
        inputs = graph.feeds([path])
        leaves = tree.leaves(value)
        if len(leaves) != len(inputs):
            raise FeedError(f"freeze: {path!r} means {len(inputs)} arrays, and {len(leaves)} are given")
        for item, leaf in zip(inputs, leaves, strict=True):
            found[item.place] = _literal(item.name, item.place, leaf)
    return found


def _literal(name: str, place: Place, value: Any) -> Literal:
    shape = place.shape
    array = np.asarray(value)
    if array.shape != shape.dimensions:
        raise FeedError(f"freeze: {name} has shape {list(shape.dimensions)}, the value {list(array.shape)}")
    if array.dtype != shape.element.dtype and not np.can_cast(array.dtype, shape.element.dtype, "same_kind"):
        raise FeedError(f"freeze: {name} is {shape.element.value}, the value {array.dtype}")
    return Literal(array, shape.element.dtype)


def _read_values(path: Path) -> dict[str, Any]:
    if path.suffix in (".npz", ".safetensors") and not path.is_file():
        raise FeedError(f"freeze: there is no file {path}")
    if path.suffix == ".npz":
        try:
            return read_arrays(str(path))
        except ArrayFileError as error:
            raise FeedError(f"freeze: {error}") from None
    if path.suffix == ".safetensors":
        try:
            load_file = import_module("safetensors.numpy").load_file
        except ImportError:
            raise ImportError(f"{path}: to read safetensors files, pip install safetensors") from None
        try:
            values: dict[str, Any] = load_file(path)
        except Exception as error:  # of its own class, or of NumPy's
            raise FeedError(f"freeze: {path} cannot be read as .safetensors: {error}") from None
        return values
    raise FeedError(f"freeze: {path} is neither a .npz nor a .safetensors file")


def _cut(
    graph: Graph, feeds: Sequence[Selector] | None, fetches: Sequence[Selector] | None, frozen: dict[Place, Literal]
) -> tuple[HloModule, list[Slot], list[Slot]]:
    for instruction in graph.module.entry.instructions:
        if has_side_effect(instruction):
            raise UnsupportedError(
                f"{instruction.name} ({instruction.opcode.value}) acts outside of the program, by Python; leave it out "
                "of what is compiled ahead of time"
            )
    if feeds is None:
        chosen = [item for item in graph.inputs if item.place not in frozen]
    else:
        chosen = graph.feeds(feeds)
        twice = next((item.name for item in chosen if item.place in frozen), None)
        if twice is not None:
            raise FeedError(f"{twice} is both fed and frozen")
    wanted = list(graph.results) if fetches is None else graph.fetches(fetches)
    if not wanted:
        raise FeedError("the program has no results: choose at least one fetch")
    places = [item.place for item in chosen]
    module = subgraph(graph.module, places, [item.place for item in wanted], {**graph.known, **frozen})
    return module, _slots(chosen), _slots(wanted)


def _slots(items: Sequence[Any]) -> list[Slot]:
    slots = []
    for item in items:
        leaves = list(item.place.shape.leaves())
        names = [item.name] if len(leaves) == 1 else [f"{item.name}.{k}" for k in range(len(leaves))]
        slots += [Slot(name, leaf.with_default_layout()) for name, leaf in zip(names, leaves, strict=True)]
    return slots


def _ahead(name: str) -> Any:
    """A module that writes code; it imports Numba, which a program that is only loaded does not need."""
    return import_module(f"...numba_backend.ahead.{name}", __name__)


class AotProgram:
    """A program compiled ahead of time.

    `arguments`, `results`: name and shape of each array, in the order of C. `module`: its HLO.

    >>> program = aot.compile(lambda x: jnp.sort(x)[:2], (jnp.ones(9),), name="smallest")
    >>> program, "int32_t smallest_run(" in program.c_source
    (<AotProgram smallest: 1 arguments, 1 results>, True)
    """

    def __init__(
        self, name: str, cpp_class: str, machine: TargetMachine, module: HloModule, arguments: list[Slot],
        results: list[Slot], blas: Blas | None = None, static_arena: bool = False,
    ) -> None:  # fmt: skip
        self.name, self.cpp_class, self.machine, self.module = name, cpp_class, machine, module
        self.arguments, self.results = tuple(arguments), tuple(results)
        self._program: StandaloneProgram = standalone(module, blas=blas, static_arena=static_arena)

    @property
    def temporary_bytes(self) -> int:
        """Bytes of memory that a run needs besides arguments and results."""
        return self._program.temporary_bytes

    @lazy_property
    def object_code(self) -> bytes:
        """The object file."""
        code: bytes = _ahead("llvm_program").program_object(self._program, self.name, self.machine)
        return code

    @lazy_property
    def c_source(self) -> str:
        """The program in C11, which includes nothing but C's own headers."""
        text: str = _ahead("c_program").program_in_c(self._program, self.name)
        return text

    @lazy_property
    def wasm(self) -> bytes:
        """The program as a module of WebAssembly that needs nothing else. TargetError for other targets."""
        if not self.machine.is_wasm:
            raise TargetError(f"{self.machine.triple} has no modules of WebAssembly; wasm32-unknown-unknown has")
        code: bytes = _ahead("wasm_program").program_module(self._program, self.name, self.machine)
        return code

    def files(self) -> dict[str, bytes]:
        """The files by name: code in both forms, headers, a test, a benchmark, and how to build them; for WebAssembly
        also a module, and an ES module that loads it."""
        name, arguments, results = self.name, list(self.arguments), list(self.results)
        texts = {
            f"{name}.h": cpp_header(name, self.cpp_class, arguments, results, self.temporary_bytes),
            f"{name}_c.h": c_header(name, arguments, results, self.temporary_bytes, self._program.static_arena),
            f"{name}.c": self.c_source,
            f"{name}_test.cc": test_source(name, self.cpp_class, self.module, arguments, results),
            f"{name}_benchmark.cc": benchmark_source(name, self.cpp_class, arguments),
            f"{name}.json": self._description(),
            **build_files(name, self._program.blas is not None),
        }
        code = {f"{name}.o": self.object_code}
        if self.machine.is_wasm:
            code[f"{name}.wasm"] = self.wasm
            texts[f"{name}.js"] = javascript(name, self.cpp_class, arguments, results)
            texts["package.json"] = package(name)
            texts[f"{name}_test.mjs"] = javascript_test(name, self.cpp_class, self.module, arguments, results)
        return {**code, **{file: text.encode() for file, text in texts.items()}}

    def _description(self) -> str:
        def described(slots: Sequence[Slot]) -> list[dict[str, Any]]:
            return [
                {
                    "name": s.name,
                    "type": s.shape.element.value,
                    "dtype": s.shape.element.dtype.name,
                    "dimensions": list(s.shape.dimensions),
                }
                for s in slots
            ]

        return json.dumps(
            {
                "name": self.name,
                "target": {"triple": self.machine.triple, "cpu": self.machine.cpu, "features": self.machine.features},
                "arguments": described(self.arguments),
                "results": described(self.results),
                "temporary_bytes": self.temporary_bytes,
                "alignment": ALIGNMENT,
                "blas": self._program.blas.pattern if self._program.blas else None,
            },
            indent=1,
        )

    def write(self, directory: str | os.PathLike[str]) -> list[Path]:
        """Write the files into a directory, which is made if it does not exist; the paths. Either all of them are
        written or, if one cannot be, none."""
        return write_files(Path(directory), self.files())

    def __repr__(self) -> str:
        return f"<AotProgram {self.name}: {len(self.arguments)} arguments, {len(self.results)} results>"
