"""Arrays and programs on eight devices: JAX's answers to the cases of `support/sharded_cases.py`, and what is ours.

The devices are in a process of their own, since their number is settled once in a process.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.sharded_cases import ANSWERS, CASES

WANTED: dict[str, Any] = json.loads(gzip.decompress(ANSWERS.read_bytes()))


def ran(root: Path, *command: str, given: str = "", **variables: str) -> str:
    """The output of a Python process, with variables in its environment and text to read."""
    environment = {**os.environ, "PYTHONPATH": str(root), **variables}
    found = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, timeout=300, env=environment, cwd=root, input=given
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.fixture(scope="module")
def found(root: Path) -> dict[str, Any]:
    answers: dict[str, Any] = json.loads(ran(root, str(root / "tests/support/sharded_cases.py"), "hloom"))
    return answers


def same(wanted: Any, found: Any) -> bool:
    if isinstance(wanted, list) and isinstance(found, list):
        return len(wanted) == len(found) and all(map(same, wanted, found))
    if isinstance(wanted, dict) and isinstance(found, dict):
        return wanted.keys() == found.keys() and all(same(v, found[k]) for k, v in wanted.items())
    if isinstance(wanted, float) and isinstance(found, int | float):
        return found == pytest.approx(wanted, rel=1e-4, abs=1e-5, nan_ok=True)
    return bool(wanted == found)


@pytest.mark.parametrize("case", CASES)
def test_as_jax_answers(found: dict[str, Any], case: str) -> None:
    wanted, ours = WANTED[case], found[case]
    assert not str(wanted).startswith("raised"), "JAX cannot do this case"
    assert same(wanted, ours), f"{ours}\n  JAX: {wanted}"


BAD = "FloatingPointError: invalid value"
OWN = {
    # how many devices there are
    "HLOOM_NUM_DEVICES=3: print(hloom.device_count())": "3",
    "JAX_NUM_CPU_DEVICES=2: print(hloom.devices())": "[CpuDevice(id=0), CpuDevice(id=1)]",
    "HLOOM_NUM_DEVICES=1: hloom.config.update('jax_num_cpu_devices', 4); print(hloom.local_device_count())": "4",
    "HLOOM_NUM_DEVICES=2: hloom.devices(); print(error(lambda: hloom.config.update('jax_num_cpu_devices', 4)))": (
        "RuntimeError: jax_num_cpu_devices config should be updated before backends are initialized i.e. before any "
        "device is asked for."
    ),
    "HLOOM_NUM_DEVICES=2: print(error(lambda: hloom.config.update('jax_default_device', hloom.devices()[1]))[:90])": (
        "UnsupportedError: jax_default_device: arrays are made on CpuDevice(id=0); hloom.device_put"
    ),
    # groups of places along an axis, where JAX has none
    "HLOOM_NUM_DEVICES=2: f = hloom.shard_map(lambda v: hloom.lax.psum(v, 'd', axis_index_groups=[[1], [0]]), "
    "mesh=mesh, in_specs=P('d'), out_specs=P('d')); print(f(x), hloom.grad(lambda v: (f(v) * v).sum())(x))": (
        "[0. 1. 2. 3.] [0. 2. 4. 6.]"
    ),
    "HLOOM_NUM_DEVICES=2: print(error(lambda: hloom.shard_map(lambda v: hloom.lax.psum(v, 'd', "
    "axis_index_groups=[[0]]), mesh=mesh, in_specs=P('d'), out_specs=P('d'))(x)).splitlines()[0])": (
        "ValueError: axis_index_groups must cover all indices exactly once: d has 2 places, the groups are [[0]]"
    ),
    "HLOOM_NUM_DEVICES=2: print(error(lambda: hloom.shard_map(lambda v: hloom.lax.psum(v, 'd', "
    "axis_index_groups=[[0, 1], []]), mesh=mesh, in_specs=P('d'), out_specs=P('d'))(x)).splitlines()[0])": (
        "ValueError: axis_index_groups must all be of the same size, got [[0, 1], []]"
    ),
    "HLOOM_NUM_DEVICES=4: g = [[3, 0, 2], [1]]; f = hloom.shard_map(lambda v: (hloom.lax.psum(v, 'd', "
    "axis_index_groups=g), hloom.lax.pmean(v, 'd', axis_index_groups=g), v * hloom.lax.psum(2, 'd', "
    "axis_index_groups=g)), mesh=mesh, in_specs=P('d'), out_specs=P('d')); print(*f(x)); "
    "print(hloom.grad(lambda v: (f(v)[0] * v).sum())(x))": (
        "[5. 1. 5. 5.] [1.6666666 1.        1.6666666 1.6666666] [ 0.  2. 12. 18.]\n[10.  2. 10. 10.]"
    ),
    "HLOOM_NUM_DEVICES=4: f = hloom.shard_map(lambda v: hloom.lax.ragged_all_to_all(v, jnp.zeros(2), "
    "*(jnp.array(a) for a in ([0, 0], [1, 1])), jnp.full(2, jnp.array([0, 0, 1, 1])[hloom.lax.axis_index('d')]), "
    "jnp.ones(2, int), axis_name='d', axis_index_groups=[[0, 3], [1, 2]]), mesh=mesh, in_specs=P('d'), "
    "out_specs=P('d')); print(f(x))": "[0. 3. 1. 2. 1. 2. 0. 3.]",
    # references among the arguments: each device has its part
    "HLOOM_NUM_DEVICES=2: r, t = hloom.new_ref(x), hloom.new_ref(0.0); f = lambda r, t: (r.__setitem__(0, 9.0), "
    "t.__setitem__((), hloom.lax.psum(r[...].sum(), 'd')))[0]; g = (lambda g: g)(hloom.shard_map(f, mesh=mesh, "
    "in_specs=(P('d'), P()), out_specs=None)); print(g(r, t), r[...], t[...], r.sharding.spec)": (
        "None [9. 1. 9. 3.] 22.0 P('d',)"
    ),
    "HLOOM_NUM_DEVICES=2: r, t = hloom.new_ref(x), hloom.new_ref(0.0); f = lambda r, t: (r.__setitem__(0, 9.0), "
    "t.__setitem__((), hloom.lax.psum(r[...].sum(), 'd')))[0]; g = (hloom.jit)(hloom.shard_map(f, mesh=mesh, "
    "in_specs=(P('d'), P()), out_specs=None)); print(g(r, t), r[...], t[...], r.sharding.spec)": (
        "None [9. 1. 9. 3.] 22.0 P('d',)"
    ),
    # donated arrays share no memory with others
    "HLOOM_NUM_DEVICES=2: y = put(x, 'd'); hloom.jit(lambda v: v * 2, donate_argnums=0)(y); print(y.is_deleted(), x)": (
        "True [0. 1. 2. 3.]"
    ),
    # parts that devices of one process share are one piece of memory
    "HLOOM_NUM_DEVICES=2: y = put(x); print(len({s.data.unsafe_buffer_pointer() for s in y.addressable_shards}))": "1",
    "HLOOM_NUM_DEVICES=2: import copy, pickle; y = put(x, 'd'); print(copy.deepcopy(y).sharding.spec, "
    "pickle.loads(pickle.dumps(y)), pickle.loads(pickle.dumps(hloom.devices()[1])))": (
        "P('d',) [0. 1. 2. 3.] cpu:1"
    ),
    # all arrays are of one class
    "HLOOM_NUM_DEVICES=2: import copy, pickle; y = put(x, 'd'); few = [y, y + 1, hloom.jit(jnp.sin)(y), y[0], "
    "y.addressable_data(1), hloom.device_put(x, hloom.devices()[1]), hloom.pmap(jnp.sin)(x[:2]), copy.copy(y), "
    "pickle.loads(pickle.dumps(y))]; print({*map(type, few)} == {type(x)}, sum(v.committed for v in few))": "True 8",
    # a jitted function has a program for each place, whichever way it is called
    **{
        f"HLOOM_NUM_DEVICES=2: f = hloom.jit(lambda *v: sum(v)); y = put(x, 'd'); d = hloom.devices()\n"
        f"z = hloom.device_put(x, d[1])\nfor v in [{given}] * 2:\n    w = f(*v)\n"
        "    print(*[k for k in (0, 1) if d[k] in w.devices()], w.committed)": (
            "\n".join([answer] * 2)
        )
        for given, answer in (
            ("(x,), (y,), (z,)", "0 False\n0 1 True\n1 True"),
            ("(x, x), (x, y), (x, z), (y, y)", "0 False\n0 1 True\n1 True\n0 1 True"),
            ("(x, x, x), (x, x, y), (x, z, x)", "0 False\n0 1 True\n1 True"),
        )
    },
    # a function that knows some axes of the mesh: where JAX crashes or has none
    "HLOOM_NUM_DEVICES=2: f = hloom.shard_map(lambda v: hloom.lax.psum(v.astype(jnp.bfloat16), 'd'), mesh=mesh2, "
    "in_specs=P('d'), out_specs=P(), axis_names={'d'}); print(f(x).astype(jnp.float32))": "[0. 1. 2. 3.]",
    "HLOOM_NUM_DEVICES=4: f = hloom.shard_map(lambda n, v: hloom.lax.psum(v, 'd') * n, mesh=square, "
    "in_specs=(None, P('d')), out_specs=P(), axis_names={'d'}); print(f(3, x))": "[ 6. 12.]",
    "HLOOM_NUM_DEVICES=4: g = hloom.grad(lambda v: hloom.shard_map(lambda v: hloom.lax.psum(v ** 3, 'd').sum(), "
    "mesh=square, in_specs=P('d'), out_specs=P(), axis_names={'d'}, check_vma=False)(v)); print(g(x))": (
        "[ 0.  3. 12. 27.]"
    ),
    "HLOOM_NUM_DEVICES=4: g = hloom.grad(lambda v: hloom.shard_map(lambda v: hloom.lax.psum(hloom.shard_map(lambda u: "
    "hloom.lax.psum((u ** 3).sum(), 'd'), in_specs=P(None, 'd'), out_specs=P())(v), 'e'), mesh=square, "
    "in_specs=P('e'), out_specs=P(), axis_names={'e'})(v)); print(g(x.reshape(2, 2)).ravel())": "[ 0.  3. 12. 27.]",
    "HLOOM_NUM_DEVICES=4: f = hloom.shard_map(lambda v: v + 1, mesh=square, in_specs=P('d'), out_specs=P('d'), "
    "axis_names={'d'})\nwith hloom.disable_jit():\n    print(error(lambda: f(x)).split(':')[0])": "UnsupportedError",
    # functions of the host in one: once for each part, by the first device along the other axes
    **{
        "HLOOM_NUM_DEVICES=4: seen = []; note = lambda *v: (seen.append([u.shape for u in v]), v and v[0] * 2)[1]; "
        f"f = hloom.shard_map(lambda v: {body}, mesh=square, in_specs=P('d'), out_specs=P('d'), axis_names={{'d'}}); "
        f"y = {call}; print(y, seen)": answer
        for body, call, answer in (
            ("hloom.pure_callback(note, v, v)", "f(x)", "[0. 2. 4. 6.] [[(2,)], [(2,)]]"),
            ("hloom.experimental.io_callback(note, v, v)", "hloom.jit(f)(x)", "[0. 2. 4. 6.] [[(2,)], [(2,)]]"),
            ("(hloom.debug.callback(note), v)[1]", "f(x)", "[0. 1. 2. 3.] [[], []]"),
            ("(hloom.debug.callback(note, x), v)[1]", "hloom.jit(f)(x)", "[0. 1. 2. 3.] [[(4,)], [(4,)]]"),
        )
    },
    "HLOOM_NUM_DEVICES=4: f = hloom.shard_map(lambda v: hloom.shard_map(lambda u: u, in_specs=P('d'), "
    "out_specs=P('d'), axis_names={'d'})(v), mesh=square, in_specs=P('d'), out_specs=P('d'), axis_names={'d'}); "
    "print(error(lambda: f(x)).split(': ')[0])": "ValueError",
    "HLOOM_NUM_DEVICES=4: f = hloom.shard_map(lambda v: jnp.sin(v) @ v.T, mesh=square, in_specs=P('d'), "
    "out_specs=P('d'), axis_names={'d'}); y = hloom.device_put(jnp.ones((4, 4)), NamedSharding(square, P('d', 'e'))); "
    "print([w in hloom.jit(f).lower(y).compile().as_text() for w in ('all-reduce', 'all-gather')])": "[True, False]",
    "HLOOM_NUM_DEVICES=2: print(error(lambda: hloom.pmap(lambda v: v)(x)).split(',')[0])": (
        "ValueError: compiling computation that requires 4 logical devices"
    ),
    "HLOOM_NUM_DEVICES=2: hloom.debug.visualize_array_sharding(put(x, 'd'), max_width=30)": (
        "┌──────────────┬──────────────┐\n│    CPU 0     │    CPU 1     │\n└──────────────┴──────────────┘"
    ),
    "HLOOM_NUM_DEVICES=4: f = lambda v: jnp.sin(v); y = hloom.pmap(f)(x)\nwith hloom.no_tracing(True):\n"
    "    print((hloom.pmap(f)(x) == y).all())": "True",
    # functions get their specs from arguments; what is ambiguous is refused
    **{
        "HLOOM_NUM_DEVICES=4: with hloom.set_mesh(hloom.make_mesh((4,), ('d',))):\n"
        "    a = hloom.device_put(jnp.ones((4, 4)), "
        f"P('d')); total = hloom.shard_map(lambda v: hloom.lax.psum(v.sum(), 'd'), out_specs=P()); {program}": answer
        for program, answer in (
            ("print(error(lambda: hloom.jit(lambda a: total(a.T @ a))(a))[:70])",
             "ShardingTypeError: Contracting dimensions are sharded and it is ambigu"),
            ("print(hloom.jit(lambda a: total(jnp.matmul(a.T, a, out_sharding=P('d'))))(a))", "64.0"),
            ("print(hloom.jit(lambda a: total(jnp.sort(a, 1)))(a))", "16.0"),
            ("print(error(lambda: hloom.jit(lambda a: total(jnp.sort(a, 0)))(a)).split(':')[0])", "ShardingTypeError"),
            ("f = hloom.jit(total); print([float(f(hloom.device_put(a, s))) for s in (P('d'), P(), P(None, 'd'))])",
             "[16.0, 64.0, 16.0]"),
            ("print(error(lambda: hloom.jit(lambda a: hloom.typeof(a.T @ a).sharding)(a)).split(':')[0])",
             "ShardingTypeError"),
            ("print(hloom.typeof(a), hloom.typeof(a).sharding.spec, hloom.typeof(a) is hloom.typeof(a * 2))",
             "float32[4@d,4] P('d', None) True"),
        )
    },
    # what a function is traced to depends on the current mesh
    "HLOOM_NUM_DEVICES=4: f = hloom.jit(lambda v: hloom.shard_map(lambda v: hloom.lax.psum(1, 'd') * v, "
    "in_specs=P('d'), out_specs=P('d'))(v))\nfor n in (1, 2, 4, 2):\n    with hloom.set_mesh(hloom.make_mesh((n,), "
    "('d',), axis_types=(AxisType.Auto,))):\n        print(f(x)[1], end=' ')": "1.0 2.0 4.0 2.0",
    # NaN as an error: on one device alone, from an argument, in a loop, made by a collective, in a move (which is none)
    **{
        f"HLOOM_NUM_DEVICES=2: y = {x}; f = {f}\nwith hloom.debug_{kind}s(True):\n"
        "    print(error(lambda: f(y)).split(' <lambda>')[0])": answer
        for kind, x, f, answer in (
            ("nan", "put(x - 2.5, 'd')", "jnp.log", f"{BAD} (nan) encountered in log of (f32[2]) giving f32[2]"),
            ("nan", "put(x - 2.5, 'd')", "hloom.jit(lambda v: hloom.lax.fori_loop(0, 3, lambda k, u: jnp.sqrt(u) - k, "
             "v).sum())", f"{BAD} (nan) encountered in sqrt of (f32[2]) giving f32[2]"),
            ("nan", "put(x * jnp.nan, 'd')", "hloom.jit(lambda v: v * 2)", f"{BAD} (nan) encountered in multiply of "
             "(f32[2], f32[2]) giving f32[2]"),
            ("inf", "put(x + 3e38, 'd')", "hloom.jit(hloom.shard_map(lambda v: hloom.lax.psum(v, 'd'), mesh=made(), "
             "in_specs=P('d'), out_specs=P()))", f"{BAD} (inf) encountered in all-reduce of (f32[2]) giving f32[2]"),
            ("inf", "x * jnp.inf", "hloom.jit(lambda v: put(v, 'd'))", f"{BAD} (inf) encountered in a result of "
             "jit of"),
            ("inf", "x * jnp.inf", "lambda v: put(v, 'd').sharding.spec == P('d') and 1 / 0",
             "ZeroDivisionError: division by zero"),
        )
    },
    # the program of each device
    "HLOOM_NUM_DEVICES=2: f = hloom.shard_map(lambda v: hloom.lax.psum(v, 'd'), mesh=mesh, in_specs=P('d'), "
    "out_specs=P()); t = hloom.jit(f).lower(x).as_text(); print([w in t for w in "
    "('SPMDFullToShardShape', 'all-reduce', 'use_global_device_ids=true', 'replica_groups={{0,1}}')])": (
        "[True, True, True, True]"
    ),
    # ahead of time
    "HLOOM_NUM_DEVICES=2: c = hloom.jit(lambda v: v * 2).lower(put(x, 'd')).compile(); print(c(x).sharding.spec, "
    "c(x), c.input_shardings[0][0].spec, c.output_shardings.spec, 'num_partitions=2' in c.as_text(), "
    "error(lambda: c(put(x))).split()[0])": "P('d',) [0. 2. 4. 6.] P('d',) P('d',) True ValueError:",
    "HLOOM_NUM_DEVICES=2: c = hloom.jit(lambda v: v.sum()).lower(hloom.ShapeDtypeStruct((4,), jnp.float32, "
    "sharding=NamedSharding(mesh, P('d')))).compile(); print(c(x), 'all-reduce' in c.as_text())": "6.0 True",
    "HLOOM_NUM_DEVICES=2 HLOOM_BACKEND=evaluator: print(hloom.jit(lambda v: v.sum())(put(x, 'd')))": "6.0",
    "HLOOM_NUM_DEVICES=2: \nwith hloom.disable_jit():\n    print(hloom.shard_map(lambda v: hloom.lax.psum(v, 'd'), "
    "mesh=mesh, in_specs=P('d'), out_specs=P())(x))": "[2. 4.]",
}
"""Variables of the environment and a program, and what it prints."""

START = """
import hloom, hloom.numpy as jnp, numpy as np
from hloom.sharding import *
P = PartitionSpec
def error(f):
    try:
        f()
    except Exception as found:
        return f"{type(found).__name__}: {str(found).splitlines()[0]}"
def made():
    return hloom.make_mesh((hloom.device_count(),), ("d",), axis_types=(AxisType.Auto,))
def put(x, *spec):
    return hloom.device_put(x, NamedSharding(made(), P(*spec)))
x = jnp.arange(4.0)
"""


EACH = """
import contextlib, io, json, sys
found = []
for program in json.load(sys.stdin):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(program, dict(globals()))
    found.append(out.getvalue().strip())
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def printed(root: Path) -> dict[str, str]:
    """The output of each case; cases with the same variables run in one process."""
    groups: dict[str, list[str]] = {}
    for case in OWN:
        groups.setdefault(case.partition(": ")[0], []).append(case)
    results: dict[str, str] = {}
    for variables, cases in groups.items():
        programs = []
        for case in cases:
            program = case.partition(": ")[2]
            needs = "mesh = made()\n" if "mesh" in program else ""
            for name, shape in (("mesh2", (2, 1)), ("square", (2, 2))):
                made = f"{name} = Mesh(np.array(hloom.devices()).reshape{shape}, ('e', 'd'))\n"
                needs += made if name in program else ""
            programs.append(START + needs + program)
        settings = dict(v.split("=") for v in variables.split())
        outputs = json.loads(ran(root, "-c", EACH, given=json.dumps(programs), **settings))
        results.update(zip(cases, outputs, strict=True))
    return results


@pytest.mark.parametrize("case", OWN)
def test_our_own(printed: dict[str, str], case: str) -> None:
    assert printed[case] == OWN[case]


# ---- several processes


NEEDS_MPI = pytest.mark.skipif(
    shutil.which("mpiexec") is None or importlib.util.find_spec("mpi4py") is None, reason="mpiexec or mpi4py is missing"
)
PROCESSES = """
import sys
from pathlib import Path
import hloom, hloom.numpy as jnp, numpy as np
from hloom import lax
from hloom.experimental import multihost_utils as hosts
from hloom.sharding import AxisType, NamedSharding, PartitionSpec as P
hloom.distributed.initialize()
me = hloom.process_index()
mesh = hloom.make_mesh((4,), ("d",), axis_types=(AxisType.Auto,))
parts, whole = NamedSharding(mesh, P("d")), NamedSharding(mesh, P())
x = hloom.make_array_from_process_local_data(parts, np.arange(4, dtype=np.float32) + 4 * me)
assert (hloom.process_count(), hloom.device_count(), hloom.local_device_count()) == (2, 4, 2)
assert [d.id for d in hloom.local_devices()] == [2 * me, 2 * me + 1] and mesh.is_multi_process
assert not x.is_fully_addressable and repr(x) == "Array(shape=(8,), dtype=float32)"
assert [s.index[0].start for s in x.addressable_shards] == [4 * me, 4 * me + 2]
assert [s.data is None for s in x.global_shards] == [k // 2 != me for k in range(4)]
try:
    np.asarray(x)
    raise SystemExit("an array of several processes was read")
except RuntimeError as error:
    assert "spans non-addressable" in str(error)
assert float(jnp.sum(x)) == 28 and float((x * 2)[5]) == 10
assert np.asarray(hloom.device_put(x, whole)).tolist() == list(range(8))
f = hloom.shard_map(lambda a: lax.pmean(a.sum(), "d"), mesh=mesh, in_specs=P("d"), out_specs=P())
assert float(f(x)) == 7 and hloom.grad(f)(x).addressable_data(0).tolist() == [0.25, 0.25]
assert float(hloom.jit(lambda v: v @ v)(x)) == 140
assert hloom.pmap(lambda v: lax.psum(v, "i"), axis_name="i")(jnp.ones(2)).tolist() == [2, 2]
assert hosts.process_allgather(np.int32(me)).tolist() == [0, 1]
assert hosts.process_allgather(x, tiled=True).tolist() == list(range(8))
assert float(hosts.broadcast_one_to_all(np.float32(me + 5))) == 5
hosts.sync_global_devices("here")
try:
    hosts.assert_equal(np.arange(3) + me)
    raise SystemExit("different arrays were equal")
except AssertionError:
    pass
Path(sys.argv[1], str(me)).touch()
"""


def in_processes(root: Path, *command: str, **variables: str) -> str:
    """The output of two processes."""
    options = ["--oversubscribe", "--allow-run-as-root"] if "Open" in mpi_version() else []
    environment = {**os.environ, "PYTHONPATH": str(root), **variables}
    found = subprocess.run(
        ["mpiexec", "-n", "2", *options, sys.executable, *command],
        capture_output=True, text=True, timeout=300, env=environment, cwd=root,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    return found.stdout


def mpi_version() -> str:
    return subprocess.run(["mpiexec", "--version"], capture_output=True, text=True, timeout=60).stdout


def test_a_nan_on_one_device_names_the_line(root: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    lines = [
        "@hloom.jit",
        "def f(x):",
        "    y = x - 1",
        "    return jnp.log(y).sum()",
        "with hloom.debug_nans(True):",
        "    try:",
        "        f(put(x, 'd'))",
        "    except FloatingPointError as error:",
        "        print(error)",
    ]
    script.write_text("\n".join([START, *lines]))
    message = ran(root, str(script), HLOOM_NUM_DEVICES="2")
    number = START.count("\n") + 1 + lines.index("    return jnp.log(y).sum()") + 1
    assert "(nan) encountered in log of (f32[2])" in message and f"script.py:{number}" in message


@pytest.mark.slow
@NEEDS_MPI
def test_two_processes_with_two_devices_each(root: Path, tmp_path: Path) -> None:
    """Each leaves a file when it is done: what both print may be mixed in one line."""
    in_processes(root, "-c", PROCESSES, str(tmp_path), HLOOM_NUM_DEVICES="2")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["0", "1"]


@pytest.mark.slow
def test_data_parallel_training_has_one_loss(root: Path) -> None:
    """On one device, on two in a process, and on two in two processes: the same to the last few bits."""
    options = ("--digits", "--steps", "12", "--losses", "--how")
    program = str(root / "examples" / "data_parallel_mnist.py")
    printed = [ran(root, program, *options, "jit"), ran(root, program, *options, "shard_map", HLOOM_NUM_DEVICES="2")]
    if shutil.which("mpiexec") is not None and importlib.util.find_spec("mpi4py") is not None:
        printed.append(in_processes(root, program, *options, "jit"))
    losses = [[float.fromhex(line) for line in text.splitlines() if line.startswith("0x")] for text in printed]
    assert len(losses[0]) == 12 and losses[0][-1] < losses[0][0]
    for others in losses[1:]:
        assert others == pytest.approx(losses[0], rel=2e-6)


IN_LOOPS = """
import numpy as np
import hloom
import hloom.numpy as jnp
from hloom import lax

mesh = hloom.make_mesh((4,), ("i",))
c, xs = jnp.arange(8.0) / 8, jnp.arange(24.0).reshape(3, 8) / 24


def plain(c):
    place = jnp.repeat(jnp.arange(4), 2)
    total = jnp.tile(jnp.exp(c).reshape(4, 2).sum(0), 4)
    return (2.0 * jnp.sin(c) + jnp.tile(jnp.array([1.0, 3.0]), 4) * c * c + total) * jnp.where(place > 1, c, 1.0) / 9


def part(c):
    factor = jnp.where(lax.axis_index("i") > 1, c, 1.0)
    return (2.0 * jnp.sin(c) + jnp.array([1.0, 3.0]) * c * c + lax.psum(jnp.exp(c), "i")) * factor / 9


mapped = hloom.shard_map(part, mesh=mesh, in_specs=(hloom.P("i"),), out_specs=hloom.P("i"))
keep_all = hloom.checkpoint_policies.everything_saveable
FORMS = {
    "scan": lambda f: lambda c: lax.scan(lambda c, x: (f(c) * x, c), c, xs)[0],
    "fori_loop": lambda f: lambda c: lax.fori_loop(0, 3, lambda i, c: f(c), c),
    "scan in scan": lambda f: FORMS["scan"](lambda c: lax.scan(lambda c, _: (f(c), None), c, None, length=2)[0]),
    "constant of a scan": lambda f: lambda c: lax.scan(lambda d, _: (f(c) * d, None), c, None, length=3)[0],
    "cond": lambda f: lambda c: lax.cond(c[1] > 0, f, lambda c: c, c),
    "switch": lambda f: lambda c: lax.switch(1, [lambda c: c, lambda c: f(f(c)), f], c),
    "cond in scan": lambda f: lambda c: lax.scan(
        lambda c, i: (lax.cond(i > 0, f, lambda c: jnp.cos(f(c)), c), None), c, jnp.arange(3)
    )[0],
    "checkpoint in scan": lambda f: FORMS["scan"](hloom.checkpoint(f)),
    "checkpoint that keeps all": lambda f: hloom.checkpoint(lambda c: f(f(c)), policy=keep_all),
    "jit in scan": lambda f: FORMS["scan"](hloom.jit(f)),
    "vmap of a scan": lambda f: lambda c: hloom.vmap(FORMS["scan"](f))(jnp.stack([c, 2 * c])),
}
for name, form in FORMS.items():
    loss, wanted = (lambda c, g=form(f): g(c).sum() for f in (mapped, plain))
    wanted = np.asarray(hloom.grad(wanted)(c))
    for gradient in (hloom.grad(loss), hloom.jit(hloom.grad(loss))):
        found = np.asarray(gradient(c))
        assert np.allclose(found, wanted, rtol=1e-4, atol=1e-5), (name, found, wanted)
    print(name)
once = hloom.grad(lambda c: FORMS["scan"](mapped)(c).sum())
alike = hloom.grad(lambda c: FORMS["scan"](plain)(c).sum())
assert np.allclose(hloom.jacfwd(once)(c), hloom.jacfwd(alike)(c), rtol=1e-3)
"""


def test_gradients_of_loops_and_branches_with_a_shard_map_inside(root: Path) -> None:
    """Residuals within are each device's own: they are computed again from whole arrays."""
    printed = ran(root, "-c", IN_LOOPS, HLOOM_NUM_DEVICES="4")
    assert len(printed.splitlines()) == 11


SUMS_OF_TERMS = """
import numpy as np, hloom, hloom.numpy as jnp
from hloom import P, lax
from hloom.hlo import HloParseError, stablehlo

mesh = hloom.make_mesh((2, 2), ("x", "y"))
wide = np.arange(8.0, dtype=np.float32).reshape(4, 2)

def parts(x):
    return [np.asarray(s.data).tolist() for s in x.addressable_shards]

with hloom.set_mesh(mesh):
    put = hloom.device_put(np.arange(2), P(unreduced={"y"}))
    assert parts(put) == [[0, 1], [0, 0], [0, 1], [0, 0]], parts(put)
    assert np.asarray(put).tolist() == [0, 1]

    terms = hloom.reshard(hloom.device_put(wide, P("x", "y")), P("x", unreduced={"y"}))
    looped = hloom.jit(lambda v: lax.fori_loop(0, 3, lambda k, u: u + v, v))(terms)
    assert str(hloom.typeof(looped)) == "float32[4@x,2]{U:y}"
    assert np.array_equal(looped, 4 * wide)  # each device adds its own terms
    assert [p[0][1 - k % 2] for k, p in enumerate(parts(looped))] == [0.0] * 4

    ids = hloom.device_put(np.array([0, 0, 1, 0]), P("x"))
    counts = jnp.bincount(ids, length=2, out_sharding=P(unreduced={"x"}))
    assert parts(counts) == [[2, 0], [2, 0], [1, 1], [1, 1]], parts(counts)
    rows = hloom.ops.segment_sum(hloom.device_put(wide, P("x")), ids, 2, out_sharding=P(unreduced={"x"}))
    assert parts(rows)[::2] == [[[2, 4], [0, 0]], [[6, 7], [4, 5]]], parts(rows)

    product = hloom.jit(lambda u, v: jnp.dot(u, v, out_sharding=P("x", unreduced={"y"})))
    left, right = hloom.device_put(wide, P("x", "y")), hloom.device_put(wide.T, P("y"))
    lowered = product.lower(left, right)
    assert "all-reduce(" not in lowered.compile().as_text()
    text = lowered.as_text("stablehlo")
    assert "stablehlo.dot_general" in text and text.count('unreduced={"y"}') == 2, text
    try:
        stablehlo.parse(text)
    except HloParseError as error:
        assert "cannot be read" in str(error)
    else:
        raise AssertionError("terms are read as whole arrays")
    stated = hloom.jit(lambda v: (v * 2).sum(0)).lower(left).as_text("stablehlo")
    assert stated.count("sdy.sharding_constraint") == 3
    assert stablehlo.parse(stated).num_partitions == 4

    for wrong in (lambda: put - put, lambda: jnp.sin(put), lambda: put * put, lambda: put @ put):
        try:
            wrong()
        except Exception as error:
            assert "unreduced" in str(error), error
        else:
            raise AssertionError("not linear in its terms")
"""


def test_sums_whose_terms_devices_have(root: Path) -> None:
    ran(root, "-c", SUMS_OF_TERMS, HLOOM_NUM_DEVICES="4")
