"""The stages of a jitted function that users can look at: Traced, Lowered (as HLO) and Compiled (after all passes)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from ..hlo.analyses.known_sizes import check_known_sizes
from ..hlo.backend import Executable, MemoryAnalysis
from ..hlo.errors import UnsupportedError
from ..hlo.ir import HloComputation, HloModule
from ..hlo.kernel_texts import KernelTexts
from ..hlo.library import part_above
from ..hlo.notebooks import in_notebooks
from ..hlo.passes.record import PassRecords
from ..hlo.support.loading import load
from ..hlo.support.records import dataclass
from ..hlo.support.shared_value import SharedValue
from ..hlo.support.tracebacks import boundaries
from ..hlo.target import Target
from .arguments import (
    NO_STATICS,
    ArgumentSpec,
    ShapeDtypeStruct,
    StaticArguments,
    abstract,
    compile_options,
    entered,
    leaf_describer,
    leaf_names,
    split_static,
    temporary,
    values_of,
)
from .arrays.array import Array
from .arrays.float0 import hide_float0
from .arrays.layouts import Format, row_major
from .aval import ANY_OVER_DEVICES, ShapedArray
from .checks.nan_checks import checked, is_checking
from .core import Value
from .errors import OperandError, TreeStructureError, UnexpectedTracerError
from .execution import CompileOptions, check_is_alone, compile_module, runner
from .pickled_stages import absent, check_text_is_all, picklable
from .references.programs import module_with_references, running_on_references
from .references.refs import Ref
from .settings.context import current_context
from .sharding.current_mesh import get_abstract_mesh
from .sharding.devices import devices
from .sharding.jit_shardings import placing
from .sharding.shardings import Sharding, default_sharding
from .sharding.spmd_jit import OverDevices, on_one_device
from .source import function_line
from .tracer import Tracer
from .trees import tree
from .trees.tree import PyTreeDef
from .wrapping import name_of

if TYPE_CHECKING:
    from ..hlo.analyses.communication import Communication
    from ..hlo.analyses.cost import CostEstimate
    from ..hlo.passes.module_diff import ModuleDiffs

_STABLEHLO = "stablehlo"

CompilerOptions: TypeAlias = dict[str, str | bool]
"""Options for XLA, which mean nothing here."""


def _cost_analysis(module: HloModule) -> CostEstimate:
    estimate: CostEstimate = load("..hlo.analyses.cost", __package__).cost_analysis(module)
    return estimate


@dataclass(frozen=True, slots=True, eq=False)
class Signature:
    """The types and structures that a function was traced for."""

    fun: Callable[..., Any]
    static: ArgumentSpec
    in_tree: PyTreeDef
    in_avals: tuple[Any, ...]
    statics: StaticArguments
    out_tree: PyTreeDef
    out_avals: tuple[ShapedArray, ...]
    donated: tuple[int, ...]
    with_references: Any = None
    """The traced function, if it reads or writes references to mutable arrays (`programs.py`)."""
    options: CompileOptions = frozenset()
    """The settings that its program is compiled with."""
    over_devices: Callable[[], OverDevices | None] | None = None
    """Where there are several devices: compiles it for those that it is for, if these are several."""
    on_one_device: Callable[[], tuple[Sequence[Sharding | None], Sequence[Sharding | None]]] | None = None
    """Otherwise: the places of its arguments and results; None for those that are over no mesh."""
    stated: Callable[[], tuple[Sequence[Sharding | None], Sequence[Sharding | None]]] | None = None
    """The places of its arguments and results that the user has said; None for the others."""

    def __reduce__(self) -> Any:
        """For another process: without the function and its static arguments, which may be left out of calls."""
        return Signature, (
            absent(self.fun), self.static, self.in_tree, self.in_avals, picklable(self.statics, NO_STATICS),
            self.out_tree, self.out_avals, self.donated, None, self.options,
        )  # fmt: skip

    def out_info(self) -> Any:
        """The results' types, as ShapeDtypeStruct."""
        return tree.unflatten(self.out_tree, [ShapeDtypeStruct.of(a) for a in self.out_avals])

    def arguments(self) -> Any:
        """The types of (positional, keyword) arguments."""
        return tree.unflatten(self.in_tree, self.in_avals)

    def args_info(self) -> Any:
        """The types of (positional, keyword) arguments, and which are donated, as ArgInfo."""
        return tree.unflatten(self.in_tree, [ArgInfo(a, k in self.donated) for k, a in enumerate(self.in_avals)])

    def leaves(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """A call's leaves as values; TreeStructureError if it does not fit this signature.

        Static arguments may be left out, as in JAX; if they are given, they must equal this signature's.
        """
        statics = self.statics
        dynamic, keywords = hide_float0(entered(args, kwargs))
        found, in_tree = tree.flatten((dynamic, keywords))
        if in_tree != self.in_tree:
            dynamic, keywords, statics = split_static(self.fun, self.static, args, kwargs)
            dynamic, keywords = hide_float0(entered(dynamic, keywords))
            found, in_tree = tree.flatten((dynamic, keywords))
        if statics != self.statics:
            self._differ(f"the static arguments {_listed(self.statics)}", _listed(statics))
        if in_tree != self.in_tree:
            name = "the compiled function"
            where = next(tree.differences(self.in_tree, (dynamic, keywords), name, exact=True, write=_place), None)
            trees = "Function compiled with input pytree does not match the input pytree it was called with.\n"
            self._differ(f"arguments {self.in_tree}", f"{in_tree}: {where}", trees)
        describe = leaf_describer(self.fun, dynamic, keywords, statics)
        avals = [
            x.aval if isinstance(x, Ref) else abstract(x, functools.partial(describe, k)) for k, x in enumerate(found)
        ]
        for k, (aval, wanted) in enumerate(zip(avals, self.in_avals, strict=True)):
            if aval.shape != wanted.shape or aval.dtype != wanted.dtype:
                name = leaf_names(self.fun, dynamic, keywords, statics)[k]
                types = f"Argument {name!r} compiled with {wanted.str_short()} and called with {aval.str_short()}"
                rule = "Argument types differ from the types for which this computation was compiled"
                self._differ(
                    f"{wanted.str_short()} as argument {name}",
                    aval.str_short(),
                    f"{rule}. The mismatches are:\n{types}\n",
                )
        arrays: list[Any] = [x if isinstance(x, Ref) else temporary(x) for x in found]
        missing = [k for k, a in enumerate(arrays) if a is None]  # not by ==, which a reference would compute
        for k, value in zip(missing, values_of([found[k] for k in missing], lambda n: describe(missing[n]))):
            arrays[k] = value
        return arrays

    def _differ(self, wanted: str, found: str, what: str = "") -> None:
        raise TreeStructureError(
            f"{what}{function_line(self.fun)} was compiled for {wanted}, but called with {found}\n  Call the jitted "
            "function itself, which compiles for each combination of types, or lower it for these."
        )


def _place(path: tuple[Any, ...]) -> str:
    """A path in (positional, keyword) arguments: ``args[0]['w']``."""
    return ("args", "kwargs")[path[0].idx] + tree.keystr(path[1:]) if path else "the arguments"


def _listed(statics: StaticArguments) -> str:
    return ", ".join([f"{where}={value!r}" for where, _, value in (*statics.positional, *statics.keyword)]) or "none"


@dataclass(frozen=True, slots=True)
class ArgInfo:
    """An argument of a traced function.

    >>> hloom.jit(lambda x: x + 1).lower(jnp.zeros(3)).args_info
    ((ArgInfo(_aval=ShapedArray(float32[3]), donated=False),), {})
    """

    _aval: ShapedArray
    donated: bool

    @property
    def shape(self) -> tuple[int, ...]:
        return self._aval.shape

    @property
    def dtype(self) -> Any:
        return self._aval.dtype


class _Stage:
    """The common base of the stages: the structures and types that a function was traced for."""

    _signature: Signature

    @property
    def in_tree(self) -> PyTreeDef:
        """The structure of (positional, keyword) arguments.

        >>> hloom.jit(lambda x: (2 * x, x)).trace(jnp.ones(3)).in_tree
        PyTreeDef(((*,), {}))
        """
        return self._signature.in_tree

    @property
    def out_tree(self) -> PyTreeDef:
        """The structure of the result.

        >>> hloom.jit(lambda x: (2 * x, x)).trace(jnp.ones(3)).out_tree
        PyTreeDef((*, *))
        """
        return self._signature.out_tree

    @property
    def in_avals(self) -> Any:
        """The types of (positional, keyword) arguments.

        >>> hloom.jit(lambda x: (2 * x, x)).trace(jnp.ones(3)).in_avals
        ((ShapedArray(float32[3]),), {})
        """
        return self._signature.arguments()

    @property
    def args_info(self) -> Any:
        """The types of (positional, keyword) arguments, and which are donated, as ArgInfo.

        >>> hloom.jit(lambda x: 2 * x, donate_argnums=0).trace(1.5).args_info
        ((ArgInfo(_aval=ShapedArray(float32[], weak_type=True), donated=True),), {})
        """
        return self._signature.args_info()

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """The leaves that the program may overwrite with results.

        >>> hloom.jit(lambda x: 2 * x, donate_argnums=0).trace(jnp.ones(3)).donate_argnums
        (0,)
        """
        return self._signature.donated

    @property
    def out_info(self) -> Any:
        """The results' types, as ShapeDtypeStruct.

        >>> hloom.jit(lambda x: (2 * x, x)).trace(jnp.ones(3)).out_info
        (ShapeDtypeStruct(shape=(3,), dtype=float32), ShapeDtypeStruct(shape=(3,), dtype=float32))
        """
        return self._signature.out_info()


@boundaries
class Traced(_Stage):
    """A function traced for one combination of argument types.

    >>> traced = hloom.jit(lambda x: 2 * x).trace(jnp.arange(3))
    >>> traced.jaxpr
    { lambda ; a:i32[3]. let b:i32[3] = mul 2:i32[] a in (b,) }
    """

    def __init__(
        self, name: str, computation: HloComputation, captured: Sequence[Value], signature: Signature,
        lower: Callable[[], Lowered],
    ) -> None:  # fmt: skip
        self.fun_name = name
        self._computation = computation
        self._captured = captured
        self._signature = signature
        self._lower = lower
        self._jaxpr: Any = None

    @property
    def jaxpr(self) -> Any:
        """The program as a ClosedJaxpr: a view of its HLO.

        >>> hloom.jit(lambda x: 2 * x).trace(jnp.arange(3)).jaxpr
        { lambda ; a:i32[3]. let b:i32[3] = mul 2:i32[] a in (b,) }
        """
        if self._jaxpr is None:
            s = self._signature
            self._jaxpr = part_above("jaxprs").view_of(self._computation, self._captured, s.in_avals, s.out_avals)
        return self._jaxpr

    def lower(self, *, lowering_platforms: Any = None) -> Lowered:
        """The program as HLO. `lowering_platforms` is for JAX's sake: there is one.

        >>> hloom.jit(lambda x: 2 * x).trace(jnp.ones(3)).lower().compile()(jnp.ones(3))
        Array([2., 2., 2.], dtype=float32)
        """
        return self._lower()

    @property
    def out_avals(self) -> Any:
        """The results' types.

        >>> hloom.jit(lambda x: (2 * x, x)).trace(jnp.ones(3)).out_avals
        (ShapedArray(float32[3]), ShapedArray(float32[3]))
        """
        return tree.unflatten(self._signature.out_tree, self._signature.out_avals)

    def __repr__(self) -> str:
        return f"<Traced {self.fun_name}>"

    _repr_html_ = in_notebooks


@boundaries
class Lowered(_Stage, SharedValue):
    """A function traced for one combination of argument types: HLO before any pass. ``jit(f).lower(*args)`` makes one.

    >>> lowered = hloom.jit(lambda x: 2 * x).lower(hloom.ShapeDtypeStruct((3,), jnp.float32))
    >>> lowered.out_info
    ShapeDtypeStruct(shape=(3,), dtype=float32)
    >>> lowered.compile()(jnp.array([1.0, 2.0, 3.0]))
    Array([2., 4., 6.], dtype=float32)
    """

    def __init__(self, module: HloModule, captured: Sequence[Value], signature: Signature) -> None:
        self.module = module
        self._captured = captured
        self._signature = signature
        self._mesh = get_abstract_mesh()

    def as_text(self, dialect: str | None = None, *, metadata: bool = False, debug_info: bool = False) -> str:
        """The module as HLO text, or as StableHLO, which JAX, XLA and IREE read. `metadata`, which JAX calls
        `debug_info`: with the line of the user's program that each instruction comes from. UnsupportedError for a
        `dialect` other than "hlo" and "stablehlo".

        >>> lowered = hloom.jit(lambda x: 2 * x).lower(jnp.ones(3))
        >>> "multiply" in lowered.as_text()
        True
        >>> "stablehlo.multiply" in lowered.as_text("stablehlo")
        True
        """
        if dialect == _STABLEHLO:
            text: str = self.compiler_ir(dialect).to_text(locations=metadata or debug_info)
            return text
        return self.module.as_text(dialect, metadata=metadata, debug_info=debug_info)

    @property
    def captured(self) -> tuple[Value, ...]:
        """The arrays that the function holds; they are the module's last parameters.

        >>> w = jnp.array([1.0, 2.0])
        >>> hloom.jit(lambda x: x * w).lower(1.5).captured
        (Array([1., 2.], dtype=float32),)
        """
        return tuple(self._captured)

    @property
    def fun(self) -> Callable[..., Any]:
        """The function that was traced.

        >>> hloom.jit(jnp.sin).lower(1.5).fun.__name__
        'sin'
        """
        return self._signature.fun

    @property
    def with_references(self) -> bool:
        """True if the function changes mutable arrays.

        >>> hloom.jit(lambda x: 2 * x).lower(1.5).with_references
        False
        """
        return self._signature.with_references is not None

    @property
    def options(self) -> CompileOptions:
        """The settings that its program is compiled with.

        >>> import hloom
        >>> hloom.jit(lambda x: 2 * x, compiler_options={"autotune": True}).lower(1.5).options
        frozenset({('autotune', True)})
        """
        return self._signature.options

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """The module before any pass: an HloModule, or, for "stablehlo", an object whose `str` is the text.
        UnsupportedError for another `dialect`.

        >>> hloom.jit(lambda x: 2 * x).lower(1.5).compiler_ir().name
        'jit_lambda'
        """
        if dialect == _STABLEHLO:
            made, stated, found = self._with_shardings(), self._signature.stated, None
            if made is self.module and stated is not None:
                found = load(".sharding.shardy", __package__).shardy_form(self.module, *stated())
            return load("..hlo.stablehlo.printed", __package__).MlirModule(*(found or (made,)))
        self.module.as_text(dialect)  # refuses other dialects
        return self.module

    def _with_shardings(self) -> HloModule:
        """The module in which every value states how Explicit axes of a mesh divide it, if they do."""
        given = [*self._signature.in_avals, *[v.aval for v in self._captured]]
        if not (ANY_OVER_DEVICES or self._mesh.explicit_axes) or len(given) != len(self.module.entry.parameters):
            return self.module
        found: HloModule = load(".sharding.stated", __package__).stated_text(self.module, given, self._mesh)
        return found

    def cost_analysis(self) -> CostEstimate:
        """Estimates of the work: "flops", "transcendentals", "bytes accessed".

        >>> hloom.jit(jnp.matmul).lower(jnp.ones((10, 20)), jnp.ones((20, 30))).cost_analysis()["flops"]
        12000.0
        """
        return _cost_analysis(self.module)

    def compile(
        self,
        compiler_options: dict[str, Any] | None = None,
        *,
        device_assignment: Any = None,
        target: str | Target | None = None,
    ) -> Compiled:
        """Compile for a target, by default `hloom.config.hloom_target`. The result runs on arguments of exactly these
        types. UnsupportedError, which names those that exist, for an unknown target, and for symbolic sizes.

        compiler_options: as `jit` has them: "autotune", "memory_budget", "schedule", "xla_allow_excess_precision";
          others of XLA mean nothing here; ValueError for others. MemoryBudgetError for a budget that cannot be kept.
        device_assignment: accepted; programs run where their arguments are.

        >>> double = hloom.jit(lambda x: 2 * x).lower(jnp.ones(3)).compile()
        >>> double(jnp.array([1.0, 2.0, 3.0]))
        Array([2., 4., 6.], dtype=float32)
        """
        check_known_sizes(self.module.entry.parameters, "compile")
        asked = compile_options(compiler_options, "compile")
        options = frozenset({**dict(self._signature.options), **dict(asked)}.items())
        several = None if self._signature.over_devices is None else self._signature.over_devices()
        if several is not None:
            check_is_alone(options)
            if target is not None:
                raise UnsupportedError(f"compile: a program over several devices has no target of its own, {target}")
            return Compiled(several.program.executable, self, several=several)
        donated = self._signature.donated
        if self._signature.with_references is not None:
            donated = module_with_references(self._signature.with_references)[1]
        executable = compile_module(self.module, target=target, donated=donated, options=options)
        return Compiled(executable, self, compiler_options, target)

    def __reduce__(self) -> Any:
        """A pickle holds HLO text, the arrays that the function holds, and the types; not the function."""
        several = self._signature.over_devices
        check_text_is_all(self, self.module, self.with_references, several is not None and several() is not None)
        return Lowered, (self.module, self.captured, self._signature)

    def __repr__(self) -> str:
        return f"<Lowered {self.module.name}>"

    _repr_html_ = in_notebooks


@boundaries
class Compiled(_Stage, SharedValue):
    """A compiled program: call it as the function, with arguments of the types it was lowered for.

    Its methods show it: `as_text`, `kernels`, `memory_analysis`, `cost_analysis`. Other types raise TypeError.

    >>> double = hloom.jit(lambda x: 2 * x).lower(jnp.ones(3)).compile()
    >>> double(jnp.array([1.0, 2.0, 3.0]))
    Array([2., 4., 6.], dtype=float32)
    """

    def __init__(
        self,
        executable: Executable,
        lowered: Lowered,
        compiler_options: dict[str, Any] | None = None,
        target: str | Target | None = None,
        several: OverDevices | None = None,
    ) -> None:
        self.executable = executable
        self.made_from: tuple[Lowered, dict[str, Any] | None, str | Target | None] = lowered, compiler_options, target
        """The arguments of `Lowered.compile`, and the object that it is a method of."""
        module, captured, signature = lowered.module, lowered.captured, lowered._signature
        self._module = module
        self._signature = signature
        self._several = several
        self._places: tuple[Sequence[Any], Sequence[Any]] = (), ()
        if several is None and signature.on_one_device is not None:
            self._places = signature.on_one_device()
        self._run: Callable[[Sequence[Any]], Any]
        if several is not None:
            self._run = several.call
            return
        if signature.with_references is not None:
            self._run = running_on_references(signature.with_references, executable)
            return
        arrays = [v for v in captured if isinstance(v, Array)]
        self._run = runner(executable, arrays, signature.out_avals, signature.out_tree, signature.donated)
        if is_checking(current_context()):
            what = f"jit of {function_line(signature.fun)}"
            self._run = checked(self._run, module, arrays, bool(signature.donated), what)
        if any(self._places[1]):
            self._run = placing(self._run, self._places[1])
        if self._places[0] and len(devices()) > 1:
            self._run = on_one_device(self._run, *self._places)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        leaves = self._signature.leaves(args, kwargs)
        if current_context().no_execution:
            load(".checks.no_execution", __package__).refuse(name_of(self._signature.fun))
        try:
            return self._run(leaves)
        except UnexpectedTracerError:
            traced = next((x for x in leaves if isinstance(x, Tracer)), None)
            if traced is None:
                raise
            raise OperandError(
                "Cannot apply JAX transformations to a function lowered and compiled for a particular signature. "
                f"Detected argument of Tracer type {type(traced).__name__}.\n  Transform the jitted function itself, "
                "before it is lowered.",
                "compiled",
            ) from None

    def as_text(self, dialect: str | None = None, *, metadata: bool = False, debug_info: bool = False) -> str:
        """The module after all passes: fused, with layouts, scheduled. Options as for `Lowered.as_text`.

        >>> compiled = hloom.jit(lambda x: 2 * jnp.tanh(x) + 1).lower(jnp.ones(3)).compile()
        >>> "fusion" in compiled.as_text()
        True
        """
        return self.executable.as_text(dialect, metadata=metadata, debug_info=debug_info)

    def kernels(self) -> KernelTexts:
        """The Numba source of each distinct kernel, by name: a dictionary, which prints as a table and the sources.

        >>> compiled = hloom.jit(lambda x: 2 * jnp.tanh(x) + 1).lower(jnp.ones(3)).compile()
        >>> (source,) = compiled.kernels().values()
        >>> "tanh(" in source
        True
        """
        return KernelTexts(self.executable.kernels())

    def passes(self) -> PassRecords:
        """The record of each pass, in order: name, milliseconds, instructions before and after. A tuple, which prints
        as a table.

        >>> records = hloom.jit(lambda x: 2 * x).lower(jnp.ones(3)).compile().passes()
        >>> records[2].name
        'call-inliner'
        """
        return PassRecords(self.executable.passes())

    def diff(self, *passes: str | int) -> ModuleDiffs:
        """The lines of HLO that a pass took out and put in, with the rules that fired: in colours in a terminal (unless
        NO_COLOR is set) and in a notebook. The passes run once more for it.

        passes: a name, or an index of `passes()`. A name stands for each run of the pass that changed something. Two:
          from before the first run of the first to after the last run of the second. None: all passes.
        ValueError, which lists the passes, if one did not run. UnsupportedError for a backend that has no
          stages (`Executable.stages`).

        >>> compiled = hloom.jit(lambda x: 2 * jnp.tanh(x) + 1).lower(jnp.ones(3)).compile()
        >>> (fusion,) = compiled.diff("fusion")
        >>> [group.computation for group in fusion.groups()]
        ['%fused_computation', '%_lambda_']
        """
        return self.executable.stages().diff(*passes)

    def memory_analysis(self) -> MemoryAnalysis:
        """The bytes needed, by purpose, the peak, and the map of the memory. It prints as a table and the map.

        >>> memory = hloom.jit(lambda x: 2 * x).lower(jnp.ones(1024)).compile().memory_analysis()
        >>> memory.argument_size_in_bytes, memory.output_size_in_bytes
        (4096, 4096)
        """
        return self.executable.memory_analysis()

    def cost_analysis(self) -> CostEstimate:
        """Estimates of the work, before fusion: "flops", "transcendentals", "bytes accessed". `instructions` of the
        result has the same for each instruction, with the user's line; it prints as a table.

        >>> costs = hloom.jit(jnp.matmul).lower(jnp.ones((10, 20)), jnp.ones((20, 30))).compile().cost_analysis()
        >>> costs["flops"]
        12000.0
        >>> [(i.name, i.flops, i.bytes_accessed) for i in costs.instructions if i.flops]
        [('dot', 12000.0, 4400.0)]
        """
        return _cost_analysis(self._module)

    def communication_analysis(self) -> Communication:
        """The collectives of the program, how often they run, and the bytes that a device sends. They print as a table.
        A program on one device has none.

        >>> hloom.jit(lambda x: 2 * x).lower(1.5).compile().communication_analysis().sent()
        0
        """
        analyses = import_module("..hlo.analyses.communication", __package__)
        found: Communication = analyses.communication_analysis(self.executable.module)
        return found

    @property
    def input_shardings(self) -> Any:
        """Where the (positional, keyword) arguments are expected: on the CPU.

        >>> hloom.jit(lambda x: 2 * x).lower(jnp.ones(3)).compile().input_shardings
        ((SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device),), {})
        """
        count = len(self._signature.in_avals)
        found = [p or default_sharding() for p in self._places[0] or [None] * count]
        if self._several is not None:
            found = self._several.program.parameter_shardings
        return tree.unflatten(self._signature.in_tree, list(found[:count]))

    @property
    def output_shardings(self) -> Any:
        """Where the results are: on the CPU.

        >>> hloom.jit(lambda x: 2 * x).lower(jnp.ones(3)).compile().output_shardings
        SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)
        """
        found = [p or default_sharding() for p in self._places[1] or [None] * len(self._signature.out_avals)]
        if self._several is not None:
            found = [r.sharding for r in self._several.program.results]
        return tree.unflatten(self._signature.out_tree, list(found))

    @property
    def input_formats(self) -> Any:
        """Layout and place of the (positional, keyword) arguments: row-major, on the CPU.

        >>> (x,), _ = hloom.jit(lambda x: 2 * x).lower(jnp.ones((2, 3))).compile().input_formats
        >>> x.layout.major_to_minor
        (0, 1)
        """
        s = self._signature
        return tree.unflatten(s.in_tree, [Format(row_major(a.ndim), default_sharding()) for a in s.in_avals])

    @property
    def output_formats(self) -> Any:
        """Layout and place of the results: row-major, on the CPU.

        >>> hloom.jit(lambda x: x.T).lower(jnp.ones((2, 3))).compile().output_formats.layout.major_to_minor
        (0, 1)
        """
        s = self._signature
        return tree.unflatten(s.out_tree, [Format(row_major(a.ndim), default_sharding()) for a in s.out_avals])

    def runtime_executable(self) -> Executable:
        """What runs: the backend's program.

        >>> type(hloom.jit(lambda x: 2 * x).lower(1.5).compile().runtime_executable()).__name__
        'NumbaExecutable'
        """
        return self.executable

    def __reduce__(self) -> Any:
        raise TypeError(
            f"{self!r} cannot be pickled: it is machine code in the memory of this process. Pickle the jitted function "
            "or what `lower` returned, and call `compile()` where it is loaded: kernels come from the store on disk. "
            "`hloom.experimental.serialize_executable` does that."
        )

    def __repr__(self) -> str:
        return f"<Compiled {self.executable.module.name}>"

    _repr_html_ = in_notebooks
