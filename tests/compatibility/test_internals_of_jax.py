# ruff: noqa: E501  # a case on one line
"""`jax._src` in JAX programs: functions of JAX's inside that libraries call, each with its result in JAX.

The expected texts are JAX's; where JAX is installed, it prints them itself.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys

import pytest

CASES = r"""
api_util: infer_argnums_and_argnames(inspect.signature(lambda a, b, *, c: 0), None, ("b", "c")) -> ((1,), ('b', 'c'))
api_util: infer_argnums_and_argnames(inspect.signature(lambda a, b: 0), 1, None) -> ((1,), ('b',))
api_util: _ensure_index(2), _ensure_index([1, 2]), _ensure_index_tuple(3), _ensure_str_tuple("a") -> (2, (1, 2), (3,), ('a',))
core: canonicalize_shape(3), canonicalize_shape([2, np.int64(3)]), is_constant_shape((1, 2)) -> ((3,), (2, 3), True)
core: canonicalize_shape((1.5,)) -> TypeError
core: divide_shape_sizes((4, 3), (6,)), dilate_dim(3, 2), stride_dim(5, 2, 2), is_empty_shape((2, 0)) -> (2, 5, 2, True)
core: divide_shape_sizes((4,), (3,)) -> InconclusiveDimensionOperation
core: is_concrete(3), definitely_equal(2, 3), typecompat(jax.typeof(np.ones(2)), jax.typeof(jnp.ones(2))) -> (True, False, True)
core: trace_state_clean(), jax.eval_shape(lambda x: x if trace_state_clean() else (x, x), 1.0)[0].shape -> (True, ())
core: physical_aval(jax.typeof(jax.random.key(0))), physical_aval(jax.typeof(jnp.ones(2))) -> (ShapedArray(uint32[2]), ShapedArray(float32[2]))
distributed: global_state.client, global_state.process_id, global_state.num_processes, is_initialized() -> (None, 0, 1, False)
dtypes: supports_inf(jnp.bfloat16), supports_inf("float8_e4m3fn"), supports_inf(int) -> (True, False, False)
dtypes: lattice_result_type(1, 2.0), safe_to_cast("int32", "float32"), safe_to_cast("float32", "int32") -> ((dtype('float32'), True), True, False)
dtypes: to_inexact_dtype("int32"), to_numeric_dtype(bool), to_complex_dtype("float64"), to_floating_dtype("complex64") -> (dtype('float32'), dtype('int32'), dtype('complex128'), dtype('float32'))
dtypes: default_float_dtype(), default_int_dtype(), is_weakly_typed(2.0), is_weakly_typed(jnp.ones(2)) -> (dtype('float32'), dtype('int32'), True, False)
lax.lax: _eq_meet(jnp.ones(2), jnp.ones(2, jnp.float16)), _zero(jnp.ones(3)), _ones(jnp.zeros(2)) -> (Array([ True,  True], dtype=bool), Array(0., dtype=float32), Array([1., 1.], dtype=float32))
lax.lax: _convert_element_type(3, np.dtype("float32"), True), _isnan(jnp.array([jnp.nan, 1])) -> (Array(3., dtype=float32, weak_type=True), Array([ True, False], dtype=bool))
lax.lax: list(ranges_like([1, 2], "abc")), remaining([1, 2, 3], [2], [3]) -> ([range(0, 2), range(2, 5)], [1])
lib: version == tuple(map(int, version_str.split('.'))), version_str == jax.__version__ -> (True, True)
literals: isinstance(np.ones(2), TypedNdArray), issubclass(TypedNdArray, np.ndarray) -> (False, True)
mesh: empty_abstract_mesh.empty, empty_concrete_mesh.empty, thread_resources.env.physical_mesh.empty -> (True, True, True)
nn.initializers: _compute_fans((3, 4, 5)) -> (12.0, 15.0)
numpy.linalg: _H(jnp.array([[1j, 2]])) -> Array([[0.-1.j],\n       [2.-0.j]], dtype=complex64)
numpy.reductions: _reduction_dims(jnp.ones((2, 3)), -1), _reduction_dims(jnp.ones((2, 3)), None) -> (((1,), (1,)), ((0, 1), (0, 1)))
numpy.reductions: _reduction_dims(jnp.ones((2, 3)), (0, -2)) -> ValueError
numpy.util: promote_args("f", 1, np.arange(3)) -> [Array(1, dtype=int32), Array([0, 1, 2], dtype=int32)]
numpy.util: promote_args_inexact("f", jnp.ones((1, 2)), jnp.arange(2), 2) -> [Array([[1., 1.]], dtype=float32), Array([[0., 1.]], dtype=float32), Array([[2.]], dtype=float32)]
numpy.util: promote_args("f", [1, 2], 3) -> TypeError
numpy.util: promote_dtypes_complex(1.0, jnp.float32(3)), promote_dtypes_numeric(True) -> ([Array(1.+0.j, dtype=complex64), Array(3.+0.j, dtype=complex64)], [Array(1, dtype=int32)])
numpy.util: promote_dtypes(1), ensure_arraylike("f", 1.5).dtype, ensure_arraylike("f", 1, True)[1].dtype -> ([Array(1, dtype=int32, weak_type=True)], dtype('float32'), dtype('bool'))
numpy.util: check_arraylike("f", 1, [2]) -> TypeError
pjit: repr(jax.jit(len)), type(jax.jit(len)).__name__ -> ('<PjitFunction of <built-in function len>>', 'PjitFunction')
sharding_impls: canonicalize_sharding(None, "f") -> None
sharding_impls: canonicalize_sharding(3, "f") -> TypeError
sharding_impls: canonicalize_sharding(jax.P("x"), "f") -> ValueError
tree_util: broadcast_prefix((1, 2), (3, [4, 5])), len(_registry) > 5 -> ([1, 2, 2], True)
typing: isinstance(np.ones(2), SupportsDType), isinstance(3, SupportsDType), repr(DeprecatedArg()) -> (True, False, 'Deprecated')
util: curry(lambda x, y: x + y)(2)(3), safe_map(pow, [2, 3], (2, 1)), ceil_of_ratio(7, 2), wrap_name("jvp", "f") -> (5, [4, 3], 4, 'jvp(f)')
util: subvals((1, 2, 3), [(1, 5)]), tuple_insert((1, 2), 1, 5), tuple_delete((1, 2), 0), tuple_update((1, 2), 0, 5) -> ((1, 5, 3), (1, 5, 2), (2,), (5, 2))
util: subs_list([0, None], [7], [8]), concatenate([[1], [2, 3]]), unflatten([1, 2, 3], [1, 2]), split_list([1, 2, 3], [1]) -> ([7, 8], [1, 2, 3], [[1], [2, 3]], [[1], [2, 3]])
util: list(stable_unique("abac")), canonicalize_axis(-1, 3), canonicalize_axis_tuple((0, -1), 3) -> (['a', 'b', 'c'], 2, (0, 2))
util: canonicalize_axis(3, 3) -> ValueError
util: moveaxis(jnp.ones((2, 3, 4)), 0, -1).shape, moveaxis(jnp.ones((2, 3, 4)), (0, 1), (2, 0)).shape -> ((3, 4, 2), (3, 4, 2))
util: HashablePartial(len, "ab")(), fun_name(functools.partial(len)), fun_qual_name(dict.get) -> (2, 'len', 'dict.get')
util: HashableWrapper([1]) == HashableWrapper([1]), HashableWrapper(1) == HashableWrapper(1), len(OrderedSet()) -> (False, True, 0)
util: cache()(lambda x: [x])(2), memoize(lambda x: [x])(3), set_module("m")(wraps(len)(lambda x: x)).__module__ -> ([2], [3], 'm')
xla_bridge: is_known_platform("cpu"), canonicalize_platform("cpu"), backends_are_initialized() -> (True, 'cpu', True)
callback: jax.make_jaxpr(lambda x: jax.pure_callback(np.sin, x, x))(1.0).eqns[0].primitive is pure_callback_p -> True
"""
ROWS = [re.fullmatch(r"([\w.]+): (.*) -> (.*)", line) for line in CASES.strip().splitlines()]
PROGRAM = f"""\
import functools, importlib, inspect, warnings
import numpy as np
import jax, jax.numpy as jnp
warnings.simplefilter("ignore")
jax.devices()
for module, expression in {[(row[1], row[2]) for row in ROWS if row]!r}:
    home = importlib.import_module("jax._src." + module)
    names = {{"np": np, "jax": jax, "jnp": jnp, "inspect": inspect, "functools": functools}}
    code = compile(expression, module, "eval")
    names.update({{name: getattr(home, name) for name in code.co_names if name not in names and hasattr(home, name)}})
    for each in code.co_consts:  # of lambdas
        for name in getattr(each, "co_names", ()):
            if name not in names and hasattr(home, name):
                names[name] = getattr(home, name)
    try:
        print(repr(repr(eval(code, names))))
    except Exception as error:
        print(repr(type(error).__name__))
"""


@pytest.mark.parametrize("way", ["hloom", "jax"])
def test_functions_of_internal_modules(way: str) -> None:
    if way == "jax" and importlib.util.find_spec("jax") is None:
        pytest.skip("JAX is not installed")
    command = [sys.executable, *(["-m", "hloom", "jax"] if way == "hloom" else []), "-c", PROGRAM]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=240)
    printed = [str(eval(line)) for line in ran.stdout.splitlines()]
    expected = [row[3].replace("\\n", "\n") for row in ROWS if row]
    assert dict(zip([row[0] for row in ROWS if row], printed)) == dict(zip([row[0] for row in ROWS if row], expected))
    assert len(printed) == len(expected), ran.stderr


EVERY_NAME = """
from hloom.jax_programs import sources
for module in sources.modules():
    for name in sources.names(module):
        if isinstance(sources.find(module, name), sources.Unknown):
            print(module, name)
"""


@pytest.mark.slow
def test_each_recorded_name_is_there() -> None:
    command = [sys.executable, "-m", "hloom", "jax", "-c", EVERY_NAME]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr
