"""Numba's typing and lowering, without `njit`. Code that depends on Numba's internals belongs here: other modules use
Numba's types, errors and `numba.extending`, and no more.

`NAMES` lists each name of Numba that is used here and that Numba does not document. `tests/test_numba_names.py` looks
for each in the installed version, and says which are missing; so does the error of a process whose Numba is unknown.

Numba's own driver spends most of a small kernel's compile time on passes that a kernel does not need: inlining of
closures, parfors, rewrites, SSA, reference counts, two code generations. `NumbaCompiler.lower` runs only bytecode
analysis, Numba IR, type inference and lowering. It is for kernels that one_pass.py refuses, which needs no Numba.

The contexts are hloom's own and hold only the registrations that kernels use: numbers, ranges, pointers, intrinsics.
Numba's global contexts, which load all of its NumPy support (0.4 s), stay untouched.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from contextlib import suppress
from typing import Any

import numba
from numba.core import bytecode, callconv, cpu, errors, funcdesc, interpreter, lowering, postproc, typeinfer, types
from numba.core.compiler import Flags
from numba.core.compiler_lock import global_compiler_lock
from numba.core.cpu_options import FastMathOptions
from numba.core.targetconfig import ConfigStack
from numba.core.typing import BaseContext, templates
from numba.cpython import builtins, numbers, rangeobj  # noqa: F401  (importing registers how they are lowered)
from numba.extending import _Intrinsic

from .llvm_values import allow_contraction, new_module

NAMES: dict[str, tuple[str, ...]] = {
    "the lock around Numba's compiler": (
        "numba.core.compiler_lock.global_compiler_lock",
        "numba.core.compiler_lock.global_compiler_lock._lock",
    ),
    "registrations of what kernels use": (
        "numba.cpython.builtins",
        "numba.cpython.numbers",
        "numba.cpython.rangeobj",
        "numba.core.typing.templates.builtin_registry",
        "numba.core.typing.templates.RegistryLoader",
        "numba.core.typing.templates.RegistryLoader.new_registrations",
        "numba.core.typing.templates._OverloadFunctionTemplate",
        "numba.core.typing.templates._OverloadAttributeTemplate",
        "numba.core.typing.templates._IntrinsicTemplate",
    ),
    "the typing context": (
        "numba.core.typing.BaseContext",
        "numba.core.typing.BaseContext._load_builtins",
        "numba.core.typing.BaseContext._lookup_global",
        "numba.core.typing.BaseContext._insert_global",
        "numba.core.typing.BaseContext._remove_global",
        "numba.core.typing.BaseContext._registries",
        "numba.core.typing.BaseContext.callstack",
        "numba.core.typing.BaseContext.insert_attributes",
        "numba.core.typing.BaseContext.insert_function",
        "numba.core.typing.BaseContext.insert_global",
        "numba.core.typing.BaseContext.install_registry",
        "numba.core.types.Function.augment",
        "numba.core.typing.context.CallStack.register",
    ),
    "intrinsics": (
        "numba.extending._Intrinsic",
        "numba.extending._Intrinsic._defn",
        "numba.extending._Intrinsic._name",
        "numba.core.typing.templates.AbstractTemplate",
        "numba.core.typing.templates.AbstractTemplate.get_impl_key",
        "numba.core.typing.templates.AbstractTemplate.prefer_literal",
        "numba.core.typing.templates.Signature.args",
        "numba.core.typing.templates.Signature.return_type",
    ),
    "the target context": (
        "numba.core.cpu.CPUContext",
        "numba.core.cpu.CPUContext.get_dummy_value",
        "numba.core.cpu.CPUContext.insert_func_defn",
        "numba.core.cpu.CPUContext.load_additional_registries",
        "numba.core.cpu.CPUContext.make_array",
        "numba.core.cpu.CPUContext.post_lowering",
        "numba.core.cpu.CPUContext.push_code_library",
        "numba.core.cpu.CPUContext.refresh",
        "numba.core.cpu.CPUContext.subtarget",
        "numba.core.cpu.CPUContext.target",
        "numba.core.callconv.create_error_model",
        "numba.core.cpu_options.FastMathOptions",
    ),
    "flags": (
        "numba.core.compiler.Flags",
        *(
            f"numba.core.compiler.Flags.{name}"
            for name in (
                *("boundscheck", "error_model", "fastmath", "no_cfunc_wrapper", "no_compile", "no_cpython_wrapper"),
                "nrt",
            )
        ),
        "numba.core.targetconfig.ConfigStack",
        "numba.core.targetconfig.ConfigStack.enter",
    ),
    "the whole front end": (
        "numba.core.bytecode.ByteCode",
        "numba.core.bytecode.FunctionIdentity.from_function",
        "numba.core.bytecode.FunctionIdentity.unique_id",
        "numba.core.bytecode.FunctionIdentity.unique_name",
        "numba.core.errors.LoweringError",
        "numba.core.errors.NumbaWarning",
        "numba.core.errors.WarningsFixer",
        "numba.core.funcdesc.PythonFunctionDescriptor.from_specialized_function",
        "numba.core.funcdesc.PythonFunctionDescriptor.llvm_func_name",
        "numba.core.interpreter.Interpreter.interpret",
        "numba.core.ir.FunctionIR.arg_count",
        "numba.core.ir.FunctionIR.arg_names",
        "numba.core.lowering.Lower",
        "numba.core.lowering.Lower.emit_environment_object",
        "numba.core.lowering.Lower.lower",
        "numba.core.postproc.PostProcessor.run",
        "numba.core.typeinfer.TypeInferer.build_constraint",
        "numba.core.typeinfer.TypeInferer.propagate",
        "numba.core.typeinfer.TypeInferer.seed_argument",
        "numba.core.typeinfer.TypeInferer.seed_return",
        "numba.core.typeinfer.TypeInferer.unify",
    ),
}
"""What is used of Numba that it does not document, by what it is used for."""


def missing_names() -> list[str]:
    """The names of `NAMES` that the installed Numba does not have."""
    return [name for names in NAMES.values() for name in names if not _exists(name)]


def _exists(name: str) -> bool:
    """True if modules and classes have the attribute, or if the class's own methods set it on their object."""
    owner: Any = numba
    for part in name.split(".")[1:]:
        found = getattr(owner, part, _NOTHING)
        if found is _NOTHING:
            with suppress(ImportError):
                found = importlib.import_module(f"{owner.__name__}.{part}") if inspect.ismodule(owner) else found
        if found is _NOTHING:
            return inspect.isclass(owner) and any(_sets(base, part) for base in owner.__mro__[:-1])
        owner = found
    return True


def _sets(owner: type, name: str) -> bool:
    try:
        return re.search(rf"\b(self|obj)\.{name} = |\b__slots__ = .*{name!r}", inspect.getsource(owner)) is not None
    except (OSError, TypeError):
        return False


_NOTHING = object()
compiler_lock = global_compiler_lock
compiler_lock_itself = global_compiler_lock._lock
"""The interpreter's lock in it: where an interrupt may come, `with compiler_lock` could lose it."""
_FASTMATH = FastMathOptions({"contract"})


_ADDRESS = re.compile(r"(?<=\.const\.pickle)([a-z]+)\.(\d+)\b")


def without_addresses(text: str) -> str:
    """LLVM IR without the addresses by which Numba, before 0.67, names stored exceptions: equal kernels, equal text."""
    found: dict[str, int] = {}
    return _ADDRESS.sub(lambda m: f"{m[1]}.{found.setdefault(m[2], len(found))}", text)


class _TypingContext(BaseContext):  # type: ignore[misc]
    """Typing templates of plain numbers and pointers only; `@overload`s belong to Numba's CPU target."""

    def __init__(self) -> None:
        super().__init__()
        self.target: Any = None
        self._intrinsics: dict[Any, Any] = {}

    def _load_builtins(self) -> None:
        self.install_registry(templates.builtin_registry)

    def _lookup_global(self, value: Any) -> Any:
        if not isinstance(value, _Intrinsic):
            return super()._lookup_global(value)
        known = self._intrinsics.get(value)
        if known is None:
            name = f"Intrinsic_{value._name}"
            template = type(name, (_IntrinsicTemplate,), {"key": value, "definition": staticmethod(value._defn)})
            known = self._intrinsics[value] = types.Function(template)
        return known

    def install_registry(self, registry: Any) -> None:
        loader = self._registries.get(registry)
        if loader is None:
            loader = self._registries[registry] = templates.RegistryLoader(registry)
        for template in loader.new_registrations("functions"):
            if not issubclass(template, (templates._OverloadFunctionTemplate, templates._IntrinsicTemplate)):
                self.insert_function(template(self))
        for template in loader.new_registrations("attributes"):
            if not issubclass(template, templates._OverloadAttributeTemplate):
                self.insert_attributes(template(self))
        for value, type_ in loader.new_registrations("globals"):
            if isinstance(value, _Intrinsic):
                continue
            known = self._lookup_global(value)
            if known is None:
                self.insert_global(value, type_)
            else:
                self._remove_global(value)
                self._insert_global(value, known.augment(type_))


class _IntrinsicTemplate(templates.AbstractTemplate):  # type: ignore[misc]
    """The type of one `@intrinsic`. Numba's own template would first load all of Numba's CPU target."""

    definition: Any
    prefer_literal = True

    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self._implementations: dict[Any, Any] = {}

    def generic(self, args: Any, kws: Any) -> Any:
        typed = self.definition(self.context, *args, **kws)
        if typed is None:
            return None
        signature, implementation = typed
        self._implementations[signature.args] = implementation
        self.context.target.insert_func_defn([(implementation, implementation, signature.args)])
        return signature

    def get_impl_key(self, signature: Any) -> Any:
        return self._implementations[signature.args]


class _TargetContext(cpu.CPUContext):  # type: ignore[misc]
    """Lowering of plain numbers and pointers only; no reference counts, no third-party extensions."""

    def load_additional_registries(self) -> None:
        """Does nothing: importing this module registers what kernels need."""

    def post_lowering(self, module: Any, library: Any) -> None:
        allow_contraction(module)


class _Library:
    """The part of a code library that Numba's lowering needs: gives out an empty module and takes the filled one."""

    def __init__(self) -> None:
        self.module: Any = None

    def create_ir_module(self, name: str) -> Any:
        return new_module()

    def add_ir_module(self, module: Any) -> None:
        self.module = module

    def add_linking_library(self, library: Any) -> None:
        raise errors.LoweringError("a kernel may only use what lowers in place (intrinsics), not compiled functions")


def _body_name(name: str, arguments: Any, **_: Any) -> str:
    """The symbol of the Numba function. It is internal to its object, so all kernels can have the same one."""
    return "body"


class _Lower(lowering.Lower):  # type: ignore[misc]
    """Numba's lowering, without the parts for functions that Python calls."""

    def emit_environment_object(self) -> None:
        """Does nothing: a kernel has no Python objects."""


class NumbaCompiler:
    """The contexts, made once for a process, and Numba's whole front end."""

    def __init__(self) -> None:
        self.flags = Flags()
        self.flags.no_compile = True
        self.flags.nrt = False
        self.flags.boundscheck = False
        self.flags.no_cpython_wrapper = True
        self.flags.no_cfunc_wrapper = True
        self.flags.error_model = "numpy"
        self.flags.fastmath = _FASTMATH
        self.typing = _TypingContext()
        self._base = _TargetContext(self.typing, "cpu")
        self.target = self._base.subtarget(
            fastmath=_FASTMATH, error_model=callconv.create_error_model("numpy", self._base), enable_nrt=False
        )
        self.typing.target = self.target
        self.target.refresh()

    def lower(self, function: Any, arguments: list[Any], result: Any) -> Any:
        """Lower `function` to the LLVM function `body` of a new module, with Numba's calling convention.

        This is `int32 body(result *, exception **, arguments...)`. `result` is a type; `types.none` means no result.
        """
        identity = bytecode.FunctionIdentity.from_function(function)
        identity.unique_id, identity.unique_name = 0, "body"  # Numba counts up; equal kernels must give equal objects
        ir = interpreter.Interpreter(identity).interpret(bytecode.ByteCode(identity))
        if ir.arg_count != len(arguments):
            raise TypeError(f"the function takes {ir.arg_count} arguments, {len(arguments)} parameters are given")
        fixer = errors.WarningsFixer(errors.NumbaWarning)  # type: ignore[attr-defined]
        inference = typeinfer.TypeInferer(self.typing, ir, fixer)
        with self.typing.callstack.register(self.target.target, inference, identity, arguments):
            for index, (name, type_) in enumerate(zip(ir.arg_names, arguments)):
                inference.seed_argument(name, index, type_)
            if result is not types.none:
                inference.seed_return(result)
            inference.build_constraint()
            inference.propagate()
            typemap, returned, calltypes = inference.unify()
        if returned != result:
            raise TypeError(f"the function returns {returned}, not {result}")
        postproc.PostProcessor(ir).run(emit_dels=True)
        with ConfigStack().enter(self.flags):
            descriptor = funcdesc.PythonFunctionDescriptor.from_specialized_function(
                ir, typemap, returned, calltypes, mangler=_body_name, inline=False, noalias=False, abi_tags=()
            )
            library = _Library()
            with self.target.push_code_library(library):
                _Lower(self.target, library, descriptor, ir, metadata={}).lower()
        return library.module.get_global(descriptor.llvm_func_name)


@functools.cache
def numba_compiler() -> NumbaCompiler:
    """This process's compiler. RuntimeError when this version of Numba does not have the expected internals."""
    try:
        with compiler_lock:
            return NumbaCompiler()
    except (AttributeError, ImportError, TypeError) as error:
        missing = f"; it has no {', '.join(names)}" if (names := missing_names()) else ""
        raise RuntimeError(
            f"hloom drives Numba's type inference and lowering directly, and Numba {numba.__version__} does not "
            f"have them in the form expected ({error}{missing}); install a version that hloom has been tested with"
        ) from error


# For intrinsics, whose code gets a target context.


def no_value(context: Any) -> Any:
    """The result of an intrinsic without result."""
    return context.get_dummy_value()


def array_data(context: Any, builder: Any, type_: Any, array: Any) -> Any:
    """The pointer to the elements of an array."""
    return context.make_array(type_)(context, builder, array).data
