"""The device, meshes, shardings, where arrays are, settings: JAX's answers, as literals and from JAX itself."""

from __future__ import annotations

import copy
import gzip
import json
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hloom.tracer.settings.config import SETTINGS

import hloom
import hloom.numpy as jnp
from hloom import lax

ANSWERS: dict[str, Any] = {
    # the device
    "jax.devices()": "[CpuDevice(id=0)]",
    "str(jax.devices()[0])": "'cpu:0'",
    "jax.local_devices() == jax.devices('cpu')": "True",
    "(jax.device_count(), jax.local_device_count(), jax.process_count())": "(1, 1, 1)",
    "(jax.process_index(), jax.process_indices(), jax.default_backend())": "(0, [0], 'cpu')",
    "(d.id, d.platform, d.device_kind, d.process_index, d.local_hardware_id)": "(0, 'cpu', 'cpu', 0, 0)",
    "isinstance(d, jax.Device)": "True",
    "[m.kind for m in d.addressable_memories()]": "['device', 'pinned_host', 'unpinned_host']",
    "d.default_memory().kind": "'device'",
    "d.memory_stats()": "None",
    # where arrays are
    "x.device": "CpuDevice(id=0)",
    "x.devices() == {d}": "True",
    "x.sharding": "SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)",
    "(x.committed, jax.device_put(x, d).committed)": "(False, True)",
    "[type(v) is type(x) for v in (jax.device_put(x, d), jax.device_put(x, ns), jax.device_put(x, auto) + 1)]": (
        "[True, True, True]"
    ),
    "type(jax.jit(lambda v: v, out_shardings=ns)(x)) is type(jax.pmap(lambda v: v)(x[:1])) is type(x)": "True",
    "(x.is_fully_addressable, x.is_fully_replicated, x.on_device_size_in_bytes())": "(True, True, 24)",
    "x.addressable_shards": "[Shard(device=CpuDevice(id=0), index=(slice(None, None, None), slice(None, None, None)), "
    "replica_id=0, data=[[0. 1. 2.]\n [3. 4. 5.]])]",
    "x.global_shards[0].data.shape": "(2, 3)",
    "x.addressable_data(0).shape": "(2, 3)",
    "x.to_device(d).committed": "True",
    "x.format": "Format(layout=Layout(major_to_minor=(0, 1), tiling=(), sub_byte_element_size_in_bits=0), "
    "sharding=SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device))",
    "jax.device_put(x, ns).sharding": "NamedSharding(mesh=Mesh('a': 1, 'b': 1, axis_types=(Explicit, Explicit)), "
    "spec=P('a', None), memory_kind=device)",
    "jax.device_put({'k': x, 'l': 1.0}, d)['l'].committed": "True",
    "[y.committed for y in jax.device_put((x, x), (d, None))]": "[True, False]",
    "jax.reshard(x, ns).sharding == ns": "True",
    "jax.lax.with_sharding_constraint(x, auto).sharding == auto": "True",
    "jax.jit(lambda v: v + 1, in_shardings=ns, out_shardings=ns)(x).sharding == ns": "True",
    "jax.jit(lambda v: (v, {'k': v}), out_shardings=(None, ns))(x)[1]['k'].sharding == ns": "True",
    "jax.jit(lambda v: jax.lax.with_sharding_constraint(v * 2, auto))(x)": "Array([[ 0.,  2.,  4.],\n"
    "       [ 6.,  8., 10.]], dtype=float32)",
    # results on one device are over the mesh of their operands
    "[v.sharding.spec for v in jax.jit(lambda v: (v + 1, v.sum(), v.T))(jax.device_put(x, auto))]": (
        "[P('p',), P(), P('p',)]"
    ),
    "(lambda v: [y.sharding.spec for y in (v * v, v.sum(), v[0], v.astype(int))])(jax.device_put(x, auto))": (
        "[P('p',), P(), P(), P('p',)]"
    ),
    "(lambda v: [y.sharding.spec for y in (v.T, v + x, v.sum(0))])(jax.device_put(x, ns))": (
        "[P(None, 'a'), P('a', None), P(None,)]"
    ),
    "[v.sharding.spec for v in jax.jit(lambda v: (v, v[0]), out_shardings=(None, auto))(x)]": "[P(), P('p',)]",
    "jax.jit(lambda v: v * 2)(jax.device_put(x, auto)).committed": "True",
    "jax.pmap(lambda v: v, axis_name='i')(x[:1]).sharding": "NamedSharding(mesh=Mesh('i': 1, axis_types=(Auto,)), "
    "spec=P('i',), memory_kind=device)",
    "jax.pmap(lambda v: v, out_axes=None, axis_name='i')(x[:1]).sharding.spec": "P()",
    "jax.random.split(jax.device_put(jax.random.key(0), auto.update(spec=P()))).sharding.spec": "P()",
    "jax.random.normal(jax.device_put(jax.random.key(0), auto.update(spec=P())), (3,)).sharding.spec": "P()",
    "jax.lax.full((4,), 1.0, sharding=auto).sharding == auto": "True",
    "jax.lax.full_like(x, 1, sharding=auto).sharding == auto": "True",
    "jax.numpy.zeros_like(jax.device_put(x, auto)).sharding == auto": "True",
    "jax.jit(lambda r=jax.new_ref(jax.device_put(x, auto)): r[...])().sharding == auto": "True",
    "jax.new_ref(jax.device_put(x, auto))[...].sharding == auto": "True",
    "jax.ShapeDtypeStruct.like(jax.device_put(x, auto)).sharding == auto": "True",
    "jax.ShapeDtypeStruct.like(x).sharding": "None",
    "within(mesh, lambda: jax.reshard(x, P('a')).sharding.spec)": "P('a', None)",
    "(lambda c: (c.input_shardings[0][0] == auto, [s.spec for s in c.output_shardings], c(x)[0].sharding == auto))"
    "(jax.jit(lambda v: (v, v.sum())).lower(jax.ShapeDtypeStruct((2, 3), x.dtype, sharding=auto)).compile())": (
        "(True, [P('p',), P()], True)"
    ),
    "within(mp, lambda: jax.ShapeDtypeStruct((2, 3), x.dtype, sharding=P('p')).sharding) == auto": "True",
    "within(mp, lambda: jax.jit(S.auto_axes(lambda v: v * 2, out_sharding=P('p')))(x[0]))": (
        "Array([0., 2., 4.], dtype=float32)"
    ),
    # references in shard_map
    "(lambda r: (jax.jit(sm(lambda v: v.__setitem__(0, v[1] + 1), in_specs=P('p'), out_specs=None))(r), r[...]))"
    "(jax.new_ref(x[0]))": "(None, Array([2., 1., 2.], dtype=float32))",
    # meshes
    "mesh": "Mesh(axis_sizes=(1, 1), axis_names=('a', 'b'), axis_types=(Explicit, Explicit))",
    "str(mesh)": "\"Mesh('a': 1, 'b': 1, axis_types=(Explicit, Explicit))\"",
    "(mesh.shape['a'], mesh.size, mesh.axis_sizes, mesh.empty, mesh.shape_tuple)": "(1, 1, (1, 1), False, "
    "(('a', 1), ('b', 1)))",
    "(mesh.devices.shape, mesh.device_ids.tolist(), mesh.local_devices, mesh.is_multi_process)": "((1, 1), [[0]], "
    "[CpuDevice(id=0)], False)",
    "(mesh.explicit_axes, mesh.auto_axes, mesh.manual_axes)": "(('a', 'b'), (), ())",
    "jax.make_mesh((1, 1), ('a', 'b')) is mesh": "True",
    "S.Mesh(np.array([d]), 'z')": "Mesh(axis_sizes=(1,), axis_names=('z',), axis_types=(Auto,))",
    "S.AbstractMesh((2, 3), ('p', 'q'))": "AbstractMesh('p': 2, 'q': 3, axis_types=(Auto, Auto))",
    "S.AbstractMesh((2, 3), ('p', 'q')).size": "6",
    "S.AbstractMesh((2,), ('p',)) is S.AbstractMesh((2,), ('p',))": "True",
    "S.get_abstract_mesh().empty": "True",
    "within(mesh, lambda: S.get_mesh() is mesh)": "True",
    "within(mesh, lambda: S.get_abstract_mesh() == mesh.abstract_mesh)": "True",
    "within(mesh, lambda: jax.device_put(x, P('a')).sharding.spec)": "P('a',)",
    "list(S.AxisType)": "[Auto, Explicit, Manual]",
    # specs
    "P('a', None, ('b', 'c'))": "P('a', None, ('b', 'c'))",
    "(P('a'), P(), P(('a',)) is P('a'), P(()) is P(None))": "(P('a',), P(), True, True)",
    "P('a') + P('b')": "P('a', 'b')",
    "P('a') + ('b',)": "P('a', 'b')",
    "('b',) + P('a')": "P('b', 'a')",
    "(len(P('a', 'b')), list(P('a', None)), P('a', 'b')[1], P('b', 'a').index('a'), P('a').count('a'))": "(2, "
    "['a', None], 'b', 1, 1)",
    "P('a', unreduced={'b'})": "P('a', unreduced={'b'})",
    "P(P.UNCONSTRAINED)": "P(UNCONSTRAINED,)",
    "jax.tree.leaves({'k': P('a', 'b')})": "[P('a', 'b')]",
    "P('a', None).update(partitions=('b',))": "P('b',)",
    # shardings
    "ns": "NamedSharding(mesh=Mesh('a': 1, 'b': 1, axis_types=(Explicit, Explicit)), spec=P('a', None), "
    "memory_kind=device)",
    "(ns == jax.NamedSharding(mesh, P('a', None)), ns == jax.NamedSharding(mesh, P('a')))": "(True, False)",
    "ns.is_equivalent_to(S.SingleDeviceSharding(d), 2)": "True",
    "ns._addressable_device_assignment": "(CpuDevice(id=0),)",
    "(ns.num_devices, ns.device_set == {d}, ns.is_fully_replicated, ns.is_fully_addressable)": "(1, True, True, True)",
    "ns.shard_shape((4, 2))": "(4, 2)",
    "ns.devices_indices_map((4, 2)) == {d: (slice(None), slice(None))}": "True",
    "ns.with_memory_kind('pinned_host').memory_kind": "'pinned_host'",
    "ns.update(spec=P('b')).spec": "P('b',)",
    "jax.NamedSharding(S.AbstractMesh((2,), ('p',)), P('p')).shard_shape((4, 3))": "(2, 3)",
    "len({ns, jax.NamedSharding(mesh, P('a', None))})": "1",
    # arrays from parts
    "jax.make_array_from_callback((2, 3), ns, lambda i: np.asarray(x)[i]).sharding == ns": "True",
    "jax.make_array_from_single_device_arrays((2, 3), ns, [x]).sharding == ns": "True",
    "jax.make_array_from_process_local_data(ns, np.ones((2, 3), np.float32)).shape": "(2, 3)",
    # maps over the one device
    "jax.pmap(lambda v: jax.lax.psum(v, 'i'), axis_name='i')(x[:1])": "Array([[0., 1., 2.]], dtype=float32)",
    "jax.pmap(lambda v, w: v * w, in_axes=(0, None))(x[:1], 2)": "Array([[0., 2., 4.]], dtype=float32)",
    "jax.pmap(lambda v: v + jax.lax.axis_index('i'), axis_name='i', out_axes=1)(x[:1]).shape": "(3, 1)",
    "jax.pmap(lambda v, n: v * n, static_broadcasted_argnums=1)(x[:1], 3)": "Array([[0., 3., 6.]], dtype=float32)",
    "jax.pmap(jax.pmap(lambda v: v + 1))(x[None, :1]).shape": "(1, 1, 3)",
    "jax.grad(lambda v: jax.pmap(lambda w: jax.lax.psum(w ** 2, 'i'), axis_name='i')(v).sum())(x[:1])": "Array([[0., "
    "2., 4.]], dtype=float32)",
    "sm(lambda v: jax.lax.psum(v, 'p'), in_specs=P('p'), out_specs=P())(x)": "Array([[0., 1., 2.],\n       "
    "[3., 4., 5.]], dtype=float32)",
    "sm(lambda v: jax.lax.all_gather(v, 'p'), in_specs=P('p'), out_specs=P('p'))(x).shape": "(1, 2, 3)",
    "sm(lambda v: v.shape[0] + jax.lax.axis_index('p')[None], in_specs=P('p'), out_specs=P('p'))(x)": "Array([2], "
    "dtype=int32)",
    "sm(lambda v: jax.lax.ppermute(v, 'p', [(0, 0)]), in_specs=P('p'), out_specs=P('p'))(x[0])": "Array([0., 1., 2.], "
    "dtype=float32)",
    "sm(lambda v, w: v + w['k'], in_specs=(P('p'), {'k': P()}), out_specs=P('p'))(x[0], {'k': 1.0})": "Array([1., 2., "
    "3.], dtype=float32)",
    "sm(lambda v: v, in_specs=P('p'), out_specs=P('p'))(x).sharding.spec": "P('p',)",
    "jax.grad(lambda v: sm(lambda w: jax.lax.psum(w ** 2, 'p'), in_specs=P('p'), out_specs=P())(v).sum())(x[0])": "Arr"
    "ay([0., 2., 4.], dtype=float32)",
    "jax.jit(sm(lambda v: v * jax.lax.axis_size('p'), in_specs=P('p'), out_specs=P('p')))(x[0])": "Array([0., 1., 2.],"
    " dtype=float32)",
    "jax.vmap(sm(lambda v: jax.lax.pmean(v, 'p'), in_specs=P('p'), out_specs=P()))(x).shape": "(2, 3)",
    "within(mp, lambda: jax.smap(lambda v: jax.lax.psum(v, 'p'), in_axes=0, out_axes=0, axis_name='p')(x[0]))": "Arra"
    "y([0., 1., 2.], dtype=float32)",
    # placement of results
    "jax.numpy.zeros(2, device=d, out_sharding=None)": "Array([0., 0.], dtype=float32)",
    "within(mesh, lambda: jax.numpy.arange(2, out_sharding=P('a')))": "Array([0, 1], dtype=int32)",
    "within(mesh, lambda: jax.numpy.ones((2, 2), out_sharding=P('a')).sum())": "Array(4., dtype=float32)",
    "within(mesh, lambda: jax.numpy.einsum('ij,kj->ik', x, x, out_sharding=P('a', None)).shape)": "(2, 2)",
    "within(mesh, lambda: jax.numpy.matmul(x, x.T, out_sharding=P('a', None)).shape)": "(2, 2)",
    "within(mesh, lambda: jax.numpy.reshape(x, (3, 2), out_sharding=P('a', None)).shape)": "(3, 2)",
    "within(mesh, lambda: x.reshape(3, 2, out_sharding=P('a', None)).shape)": "(3, 2)",
    "within(mesh, lambda: jax.lax.broadcast(x, (2,), out_sharding=P('a', None, None)).shape)": "(2, 2, 3)",
    "within(mesh, lambda: jax.lax.full((2,), 1.0, sharding=jax.NamedSharding(mesh, P('a'))).shape)": "(2,)",
    # settings
    "ranks('allow')": "(2, 3)",
    "jax.ShapeDtypeStruct((2, 3), np.float32, sharding=ns).sharding == ns": "True",
    "jax.jit(lambda v: v).lower(x).compile().input_shardings": "((SingleDeviceSharding(device=CpuDevice(id=0), "
    "memory_kind=device),), {})",
    "jax.jit(lambda v: v).lower(x).compile().output_shardings": "SingleDeviceSharding(device=CpuDevice(id=0), "
    "memory_kind=device)",
    "jax.memory.Space.Device": "MemorySpace.Device",
    "jax.dlpack.from_dlpack(np.arange(3, dtype=np.int32))": "Array([0, 1, 2], dtype=int32)",
    "[jax.dlpack.is_supported_dtype(t) for t in (np.float32, np.int8, np.complex64)]": "[True, True, True]",
}
"""Expressions, in which `jax` is either library, and their values as `repr` writes them."""

ERRORS: dict[str, tuple[type[BaseException], str]] = {
    "jax.ShapeDtypeStruct((2, 3), x.dtype, sharding=P('p')).sharding": (TypeError, "context mesh cannot be empty"),
    "jax.jit(lambda v: v, device=d, backend='cpu')": (ValueError, "can't specify both a device and a backend"),
    "jax.lax.with_sharding_constraint(x, None)": (ValueError, "got sharding None which is not allowed"),
    "jax.devices('gpu')": (RuntimeError, "gpu"),
    "jax.local_devices(process_index=1)": (ValueError, "process_index"),
    "d.memory('hbm')": (Exception, "hbm"),
    "jax.make_mesh((2,), ('a',))": (ValueError, "Number of devices 1"),
    "jax.make_mesh(2, ('a',))": ((TypeError, ValueError), "int"),
    "S.Mesh(np.array([d]), ('a', 'b'))": (ValueError, "devices.ndim == 1"),
    "S.Mesh(np.array([d]), (None,))": (ValueError, "cannot be None"),
    "S.Mesh(np.array([d]), ('a',), axis_types=('Auto',))": (TypeError, "AxisType"),
    "S.Mesh(np.array([d]), ('a',), axis_types=(S.AxisType.Auto,) * 2)": (ValueError, "should match"),
    "S.AbstractMesh((1,), ('a',)).devices": (ValueError, "does not implement devices"),
    "jax.NamedSharding(mesh, P('z'))": (ValueError, "is not found in mesh"),
    "jax.NamedSharding(mesh, P('a', 'a'))": (Exception, "duplicate entries"),
    "jax.NamedSharding(mesh, P(P.UNCONSTRAINED))": (ValueError, "UNCONSTRAINED"),
    "P('a', unreduced=['b'])": (TypeError, "unreduced"),
    "P('a', unreduced={'a'})": (ValueError, "overlap"),
    "setattr(P('a'), 'reduced', ())": (AttributeError, ""),
    "jax.device_put(x, 'cpu')": (ValueError, "only accepts"),
    "jax.device_put(x, 3)": (ValueError, "only accepts"),
    "jax.device_put('text')": (TypeError, "str"),
    "jax.device_put(x, P('a'))": (ValueError, "set_mesh"),
    "jax.device_put((x, x), (d,) * 3)": (ValueError, "tree prefix"),
    "jax.device_put(1.0, ns)": (ValueError, "rank"),
    "jax.jit(lambda v: v, in_shardings=(3,))(x)": (TypeError, "in_shardings leaf specifications"),
    "jax.jit(lambda v: v, in_shardings=(None, None, ns))(x)": (ValueError, "wrong length"),
    "jax.jit(lambda v: v.sum(), out_shardings=ns)(x)": (ValueError, "incompatible with its sharding"),
    "jax.jit(lambda v: v, out_shardings=P('a'))(x)": (RuntimeError, "non-empty mesh"),
    "jax.lax.with_sharding_constraint(x, P('a'))": (RuntimeError, "non-empty mesh"),
    "jax.lax.with_sharding_constraint(x, ns)": (ValueError, "can only refer to Auto axes"),
    "jax.reshard(x, auto)": (ValueError, "Auto"),
    "jax.set_mesh(3)": (ValueError, "Expected mesh"),
    "jax.jit(lambda v: (jax.set_mesh(mesh), v)[1])(x)": (ValueError, "outside of"),
    "S.use_abstract_mesh(mesh)": (ValueError, "AbstractMesh"),
    "jax.pmap(lambda v: v)(x)": (ValueError, ""),
    "jax.pmap(lambda: 1)()": (ValueError, "at least one argument"),
    "jax.pmap(lambda v: v, in_axes='a')(x[:1])": (TypeError, "in_axes"),
    "jax.pmap(lambda v: v, in_axes=(0, 0))(x[:1])": (ValueError, ""),
    "jax.pmap(lambda v: v)(1.0)": (ValueError, "rank"),
    "jax.pmap(3)": (TypeError, "3"),
    "jax.pmap(lambda v: v, devices=[])": (ValueError, "non-empty"),
    "sm(3, in_specs=P(), out_specs=P())": (TypeError, "callable"),
    "jax.shard_map(lambda v: v, in_specs=P(), out_specs=P())(x)": (ValueError, "context mesh cannot be empty"),
    "jax.shard_map(lambda v: v, mesh=3, in_specs=P(), out_specs=P())(x)": ((TypeError, AttributeError), ""),
    "sm(lambda v: v, in_specs=P('q'), out_specs=P())(x)": (ValueError, "must refer to an axis"),
    "sm(lambda v: v, in_specs='p', out_specs=P())(x)": (TypeError, "pytree of"),
    "sm(lambda v: v, in_specs=P('p'), out_specs=3)(x)": (TypeError, "pytree of"),
    "sm(lambda v: v, in_specs=(P('p'), P()), out_specs=P())(x)": (ValueError, "in_specs"),
    "sm(lambda v: v, in_specs=P(None, None, 'p'), out_specs=P())(x)": (ValueError, "too long"),
    "sm(lambda v: v.sum(), in_specs=P('p'), out_specs=P('p'))(x)": (ValueError, "too long"),
    "sm(lambda v: v, out_specs=P('p'))(x)": (TypeError, "in_specs"),
    "sm(lambda v: v, in_specs=P(), out_specs=P(), axis_names={'z'})(x)": (ValueError, "subset"),
    "sm(lambda v: jax.lax.psum(v, 'z'), in_specs=P('p'), out_specs=P())(x)": (NameError, "unbound axis name"),
    "jax.smap(lambda v: v, in_axes=0, out_axes=0, axis_name=('p',))": (TypeError, "axis_name"),
    "jax.smap(lambda v: v, in_axes='x', out_axes=0, axis_name='p')": (TypeError, "in_axes"),
    "ranks('raise')": (ValueError, "could not be broadcast"),
    "ranks('maybe')": (ValueError, ""),
    "jax.make_array_from_callback((2, 2), ns, lambda i: x)": (ValueError, ""),
    "jax.make_array_from_single_device_arrays((2, 3), ns, x)": (TypeError, "`arrays` argument must be a"),
    "jax.ShapeDtypeStruct((2,), np.float32, sharding=3)": (ValueError, "sharding"),
    "jax.profiler.stop_trace()": (RuntimeError, "No profile started"),
    "jax.jit(lambda v: v.sharding)(x)": (AttributeError, "not available on"),
    "jax.jit(lambda v: v.addressable_shards)(x)": (TypeError, "addressable_shards"),
    "jax.jit(lambda v: v.is_deleted())(x)": (TypeError, "is_deleted"),
    "jax.dlpack.is_supported_dtype(None)": (TypeError, ""),
}
"""Expressions that are errors: the class and a word of the message, in both libraries."""


def scope(jax: Any) -> dict[str, Any]:
    """The names of the expressions."""
    sharding, d = jax.sharding, jax.devices()[0]
    mesh = jax.make_mesh((1, 1), ("a", "b"))
    mp = sharding.Mesh(np.array([d]), ("p",))
    x = jax.numpy.arange(6.0).reshape(2, 3)

    def within(mesh: Any, f: Any) -> Any:
        with jax.set_mesh(mesh):
            return f()

    def ranks(mode: str) -> Any:
        with jax.numpy_rank_promotion(mode):
            return jax.numpy.add(x, x[0]).shape

    return {
        "jax": jax, "np": np, "S": sharding, "P": jax.P, "d": d, "mesh": mesh, "mp": mp, "x": x,
        "ns": jax.NamedSharding(mesh, jax.P("a", None)),
        "auto": jax.NamedSharding(mp, jax.P("p")),
        "within": within, "ranks": ranks,
        "sm": lambda f, **options: jax.shard_map(f, mesh=mp, **options),
    }


OURS = scope(hloom)


@pytest.mark.parametrize("text", ANSWERS)
def test_answers(text: str) -> None:
    assert repr(eval(text, OURS)) == ANSWERS[text]


@pytest.mark.parametrize("text", ERRORS)
def test_errors(text: str) -> None:
    kind, words = ERRORS[text]
    with pytest.raises(kind) as caught:
        eval(text, OURS)
    assert words in str(caught.value)


DIFFERENT = {
    "jax.device_put(1.0, ns)",  # an assertion of JAX
    "jax.pmap(jax.pmap(lambda v: v + 1))(x[None, :1]).shape",  # JAX 0.10.2 refuses axes without names in one another
    "jax.pmap(lambda v: v)(1.0)",  # another message
    "sm(lambda v: jax.lax.psum(v, 'z'), in_specs=P('p'), out_specs=P())(x)",  # another message
    "jax.make_array_from_callback((2, 2), ns, lambda i: x)",  # JAX says so later
    "sm(lambda v: v, in_specs='p', out_specs=P())(x)",
    "jax.jit(lambda v: v, device=d, backend='cpu')",  # JAX warns first that both are deprecated
}


@pytest.fixture(scope="module")
def of_jax() -> dict[str, Any]:
    jax = pytest.importorskip("jax")
    if jax.__version__ != "0.10.2":
        pytest.skip("the answers are those of JAX 0.10.2")
    if jax.device_count() != 1:
        pytest.skip("the answers are for one device")
    return scope(jax)


@pytest.mark.parametrize("text", [t for t in ANSWERS if t not in DIFFERENT])
def test_jax_gives_the_same_answers(of_jax: dict[str, Any], text: str) -> None:
    assert repr(eval(text, of_jax)) == ANSWERS[text]


@pytest.mark.parametrize("text", sorted(ERRORS.keys() - DIFFERENT))
def test_jax_gives_the_same_errors(of_jax: dict[str, Any], text: str) -> None:
    kind, words = ERRORS[text]
    with pytest.raises(kind) as caught:
        eval(text, of_jax)
    assert words in str(caught.value)


# ---- other than expressions


@pytest.mark.parametrize("text", ["d", "mesh", "mesh.abstract_mesh", "ns", "P('a', unreduced={'b'})", "x.sharding"])
def test_copies_are_the_same(text: str) -> None:
    value = eval(text, OURS)
    assert pickle.loads(pickle.dumps(value)) == value
    assert copy.deepcopy(value) == value


def test_device_put_copies_and_donates() -> None:
    x = jnp.arange(3.0)
    other = hloom.device_put(x, may_alias=False)
    assert other.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
    assert hloom.device_put(x).unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    moved = hloom.device_put(x, hloom.devices()[0], donate=True)
    assert x.is_deleted() and moved.committed and moved.tolist() == [0, 1, 2]
    with pytest.raises(hloom.errors.DeletedArrayError, match="Array has been deleted"):
        _ = x.addressable_shards


def test_meshes_are_of_the_thread() -> None:
    seen: list[bool] = []
    with hloom.set_mesh(OURS["mesh"]):
        worker = threading.Thread(target=lambda: seen.append(hloom.sharding.get_abstract_mesh().empty))
        worker.start()
        worker.join()
        assert not hloom.sharding.get_abstract_mesh().empty
    assert seen == [True]


def test_two_shardings_of_one_function_are_two_programs() -> None:
    def f(x: Any) -> Any:
        return x + 1

    first = hloom.jit(f, out_shardings=OURS["ns"])
    second = hloom.jit(f)
    x = jnp.ones((2, 3))
    for _ in range(2):
        assert first(x).sharding == OURS["ns"]
        assert not second(x).committed
    with pytest.raises(ValueError, match="No such compile option"):
        hloom.jit(f, compiler_options={"fast": True})
    assert hloom.jit(f, compiler_options={"xla_cpu_enable_fast_math": True})(1.0) == 2


def test_programs_over_one_device_are_the_functions_own() -> None:
    mesh = OURS["mp"]
    f = hloom.shard_map(lambda x: jnp.sin(x) * 2, mesh=mesh, in_specs=hloom.P("p"), out_specs=hloom.P("p"))
    opcodes = [i.opcode for i in hloom.make_hlo(f)(jnp.ones(3)).entry.instructions]
    assert opcodes == [i.opcode for i in hloom.make_hlo(lambda x: jnp.sin(x) * 2)(jnp.ones(3)).entry.instructions]


def test_loops_and_branches_in_shard_map() -> None:
    def f(x: Any) -> Any:
        total = lax.fori_loop(0, 3, lambda i, c: lax.psum(c, "p") + lax.axis_index("p"), x)
        return lax.cond(total.sum() > 0, lambda t: lax.psum(t, "p"), lambda t: -t, total)

    mapped = hloom.shard_map(f, mesh=OURS["mp"], in_specs=hloom.P("p"), out_specs=hloom.P("p"))
    assert hloom.jit(mapped)(jnp.arange(3.0)).tolist() == mapped(jnp.arange(3.0)).tolist() == [0, 1, 2]


def test_each_device_decides_how_long_a_loop_runs() -> None:
    def f(x: Any) -> Any:
        more = 2 + lax.axis_index("p")
        return lax.while_loop(lambda c: c[0] < more, lambda c: (c[0] + 1, c[1] * x), (0, x))[1]

    mapped = hloom.shard_map(f, mesh=OURS["mp"], in_specs=hloom.P("p"), out_specs=hloom.P("p"))
    gradient = hloom.grad(lambda x: jnp.sum(mapped(x)))
    for wrap in (lambda f: f, hloom.jit):
        assert wrap(mapped)(jnp.arange(3.0)).tolist() == [0, 1, 8]
        assert wrap(gradient)(jnp.arange(3.0)).tolist() == [0, 3, 12]


def test_tracers_know_the_manual_axes() -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append(hloom.sharding.get_abstract_mesh().manual_axes)
        return x

    hloom.shard_map(f, mesh=OURS["mp"], in_specs=hloom.P("p"), out_specs=hloom.P("p"))(jnp.ones(2))
    assert seen == [("p",)]


def test_auto_and_explicit_axes() -> None:
    sharding = hloom.sharding
    with hloom.set_mesh(OURS["mesh"]):
        f = sharding.auto_axes(lambda x: x * 2, out_sharding=hloom.P("a"))
        assert f(jnp.ones((2, 3))).sharding.spec == hloom.P("a", None)
        with pytest.raises(TypeError, match="out_sharding"):
            sharding.auto_axes(lambda x: x)(1.0)
    with pytest.raises(ValueError, match="Context mesh cannot be empty"):
        sharding.explicit_axes(lambda x: x, in_sharding=hloom.P())(1.0)


def test_elements_of_a_loop_change_places() -> None:
    """One begins as an array that is made of a scalar, which any device can make; the other does not."""
    mesh = hloom.sharding.AbstractMesh((2,), ("x",), axis_types=(hloom.sharding.AxisType.Explicit,))

    def loop(x: Any, y: Any) -> Any:
        return lax.fori_loop(0, 3, lambda _, s: (s[1], s[0], s[2] + 1), (jnp.zeros(4), y * 2, x))

    with hloom.sharding.use_abstract_mesh(mesh):
        places = [hloom.NamedSharding(mesh, spec) for spec in (hloom.P("x"), hloom.P())]
        given = [hloom.ShapeDtypeStruct((4,), np.float32, sharding=p) for p in places]
        for found in (hloom.eval_shape(loop, *given), hloom.jit(loop).trace(*given).out_info):
            assert [s.sharding for s in found] == [None, None, places[0]]
        shown = hloom.make_jaxpr(loop)(*given)
        assert [str(a) for a in shown.out_avals] == ["float32[4]", "float32[4]", "float32[4@x]"]


@pytest.mark.parametrize("jitted", [False, True])
def test_specs_within_changed_axes_mean_the_changed_mesh(jitted: bool) -> None:
    sharding = hloom.sharding
    wrap = hloom.jit if jitted else lambda f: f

    def explicit(x: Any) -> Any:
        return sharding.reshard(x, hloom.P("x")) * 2

    def auto(x: Any) -> Any:
        return hloom.lax.with_sharding_constraint(x, hloom.P("x")) * 2

    for kind, f in (
        (sharding.AxisType.Auto, sharding.explicit_axes(explicit, in_sharding=hloom.P("x"))),
        (sharding.AxisType.Explicit, sharding.auto_axes(auto, out_sharding=hloom.P("x"))),
    ):
        with hloom.set_mesh(hloom.make_mesh((1,), ("x",), axis_types=(kind,))):
            assert wrap(f)(jnp.arange(3)).tolist() == [0, 2, 4]


# ---- settings


@pytest.mark.parametrize("name", sorted(hloom.config.values))
def test_settings_are_read_as_they_are(name: str) -> None:
    value = hloom.config.read(name)
    assert getattr(hloom.config, name) == value
    hloom.config.update(name, value)
    assert hloom.config.values[name] == value


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("jax_platforms", "gpu", RuntimeError),
        ("jax_platform_name", "tpu", RuntimeError),
        ("jax_num_cpu_devices", 8, RuntimeError),
        ("jax_mutable_array_checks", False, hloom.errors.UnsupportedError),
        ("jax_debug_key_reuse", 1, TypeError),
        ("jax_transfer_guard", "never", ValueError),
        ("jax_default_device", "tpu:0", RuntimeError),
        ("jax_numpy_rank_promotion", "sometimes", ValueError),
        ("jax_enable_checks", 1, TypeError),
        ("jax_no_such_name", 1, AttributeError),
    ],
)
def test_settings_that_cannot_be(name: str, value: object, error: type[Exception]) -> None:
    hloom.devices()  # from now on their number is settled
    with pytest.raises(error, match=r"gpu|tpu|sometimes|jax_"):
        hloom.config.update(name, value)


HEARD = {
    "JAX_DEFAULT_PRNG_IMPL=rbg": "hloom.random.key_impl(hloom.random.key(0)) == 'rbg'",
    "JAX_NO_TRACING=1 JAX_ENABLE_X64=True": "hloom.config.jax_no_tracing and hloom.config.jax_enable_x64",
    "JAX_NUMPY_RANK_PROMOTION=raise JAX_DEBUG_INFS=on": "hloom.config.jax_numpy_rank_promotion == 'raise'",
    "JAX_TRANSFER_GUARD=log JAX_LOGGING_LEVEL=DEBUG": "hloom.config.jax_transfer_guard == 'log'",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=2": "hloom.config.jax_persistent_cache_min_compile_time_secs == 2",
    "JAX_DEBUG_NANS= JAX_HOME=/tmp": "not hloom.config.jax_debug_nans",
    "JAX_THREEFRY_PARTITIONABLE=1 JAX_REMAT3=0": "hloom.config.jax_threefry_partitionable",
    "JAX_NUM_CPU_DEVICES=2 HLOOM_NUM_DEVICES=3": "hloom.device_count() == 3",
    # what cannot be, and what means nothing here, is said
    "JAX_THREEFRY_PARTITIONABLE=0": "not hloom.config.jax_threefry_partitionable",
    "JAX_MUTABLE_ARRAY_CHECKS=0": "UnsupportedError: jax_mutable_array_checks can only be True",
    "JAX_DEFAULT_PRNG_IMPL=dice": "ValueError: jax_default_prng_impl must be one of 'threefry2x32', 'rbg'",
    "JAX_ENABLE_X64=perhaps": "ValueError: environment variable JAX_ENABLE_X64 must be true or false, not 'perhaps'",
    "JAX_TRANSFER_GUARD=loud": "said by the environment variable JAX_TRANSFER_GUARD=loud",
    "JAX_PGLE_PROFILING_RUNS=few": "environment variable JAX_PGLE_PROFILING_RUNS must be a number, not 'few'",
    "JAX_PROCESS_ID=1": "UserWarning: hloom ignores the environment variable JAX_PROCESS_ID: MPI joins processes",
}
"""Variables of the environment, and what then is true or said."""


@pytest.mark.one_in(2)
@pytest.mark.parametrize("variables", HEARD)
def test_variables_of_the_environment_are_heard_or_refused(variables: str) -> None:
    environment = {**os.environ, **dict(v.split("=") for v in variables.split())}
    says = HEARD[variables]
    program = f"import hloom; print({says})" if says.startswith(("hloom", "not")) else "import hloom.numpy"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert (found.stdout == "True\n" and not found.stderr) if "print" in program else says in found.stderr


def test_each_setting_is_a_variable_of_the_environment_too() -> None:
    """Its value as a text leads back to it."""
    for name, setting in SETTINGS.items():
        value = hloom.config.read(name)
        if value is not None and setting.hears:
            assert setting.parse(name.upper(), str(value)) == value
    unheard = {name for name, setting in SETTINGS.items() if not setting.hears}
    assert unheard == {  # other modules hear their variables
        "hloom_backend", "hloom_collective_timeout", "hloom_compiler", "hloom_target", "jax_num_cpu_devices",
        "jax_traceback_filtering",
    }  # fmt: skip


def test_settings_that_change_nothing_are_contexts() -> None:
    with hloom.transfer_guard("disallow"), hloom.default_device(hloom.devices()[0]), hloom.thread_guard(True):
        assert hloom.config.jax_transfer_guard == "disallow"
        assert jnp.sin(np.ones(2)).shape == (2,)
    assert hloom.config.jax_transfer_guard is None


def test_rank_promotion() -> None:
    x, row = jnp.ones((2, 3)), jnp.ones(3)
    with hloom.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="automatic rank promotion for multiply"):
        _ = x * row
    with hloom.numpy_rank_promotion("raise"):
        assert (x * 2.0 + x[:1] + jnp.float32(3)).shape == (2, 3)
        assert jnp.where(x > 0, x, row).shape == (2, 3)  # as in JAX: where broadcasts within itself
        with pytest.raises(ValueError, match="could not be broadcast"):
            hloom.jit(lambda a, b: a + b)(x, row)


def test_no_tracing() -> None:
    f = hloom.jit(lambda x: x + 1)
    f(1.0)
    with hloom.no_tracing():
        assert f(2.0) == 3
        with pytest.raises(RuntimeError, match="re-tracing function <lambda> for `jit`, but 'no_tracing' is set"):
            f(1)
    f(1)


def test_user_contexts_are_keys_of_programs() -> None:
    scale = hloom.make_user_context(1.0)
    traced = []

    @hloom.jit
    def f(x: Any) -> Any:
        traced.append(scale.value)
        return x * scale.value

    with scale(2.0):
        assert f(3.0) == 6
        with scale(5.0):
            assert f(3.0) == 15
        assert f(4.0) == 8
    assert f(3.0) == 3
    assert traced == [2.0, 5.0, 1.0]
    with pytest.raises(TypeError, match="hashable"), scale([]):
        pass
    scale.set_global(7.0)
    with scale(2.0):
        assert (scale.value, scale.get_global()) == (2.0, 7.0)
    assert f(3.0) == 21


# ---- monitoring and profiles


def test_monitoring() -> None:
    heard: list[Any] = []
    mark = hloom.monitoring
    listeners = {
        mark.register_event_listener: (mark.unregister_event_listener, lambda: mark.record_event("e", n=1)),
        mark.register_event_duration_secs_listener: (
            mark.unregister_event_duration_listener,
            lambda: mark.record_event_duration_secs("d", 2.0, n=1),
        ),
        mark.register_event_time_span_listener: (
            mark.unregister_event_time_span_listener,
            lambda: mark.record_event_time_span("s", 1.0, 2.0, n=1),
        ),
        mark.register_scalar_listener: (mark.unregister_scalar_listener, lambda: mark.record_scalar("v", 3, n=1)),
    }

    def listener(event: str, *values: float, **kwargs: Any) -> None:
        heard.append((event, *values, kwargs))

    for register, (unregister, record) in listeners.items():
        record()
        register(listener)
        record()
        unregister(listener)
        record()
        with pytest.raises(ValueError, match="not a registered listener"):
            unregister(listener)
    assert heard == [("e", {"n": 1}), ("d", 2.0, {"n": 1}), ("s", 1.0, 2.0, {"n": 1}), ("v", 3, {"n": 1})]


def test_compilations_are_heard() -> None:
    heard: list[str] = []

    def listener(event: str, duration: float, **kwargs: Any) -> None:
        heard.append(event)

    hloom.monitoring.register_event_duration_secs_listener(listener)
    try:
        hloom.jit(lambda x: x * 3 + 1)(jnp.ones(2))
    finally:
        hloom.monitoring.clear_event_listeners()
    assert heard == ["/jax/core/compile/jaxpr_trace_duration", "/jax/core/compile/backend_compile_duration"]


def test_profiles(tmp_path: Path) -> None:
    profiler = hloom.profiler

    @profiler.annotate_function
    def work(x: Any) -> Any:
        return hloom.jit(lambda y: y * 7 - 1)(x)

    with profiler.TraceAnnotation("before"):
        pass
    with profiler.trace(tmp_path, create_perfetto_trace=True):
        with pytest.raises(RuntimeError, match="already been started"):
            profiler.start_trace(tmp_path)
        with profiler.StepTraceAnnotation("step", step_num=3), profiler.TraceAnnotation("inner"):
            work(jnp.ones(2))
    files = sorted(tmp_path.rglob("*.json.gz"))
    assert len(files) == 2
    for file in files:
        with gzip.open(file, "rt") as opened:
            events = {e["name"]: e for e in json.load(opened)["traceEvents"] if e["ph"] == "X"}
        assert {"step", "inner", "tracing <lambda> for jit"} < events.keys() and "before" not in events
        assert any("work" in name for name in events) and events["step"]["args"] == {"step_num": 3}
        assert events["step"]["dur"] >= events["inner"]["dur"] > 0


def test_one_process() -> None:
    hloom.distributed.initialize(num_processes=1, process_id=0)
    try:
        assert hloom.distributed.is_initialized()
        with pytest.raises(RuntimeError, match="only be called once"):
            hloom.distributed.initialize()
    finally:
        hloom.distributed.shutdown()
    assert not hloom.distributed.is_initialized()
    with pytest.raises(hloom.errors.UnsupportedError, match="process 1 of 4"):
        hloom.distributed.initialize("here:1", 4, 1)


def test_live_arrays_and_environment(capsys: pytest.CaptureFixture[str]) -> None:
    x = jnp.ones(5)
    assert any(a is x for a in hloom.live_arrays())
    x.delete()
    assert not any(a is x for a in hloom.live_arrays())
    hloom.print_environment_info()
    printed = capsys.readouterr().out
    assert "hloom:" in printed and printed.strip() == str(hloom.print_environment_info(True)).strip()


@pytest.mark.parametrize(
    ("child", "parent"),
    [
        ("ConcretizationTypeError", "JAXTypeError"),
        ("TracerArrayConversionError", "JAXTypeError"),
        ("TracerBoolConversionError", "ConcretizationTypeError"),
        ("TracerIntegerConversionError", "JAXTypeError"),
        ("UnexpectedTracerError", "JAXTypeError"),
        ("NonConcreteBooleanIndexError", "JAXIndexError"),
        ("KeyReuseError", "JAXTypeError"),
        ("ExecutionError", "JaxRuntimeError"),
        ("CustomCallError", "JaxRuntimeError"),
    ],
)
def test_classes_of_errors(child: str, parent: str) -> None:
    assert issubclass(getattr(hloom.errors, child), getattr(hloom.errors, parent))


def test_what_means_nothing_here_says_why() -> None:
    name = "lib"
    with pytest.raises(AttributeError, match=f"(?s)jax has '{name}', hloom does not have it: "):
        getattr(hloom, name)


def test_pictures_of_shardings(capsys: pytest.CaptureFixture[str]) -> None:
    box = "┌─────────┐\n│  CPU 0  │\n└─────────┘\n"
    hloom.debug.visualize_array_sharding(OURS["x"])
    hloom.jit(lambda x: (hloom.debug.visualize_array_sharding(x), x * 2)[1])(OURS["x"])
    assert capsys.readouterr().out == box * 2
    seen: list[Any] = []
    hloom.debug.inspect_array_sharding(hloom.device_put(OURS["x"], OURS["ns"]), callback=seen.append)
    assert seen == [OURS["ns"]]
    with pytest.raises(ValueError, match="1 and 2 dimensions"):
        hloom.debug.visualize_array_sharding(jnp.ones((1, 1, 1)))
