"""Calls that the loop vectoriser may widen: the slow path for rare arguments, behind one test per vector.

`slow_path_call` gives a kernel a separate function, in a scalar version and one for each vector width, and tells LLVM
that they belong together (the ``vector-function-abi-variant`` attribute). The vectoriser then calls the vector version,
which tests all lanes at once and returns immediately when none is rare:

    define internal <4 x double> @"hloom.quarters.v4"(<4 x double> %x)   ; the definition for each width
        if none of condition(x): return x
        for each lane: result[lane] = @"hloom.quarters"(x[lane])         ; may branch, loop and load

The cost for a kernel: for the usual arguments, a call and a compare per vector; in compile time, one scalar body and
four small loops.

`shortcut_call` is for a value that is often known without a computation: code that remains scalar then tests, and
does not wait, since the processor guesses the branch; vectors are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from .value import Boolean, Float, call_intrinsic

_I64 = ir.IntType(64)

INLINED_LATE = "hloom-inlined-late"
"""An attribute of functions that are calls for the vectoriser, and are inlined after it."""


def widths_of(module: Any) -> tuple[int, int]:
    """The widths that LLVM picks for loops over f32 and f64 in a module: with 256-bit registers on x86-64 (also with
    AVX-512, where it prefers them), with 128-bit registers on other processors. For another width the vectoriser
    handles the lanes one by one, or uses one of these widths."""
    return (4, 8) if module.triple.startswith("x86_64") else (2, 4)


def slow_path_call(is_rare: Callable[..., Boolean], compute: Callable[..., Float], *arguments: Float) -> Float:
    """compute(*arguments) where is_rare(*arguments) is true, and the first argument where it is not. `is_rare` must be
    straight-line code (it is also applied to vectors); `compute` may emit any code with its builder, but must be a pure
    function of its arguments."""
    builder = arguments[0].builder
    module = builder.module
    name = _name(compute, arguments[0])
    scalar = module.globals.get(name)
    if scalar is None:
        scalar = _scalar_version(module, name, is_rare, compute, arguments)
        variants = [_vector_version(scalar, width, is_rare) for width in widths_of(module)]
        keep(module, variants)
    call = builder.call(scalar, [argument.raw for argument in arguments])
    # On the call, not on the function: the vector versions call it too, and must not become calls of themselves.
    add_attribute(call, variants_of(name, len(arguments), widths_of(module)))
    return Float(builder, call)


def shortcut_call(is_known: Callable[..., Boolean], compute: Callable[..., Float], *arguments: Float) -> Float:
    """compute(*arguments), which is the first argument where is_known(*arguments) is true; there, code that remains
    scalar takes it after a branch. Both functions must be straight-line code (they are also applied to vectors)."""
    builder = arguments[0].builder
    module = builder.module
    name = _name(compute, arguments[0])
    scalar = module.globals.get(name)
    if scalar is None:
        scalar, type_ = _late_function(module, name, len(arguments), arguments[0].raw.type)
        within = ir.IRBuilder(scalar.append_basic_block("entry"))
        known, computed = scalar.append_basic_block("known"), scalar.append_basic_block("computed")
        branch = within.cbranch(is_known(*(Float(within, argument) for argument in scalar.args)).raw, known, computed)
        branch.set_weights([1000, 1])  # LLVM would compute both and select
        within.position_at_end(known)
        within.ret(scalar.args[0])
        within.position_at_end(computed)
        within.ret(compute(*(Float(within, argument) for argument in scalar.args)).raw)
        variants = []
        for width in widths_of(module):
            function, _ = _late_function(module, f"{name}.v{width}", len(arguments), ir.VectorType(type_, width))
            within = ir.IRBuilder(function.append_basic_block("entry"))
            within.ret(compute(*(Float(within, argument) for argument in function.args)).raw)
            variants.append(function)
        keep(module, variants)
    call = builder.call(scalar, [argument.raw for argument in arguments])
    add_attribute(call, variants_of(name, len(arguments), widths_of(module)))
    return Float(builder, call)


def _name(compute: Callable[..., Float], argument: Float) -> str:
    """The function's name in a module. Each `compute` is a function of a file, with one test for each format."""
    place = compute.__module__.rpartition(".")[2]
    return f"hloom.{place}.{compute.__name__}.{argument.format.name}"


def _late_function(module: Any, name: str, parameters: int, type_: Any) -> tuple[Any, Any]:
    function = pure_function(module, name, [type_] * parameters, type_)
    add_attribute(function, f'"{INLINED_LATE}"')
    return function, type_


def variants_of(name: str, parameters: int, widths: Sequence[int]) -> str:
    """The attribute of a call that names the vector versions of a function, which end in ``.v4`` for width 4."""
    kinds = "v" * parameters
    mappings = ",".join(f"_ZGV_LLVM_N{width}{kinds}_{name}({name}.v{width})" for width in widths)
    return f'"vector-function-abi-variant"="{mappings}"'


def pure_function(module: Any, name: str, types: Sequence[Any], returned: Any) -> Any:
    """A function of the module that depends on its arguments alone, and is called as it is."""
    function = ir.Function(module, ir.FunctionType(returned, types), name)
    function.linkage = "internal"
    for attribute in ("noinline", "nounwind", "memory(none)", "willreturn"):
        add_attribute(function, attribute)
    return function


def add_attribute(function_or_call: Any, text: str) -> None:
    """Add an attribute that llvmlite may not know."""
    # llvmlite checks names against a list that is older than these attributes; the set itself accepts and prints them.
    set.add(function_or_call.attributes, text)


def _scalar_version(
    module: Any, name: str, is_rare: Callable[..., Boolean], compute: Callable[..., Float], like: tuple[Float, ...]
) -> Any:
    """A test, and a call for rare arguments. `llvm_backend.for_code_generator` writes it into code that has remained
    scalar, where a chain of operations would wait for the call and for all registers that it may change."""
    type_ = like[0].raw.type
    function = pure_function(module, name, [type_] * len(like), type_)
    add_attribute(function, f'"{INLINED_LATE}"')
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    rare_block, usual_block = function.append_basic_block("rare"), function.append_basic_block("usual")
    arguments = [Float(builder, argument) for argument in function.args]
    builder.cbranch(is_rare(*arguments).raw, rare_block, usual_block)
    builder.position_at_end(usual_block)
    builder.ret(function.args[0])
    builder.position_at_end(rare_block)
    builder.ret(builder.call(_rare_version(module, name, compute, like), function.args))
    return function


def _rare_version(module: Any, name: str, compute: Callable[..., Float], like: tuple[Float, ...]) -> Any:
    type_ = like[0].raw.type
    function = pure_function(module, f"{name}.rare", [type_] * len(like), type_)
    # Rarely run, so LLVM should not spend a quarter of the kernel's compile time on it.
    add_attribute(function, "optnone")
    add_attribute(function, "cold")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    builder.ret(compute(*(Float(builder, argument) for argument in function.args)).raw)
    return function


def _vector_version(scalar: Any, width: int, is_rare: Callable[..., Boolean]) -> Any:
    element = scalar.function_type.return_type
    vector = ir.VectorType(element, width)
    function = pure_function(scalar.module, f"{scalar.name}.v{width}", [vector] * len(scalar.args), vector)
    entry, loop, done = (function.append_basic_block(name) for name in ("entry", "lane", "done"))
    builder = ir.IRBuilder(entry)
    rare = is_rare(*(Float(builder, argument) for argument in function.args))
    any_rare = call_intrinsic(builder, f"llvm.vector.reduce.or.v{width}i1", ir.IntType(1), rare.raw)
    builder.cbranch(any_rare, loop, done)

    builder.position_at_end(loop)
    lane = builder.phi(_I64)
    so_far = builder.phi(vector)
    lane.add_incoming(ir.Constant(_I64, 0), entry)
    so_far.add_incoming(function.args[0], entry)
    value = builder.call(scalar, [builder.extract_element(argument, lane) for argument in function.args])
    updated = builder.insert_element(so_far, value, lane)
    following = builder.add(lane, ir.Constant(_I64, 1))
    lane.add_incoming(following, loop)
    so_far.add_incoming(updated, loop)
    builder.cbranch(builder.icmp_unsigned("<", following, ir.Constant(_I64, width)), loop, done)

    builder.position_at_end(done)
    result = builder.phi(vector)
    result.add_incoming(function.args[0], entry)
    result.add_incoming(updated, loop)
    builder.ret(result)
    return function


def keep(module: Any, functions: list[Any]) -> None:
    """Nothing calls the vector versions until the vectoriser does; this list keeps LLVM from dropping them before."""
    pointer = ir.IntType(8).as_pointer()
    used = module.globals.get("llvm.compiler.used")
    if used is None:
        used = ir.GlobalVariable(module, ir.ArrayType(pointer, 0), "llvm.compiler.used")
        used.linkage = "appending"
        used.section = "llvm.metadata"
        used.initializer = ir.Constant(used.value_type, [])
    entries = [*used.initializer.constant, *(function.bitcast(pointer) for function in functions)]
    used.value_type = ir.ArrayType(pointer, len(entries))
    used.type = used.value_type.as_pointer()
    used.initializer = ir.Constant(used.value_type, entries)
