"""Pytrees: structures, paths, registration and messages, each row in hloom and, where it is installed, in JAX."""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import pickle
import subprocess
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import optree
import pytest
from hloom.tracer.trees.tree import flatten_of

import hloom
import hloom.numpy as jnp
from hloom import flatten_util, tree, tree_util
from hloom.errors import NonArrayArgumentError, TreeDefError, TreeStructureError

Pair = collections.namedtuple("Pair", "a b")


@functools.cache
def classes(t: ModuleType) -> Any:
    """Classes that are registered with a library."""

    class Plain:
        def __init__(self, child: Any, data: Any) -> None:
            self.child, self.data = child, data

        def __repr__(self) -> str:
            return f"Plain({self.child}, {self.data})"

    t.register_pytree_node(Plain, lambda x: ((x.child,), x.data), lambda data, children: Plain(children[0], data))

    @t.register_pytree_node_class
    class Methods:
        def __init__(self, *children: Any) -> None:
            self.children = children

        def tree_flatten(self) -> Any:
            return iter(self.children), None

        @classmethod
        def tree_unflatten(cls, data: Any, children: Any) -> Any:
            assert data is None
            assert type(children) is tuple
            return cls(*children)

        def __repr__(self) -> str:
            return f"Methods{self.children}"

    @t.register_pytree_with_keys_class
    class Keyed(Methods):  # type: ignore[misc, valid-type]
        def tree_flatten_with_keys(self) -> Any:
            return [(t.DictKey("first"), self.children[0]), ("any", self.children[1])], None

    class KeyedByFunction(Methods):  # type: ignore[misc, valid-type]
        pass

    t.register_pytree_with_keys(
        KeyedByFunction,
        lambda x: (((t.GetAttrKey(f"c{k}"), c) for k, c in enumerate(x.children)), None),
        lambda _, children: KeyedByFunction(*children),
    )

    @t.register_static
    class Static:
        def __repr__(self) -> str:
            return "Static"

    @t.register_dataclass
    @dataclasses.dataclass
    class Data:
        x: Any
        name: Any = dataclasses.field(default="n", metadata={"static": True})
        y: Any = 0

    class Fields(collections.namedtuple("Fields", "a b")):
        pass

    t.register_pytree_node(Fields, lambda f: ((f.b,), f.a), lambda a, children: Fields(a, *children))
    return SimpleNamespace(**{k: v for k, v in locals().items() if isinstance(v, type)})


def rows(t: ModuleType) -> dict[str, Callable[[], Any]]:
    """Computations with a library's `tree_util`."""
    c = classes(t)
    trees = {
        "a leaf": 1,
        "none": None,
        "empty": [(), {}, []],
        "nested": [1, {"b": (2, None), "a": {}}],
        "tuple of one": (1,),
        "namedtuple": Pair(1, Pair(2, None)),
        "ordered": collections.OrderedDict(b=1, a=2),
        "default": collections.defaultdict(int, b=1, a=(2,)),
        "keys": {(1, 2): 3, (0,): {2.5: 4, 1: 5}},
        "text": ["abc", range(2), {1}],
        "plain": c.Plain([1, 2], "data"),
        "methods": c.Methods(1, [2]),
        "keyed": c.Keyed(1, (2, 3)),
        "keyed by function": c.KeyedByFunction(1, 2),
        "static": [c.Static(), 1],
        "dataclass": c.Data({"k": 1}, name="m", y=[2]),
        "namedtuple of its own": c.Fields(1, 2),
        "partial": t.Partial(int, 1, b=[2]),
    }
    found: dict[str, Callable[[], Any]] = {}
    for name, each in trees.items():
        found[f"{name}: structure"] = lambda each=each: (t.tree_structure(each), t.tree_leaves(each))
        found[f"{name}: paths"] = lambda each=each: [
            (p, t.keystr(p), t.keystr(p, simple=True, separator="/")) for p, _ in t.tree_flatten_with_path(each)[0]
        ]
        found[f"{name}: parts"] = lambda each=each: _parts(t, t.tree_structure(each))
        found[f"{name}: one level"] = lambda each=each: _one_level(t, each)
        found[f"{name}: again"] = lambda each=each: sorted_text(t.tree_map(lambda x: x, each))
    is_none = lambda x: x is None  # noqa: E731
    nested = {"a": [1, (2, 3)], "b": None}
    outer, inner = t.tree_structure([0, 0]), t.tree_structure((0, {"x": 0}))
    nested_def = t.tree_structure(nested)
    found |= {
        "is_leaf": lambda: t.tree_flatten(nested, is_leaf=is_none),
        "is_leaf on a node": lambda: t.tree_leaves(nested, is_leaf=lambda x: isinstance(x, tuple)),
        "is_leaf takes path": lambda: t.tree_flatten_with_path(
            nested, lambda p, _: len(p) == 2, is_leaf_takes_path=True
        ),
        "leaves with path": lambda: t.tree_leaves_with_path(nested, is_leaf=is_none),
        "map": lambda: t.tree_map(lambda *xs: xs, nested, nested, {"a": [[1], ((), {})], "b": None}),
        "map is_leaf": lambda: t.tree_map(lambda *xs: xs, nested, {"a": [1, (2, 3)], "b": 5}, is_leaf=is_none),
        "map with path": lambda: t.tree_map_with_path(lambda p, *xs: (t.keystr(p), xs), nested, nested),
        "map with path is_leaf": lambda: t.tree_map_with_path(
            lambda p, x: t.keystr(p), nested, is_leaf=lambda p, x: len(p) == 1, is_leaf_takes_path=True
        ),
        "transpose": lambda: t.tree_transpose(outer, inner, [(1, {"x": 2}), (3, {"x": 4})]),
        "transpose by leaves alone": lambda: t.tree_transpose(outer, t.tree_structure((0, 0)), [[1, 2], [3, 4]]),
        "transpose without inner": lambda: t.tree_transpose(outer, None, [(1, {"x": 2}), (3, {"x": 4})]),
        "broadcast": lambda: t.tree_broadcast({"a": 1, "b": [2, 3]}, {"a": (0, 0), "b": [None, {"x": 0}]}),
        "broadcast none": lambda: t.tree_broadcast((1, None), (3, {"x": 0}), is_leaf=is_none),
        "reduce": lambda: (t.tree_reduce(lambda a, b: a + b, [1, (2,)]), t.tree_reduce(max, [], 5)),
        "reduce from none": lambda: t.tree_reduce(lambda a, b: b, [], None),
        "reduce_associative": lambda: t.tree_reduce_associative(lambda a, b: (a, b), [1, 2, 3, 4, 5]),
        "reduce_associative empty": lambda: t.tree_reduce_associative(max, [], identity=0),
        "all": lambda: [t.tree_all(x) for x in ([], [0], [1, None], [True, False])],
        "all_leaves": lambda: [t.all_leaves(x) for x in ([1, 2], [1, None], [1, (1,)], [])],
        "all_leaves is_leaf": lambda: [t.all_leaves(x, is_leaf=is_none) for x in ([1, None], [1, (1,)])],
        "is_tree_node": lambda: [t.is_tree_node(k) for k in (int, list, Pair, dict, str, type(None), c.Data, c.Static)],
        "treedef_tuple": lambda: t.treedef_tuple([nested_def, t.tree_structure(c.Data(1))]),
        "treedef_tuple is that of a tuple": lambda: t.treedef_tuple([nested_def]) == t.tree_structure((nested,)),
        "treedef_children": lambda: t.treedef_children(nested_def),
        "treedef_is_leaf": lambda: [t.treedef_is_leaf(t.tree_structure(x)) for x in (1, None, (), [1])],
        "compose": lambda: nested_def.compose(outer),
        "walk": lambda: nested_def.walk(lambda children, data: (children, data), lambda x: -x, [1, 2, 3]),
        "flatten_up_to": lambda: nested_def.flatten_up_to({"a": [{"x": 1}, (2, None)], "b": None}),
        "unequal": lambda: (nested_def == outer, nested_def != outer, nested_def == 3),
        "equal": lambda: (outer == t.tree_structure([5, 6]), hash(outer) == hash(t.tree_structure([7, 8]))),
        "hash of metadata": lambda: (
            hash(t.tree_structure(c.Plain(1, [2]))) == hash(t.tree_structure(c.Plain(3, [2]))),
            t.tree_structure(c.Plain(1, [2])) == t.tree_structure(c.Plain(1, [3])),
        ),
        "children hash": lambda: (
            hash(t.tree_structure([c.Static(), {"k": 0}]).children()[1]) == hash(t.tree_structure({"k": 1}))
        ),
        "registry": lambda: [t.default_registry.flatten_one_level(x) for x in (1, (2, 3), {"b": 1, "a": 2})],
        "keys": lambda: [
            (str(k), repr(k), k == copy.copy(k), hash(k) == hash(copy.copy(k)), pickle.loads(pickle.dumps(k)))
            for k in (t.DictKey("a"), t.SequenceKey(1), t.GetAttrKey("a"), t.FlattenedIndexKey(1))
        ],
        "keys differ": lambda: (t.DictKey("a") == t.GetAttrKey("a"), t.SequenceKey(1) == t.FlattenedIndexKey(1)),
        "keys by name": lambda: (
            *(t.DictKey(key=1).key, t.SequenceKey(idx=2).idx, t.GetAttrKey(name="n").name),
            t.FlattenedIndexKey(key=3).key,
        ),
        "keystr": lambda: t.keystr((t.DictKey("a"), t.SequenceKey(1), "raw"), separator="/"),
        "partial": lambda: t.tree_map(lambda x: x * 10, t.Partial(t.Partial(_both, 1), 2, k=3))(4),
        "partial of partial": lambda: t.tree_leaves(t.Partial(t.Partial(_both, 1), 2, k=3)),
    }
    return found


def _both(*args: Any, **keywords: Any) -> Any:
    return args, keywords


def _parts(t: ModuleType, structure: Any) -> Any:
    data = structure.node_data()
    return structure.num_leaves, structure.num_nodes, structure.children(), data and (data[0].__name__, data[1])


def _one_level(t: ModuleType, each: Any) -> Any:
    if not t.is_tree_node(type(each)):
        with pytest.raises(ValueError, match="can't tree-flatten type"):
            t.flatten_one_level(each)
        return None
    pairs, data = t.flatten_one_level_with_keys(each)
    if not isinstance(each, Pair):  # JAX gives all fields the name of the first
        assert [child for _, child in pairs] == list(t.flatten_one_level(each)[0])
        return list(pairs), data if not isinstance(data, type) else data.__name__
    return None


def sorted_text(value: Any) -> Any:
    """A tree without the order of its dictionaries, which hloom keeps and JAX does not."""
    match value:
        case dict():
            return type(value).__name__, sorted([(k, sorted_text(v)) for k, v in value.items()])
        case list() | tuple():
            return type(value).__name__, [sorted_text(v) for v in value]
    return repr(value)


EXPECTED = {
    "nested: structure": "(PyTreeDef([*, {'a': {}, 'b': (*, None)}]), [1, 2])",
    "nested: paths": "[((SequenceKey(idx=0),), '[0]', '0'), "
    "((SequenceKey(idx=1), DictKey(key='b'), SequenceKey(idx=0)), \"[1]['b'][0]\", '1/b/0')]",
    "nested: parts": "(2, 7, [PyTreeDef(*), PyTreeDef({'a': {}, 'b': (*, None)})], ('list', None))",
    "namedtuple: structure": "(PyTreeDef(CustomNode(namedtuple[Pair], [*, CustomNode(namedtuple[Pair], [*, None])])), "
    "[1, 2])",
    "namedtuple: paths": "[((GetAttrKey(name='a'),), '.a', 'a'), "
    "((GetAttrKey(name='b'), GetAttrKey(name='a')), '.b.a', 'b/a')]",
    "ordered: parts": "(2, 3, [PyTreeDef(*), PyTreeDef(*)], ('OrderedDict', ('b', 'a')))",
    "default: structure": "(PyTreeDef(CustomNode(defaultdict[(<class 'int'>, ('a', 'b'))], [(*,), *])), [2, 1])",
    "keyed: paths": "[((DictKey(key='first'),), \"['first']\", 'first'), "
    "(('any', SequenceKey(idx=0)), 'any[0]', 'any/0'), (('any', SequenceKey(idx=1)), 'any[1]', 'any/1')]",
    "static: structure": "(PyTreeDef([CustomNode(Static[Static], []), *]), [1])",
    "dataclass: structure": "(PyTreeDef(CustomNode(Data[('m',)], [{'k': *}, [*]])), [1, 2])",
    "dataclass: paths": "[((GetAttrKey(name='x'), DictKey(key='k')), \".x['k']\", 'x/k'), "
    "((GetAttrKey(name='y'), SequenceKey(idx=0)), '.y[0]', 'y/0')]",
    "partial: paths": "[((FlattenedIndexKey(key=0), SequenceKey(idx=0)), '[<flat index 0>][0]', '0/0'), "
    "((FlattenedIndexKey(key=1), DictKey(key='b'), SequenceKey(idx=0)), \"[<flat index 1>]['b'][0]\", '1/b/0')]",
    "transpose by leaves alone": "([1, 3], [2, 4])",
    "broadcast": "{'a': (1, 1), 'b': [None, {'x': 3}]}",
    "broadcast none": "(1, {'x': None})",
    "reduce_associative": "((1, 2), (3, (4, 5)))",
    "all_leaves": "[True, False, False, True]",
    "treedef_is_leaf": "[True, True, True, False]",
    "walk": "((((-1, ((-2, -3), None)), None), ((), None)), ['a', 'b'])",
    "children hash": "True",
    "partial": "((1, 20, 4), {'k': 30})",
    "partial of partial": "[2, 3]",
    "keystr": "\"['a']/[1]/raw\"",
}
"""Results of some rows, in both libraries; the others are compared where JAX is installed."""
ROWS = rows(tree_util)


@pytest.mark.parametrize("name", ROWS)
def test_as_jax(name: str) -> None:
    found = repr(ROWS[name]())
    if name in EXPECTED:
        assert found == EXPECTED[name]
    jax_tree_util = pytest.importorskip("jax.tree_util") if name not in EXPECTED else _jax_tree_util()
    if jax_tree_util is not None:
        assert found == repr(rows(jax_tree_util)[name]()).replace("jax.tree_util.", "hloom.tree_util.")


def _jax_tree_util() -> ModuleType | None:
    try:
        import jax.tree_util
    except ImportError:
        return None
    return jax.tree_util


# ---- errors: the call of a library, the class of its error, and a part of both messages


def mistakes(t: ModuleType) -> dict[str, tuple[Callable[[], Any], type[Exception], str]]:
    c = classes(t)
    two = t.tree_structure({"a": [1, 2]})

    def bad(answer: Any) -> Any:
        kind = type("Bad", (), {})
        t.register_pytree_node(kind, lambda _: answer, lambda *_: None)
        return kind()

    def of(wanted: Any, given: Any) -> Callable[[], Any]:
        return lambda: t.tree_map(lambda *x: None, {"k": [wanted]}, {"k": [given]})

    def up_to(wanted: Any, given: Any) -> Callable[[], Any]:
        return lambda: t.tree_structure(wanted).flatten_up_to(given)

    at = r"pytree structure error: different {}[\s\S]*tree_map tree\['k'\]\[0\]\n[\s\S]*"
    types, data, count = (at.format(what) for what in ("types", "pytree metadata", "numbers of pytree children"))
    return {
        "lengths": (of((1, 2), (1, 2, 3)), ValueError, at.format("lengths of tuple") + "length 2[\\s\\S]*length 3"),
        "lengths up to": (up_to((1, 2), (1,)), ValueError, r"Tuple arity mismatch: 1 != 2; tuple: \(1,\)\."),
        "types up to": (up_to((1,), [1]), ValueError, r"Expected tuple, got \[1\]\."),
        "none up to": (up_to(None, [1]), ValueError, r"Expected None, got \[1\]\."),
        "keys up to": (up_to({"a": 1}, {"b": 1}), ValueError, r"Dict key mismatch; expected keys: \['a'\]"),
        "namedtuple up to": (up_to(Pair(1, 2), (1, 2)), ValueError, r"Expected named tuple, got \(1, 2\)\."),
        "class up to": (up_to(c.Methods(1), 1), ValueError, "Custom node type mismatch"),
        "types": (of((1, 2), [1, 2]), ValueError, types + "'tuple'>[\\s\\S]*'list'>"),
        "a leaf": (of([1], 1), ValueError, types + "'list'>[\\s\\S]*'int'>"),
        "none": (of(None, 1), ValueError, types + "'NoneType'>[\\s\\S]*'int'>"),
        "keys": (of({"a": 1, "b": 2}, {"a": 1, "c": 2}), ValueError, data + "'a', 'b'[\\s\\S]*'a', 'c'"),
        "number of keys": (of({"a": 1, "b": 2}, {"a": 1}), ValueError, count + "b"),
        "namedtuple": (of(Pair(1, 2), (1, 2)), ValueError, types + "Pair'>[\\s\\S]*'tuple'>"),
        "class": (of(c.Plain(1, 2), c.Methods(1)), ValueError, types + "Plain'>[\\s\\S]*Methods'>"),
        "metadata": (of(c.Plain(1, "x"), c.Plain(1, "y")), ValueError, data + "x[\\s\\S]*- x[\\s\\S]*\\+ y"),
        "children": (of(c.Methods(1, 2), c.Methods(1)), ValueError, count),
        "static": (of(c.Static(), c.Static()), ValueError, data),
        "map with path": (
            lambda: t.tree_map_with_path(lambda *x: None, {"k": [1]}, {"k": (1,)}),
            *(ValueError, r"different types[\s\S]*tree_map_with_path tree\['k'\]\n"),
        ),
        "broadcast": (
            lambda: t.tree_broadcast(c.Data([1]), c.Data((1,))),
            *(ValueError, r"different types[\s\S]*prefix_tree\.x\n"),
        ),
        "broadcast none": (lambda: t.tree_broadcast([None], [1]), ValueError, r"prefix_tree\[0\]\n"),
        "flatten_up_to": (lambda: two.flatten_up_to({"a": 1}), ValueError, "list"),
        "too few leaves": (
            lambda: two.unflatten([1]),
            ValueError,
            "Too few leaves for PyTreeDef; expected:? 2, got:? 1",
        ),
        "too many leaves": (lambda: t.tree_unflatten(two, "abc"), ValueError, "Too many leaves for PyTreeDef"),
        "walk": (lambda: two.walk(lambda *_: None, abs, [1, 2, 3]), ValueError, "Too many leaves for PyTreeDef"),
        "leaves": (lambda: two.unflatten(1), TypeError, "unflatten"),
        "no structure": (lambda: t.tree_unflatten("x", [1]), AttributeError, "str"),
        "transpose": (
            lambda: t.tree_transpose(two, t.tree_structure((1, 2)), {"a": [1, (2, 3)]}),
            *(TypeError, r"Mismatch[\s\S]*\{'a': \[\*, \(\*, \*\)\]\}[\s\S]*\{'a': \[\(\*, \*\), \(\*, \*\)\]\}"),
        ),
        "registered twice": (
            lambda: t.register_static(c.Static),
            ValueError,
            "Duplicate custom PyTreeDef .*Static",
        ),
        "a list": (lambda: t.register_static(list), ValueError, "Duplicate custom PyTreeDef type registration.*list"),
        "flatten to 3": (
            lambda: t.tree_leaves(bad((1, 2, 3))),
            ValueError,
            r"\(children, aux_data\)[\s\S]*1, 2, 3",
        ),
        "flatten to 1": (lambda: t.tree_leaves([bad(5)]), ValueError, r"\(children, aux_data\)[\s\S]*5"),
        "flatten to no children": (lambda: t.tree_leaves(bad((5, None))), ValueError, "iterable"),
        "reduce nothing": (lambda: t.tree_reduce(max, []), TypeError, "empty"),
        "reduce_associative nothing": (lambda: t.tree_reduce_associative(max, []), TypeError, "identity"),
        "one level of a leaf": (lambda: t.flatten_one_level(1), ValueError, "can't tree-flatten type: <class 'int'>"),
        "dataclass": (lambda: t.register_dataclass(int), TypeError, "data_fields and meta_fields"),
        "partial": (lambda: t.Partial(3), TypeError, "callable"),
        "a key is not changed": (lambda: setattr(t.DictKey("a"), "key", 1), AttributeError, "setter"),
    }


MISTAKES = mistakes(tree_util)


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name: str) -> None:
    use, error, message = MISTAKES[name]
    with pytest.raises(error, match=message):
        use()
    jax_tree_util = _jax_tree_util()
    if jax_tree_util is not None:
        use, error, message = mistakes(jax_tree_util)[name]
        with pytest.raises(error, match=message):
            use()


def test_messages_name_the_line_and_the_remedy() -> None:
    line = f"at {__file__}:"
    with pytest.raises(ValueError, match=line) as caught:
        tree.map(lambda *x: None, {"a": None}, {"a": 1})
    assert "is_leaf=lambda x: x is None" in str(caught.value)
    with pytest.raises(ValueError, match=line) as caught:
        tree.map(lambda *x: None, {"a": 1, "b": 2}, {"a": 1, "c": 2})
    both = "Dict key mismatch; expected keys: ['a', 'b']; got: ['a', 'c']."
    differ = "the symmetric difference on key sets is\n    b, c\nas it lacks 'b' and also has 'c'"
    assert f"so {differ}\n{both}" in str(caught.value)
    with pytest.raises(TreeDefError, match=line):
        tree_util.treedef_tuple([1])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="Expected a class"):
        tree_util.register_pytree_node(3, lambda x: ((), x), lambda x, _: x)  # type: ignore[arg-type]


# ---- structures


@pytest.mark.parametrize(
    "private",
    [{}, {"_C": SimpleNamespace()}, {"_C": SimpleNamespace(flatten=lambda root, options: ([], None))}, vars(optree)],
)
def test_another_optree_flattens_by_what_it_documents(private: dict[str, Any]) -> None:
    library = SimpleNamespace(**{"tree_flatten": optree.tree_flatten, **private})
    leaves, spec = flatten_of(library)({"b": [1, None], "a": (2,)}, lambda x: type(x) is tuple, False, "hloom")
    assert leaves == [(2,), 1] and spec == optree.tree_structure({"b": [1, None], "a": 3}, namespace="hloom")


def test_what_jax_has_and_tree_has_not() -> None:
    treedef = tree.structure([1])
    assert not hasattr(treedef, "serialize_using_proto")
    assert pickle.loads(pickle.dumps(tree.structure(Pair(1, [2])))) == tree.structure(Pair(1, [2]))
    assert copy.deepcopy(treedef) == treedef


def test_containers_of_hloom_alone() -> None:
    """Containers that are leaves or errors in JAX."""
    deque = collections.deque([1, (2,)], maxlen=3)
    assert str(tree.structure(deque)) == "PyTreeDef(CustomNode(deque[3], [*, (*,)]))"
    assert [tree_util.keystr(p) for p, _ in tree.leaves_with_path(deque)] == ["[0]", "[1][0]"]
    mixed = {"b": 1, 2: 3}
    assert tree.leaves(mixed) == [3, 1]
    assert [tree_util.keystr(p) for p, _ in tree.leaves_with_path(mixed)] == ["[2]", "['b']"]
    assert tree.structure(mixed).node_data() == (dict, [2, "b"])
    assert tree.map(lambda a, b: (a, b), {"a": 1}, collections.OrderedDict(a=2)) == {"a": (1, 2)}


def test_static_fields() -> None:
    @tree_util.register_dataclass
    @dataclasses.dataclass
    class Point:
        x: Any
        unit: str = tree.static(default="m", metadata={"doc": 1})

    assert tree.leaves(Point(1)) == [1]
    assert Point.__dataclass_fields__["unit"].metadata == {"doc": 1, "static": True}
    assert tree.map(lambda x: x + 1, Point(1, "s")) == Point(2, "s")
    assert tree.structure(Point(1, "s")) != tree.structure(Point(1))
    assert tree.static(metadata={"static": False}).metadata == {"static": False}


def test_metadata_that_cannot_be_compared() -> None:
    @tree_util.register_dataclass
    @dataclasses.dataclass
    class Box:
        x: Any = dataclasses.field(metadata={"static": True})

    boxes = lambda: (Box(hloom.numpy.arange(3)), Box(hloom.numpy.arange(3)))  # noqa: E731
    identity = hloom.jit(lambda x: x)
    for compare in (
        lambda: tree.structure(boxes()[0]) == tree.structure(boxes()[1]),
        lambda: [identity(b) for b in boxes()],
    ):
        with pytest.raises(ValueError, match=r"equality of metadata fields of pytree(.|\n)*arrays must be data fields"):
            compare()


def test_fields_that_init_does_not_take() -> None:
    """They would be lost without a word."""

    def register(**options: Any) -> Any:
        @dataclasses.dataclass
        class Cached:
            x: Any
            size: int = dataclasses.field(default=7, init=False)

        return tree_util.register_dataclass(Cached, **options)

    with pytest.raises(ValueError, match=r"does not take the fields size(.|\n)*drop_fields"):
        register()
    for options in ({"drop_fields": ["size"]}, {"data_fields": ["x"], "meta_fields": []}):
        assert tree.leaves(register(**options)(1)) == [1]


def test_paths_of_a_structure() -> None:
    """Also if the class of a node refuses children that are no arrays."""
    from hloom.tracer.trees import tree as internal

    class Refusing:
        def __init__(self, x: Any) -> None:
            if isinstance(x, int):
                raise TypeError(x)
            self.x = x

    tree_util.register_pytree_with_keys(
        Refusing, lambda r: (((tree_util.GetAttrKey("x"), r.x),), None), lambda _, children: Refusing(*children)
    )
    shown = lambda t: [*map(tree_util.keystr, internal.paths_of_structure(internal.structure(t)))]  # noqa: E731
    everything = {"k": [Pair(1, 2)], "d": collections.deque([3]), "c": classes(tree_util).Data(4)}
    assert shown(everything) == ["['c'].x", "['c'].y", "['d'][0]", "['k'][0].a", "['k'][0].b"]
    assert shown({**everything, "r": Refusing("r")})[2:] == [
        *("['d'][0]", "['k'][0].a", "['k'][0].b", "['r'][<flat index 0>]")
    ]


def test_broadcast_prefix_names_the_tree() -> None:
    from hloom.tracer.trees import tree as internal

    spread = functools.partial(internal.broadcast_prefix, is_leaf=lambda x: x is None, name="in_axes")
    assert spread((None, {"a": 0}), ({"x": 1, "y": (2,)}, {"a": [3, 4]})) == [None, None, 0, 0]
    assert spread(None, [1, None, 2]) == [None, None]
    with pytest.raises(ValueError, match=r"different types at key path\n    in_axes\[1\]\['a'\]\n"):
        spread((None, {"a": [0]}), (1, {"a": 2}))


# ---- in transformations


def test_dictionaries_are_sorted_in_jitted_functions() -> None:
    """A program is shared by dictionaries that differ in order: it does not return the first one's results."""

    @hloom.jit
    def f(d: dict[str, Any]) -> Any:
        return next(iter(d.values())), d

    for d in ({"b": 1.0, "a": 2.0}, {"a": 2.0, "b": 1.0}):
        first, found = f(d)
        assert float(first) == 2.0
        assert list(found) == ["a", "b"]
        found = hloom.jit(lambda d: d)({"k": collections.defaultdict(int, d)})
        assert list(found["k"]) == ["a", "b"]
        assert found["k"].default_factory is int
    assert f._cache_size() == 1


def test_partials_are_arguments() -> None:
    traced = []

    @hloom.jit
    def apply(f: Any, x: Any) -> Any:
        traced.append(f)
        return f(x, k=2.0)

    def scaled(a: Any, x: Any, k: Any) -> Any:
        return a["w"] * x * k

    for w in (3.0, 5.0):
        assert float(apply(tree_util.Partial(scaled, {"w": w}), 2.0)) == w * 4
    assert len(traced) == 1
    gradient = hloom.grad(lambda f: f(2.0, k=3.0))(tree_util.Partial(scaled, {"w": 1.0}))
    assert isinstance(gradient, tree_util.Partial)
    assert float(gradient.args[0]["w"]) == 6.0
    inner = functools.partial(scaled, {"w": 7.0})
    assert float(apply(tree_util.Partial(inner), 1.0)) == 14.0
    assert hash(tree.structure(tree_util.Partial(inner))) == hash(tree.structure(tree_util.Partial(inner)))
    assert float(hloom.jit(tree_util.Partial(scaled, {"w": 7.0}, k=1.0))(2.0)) == 14.0
    assert float(pickle.loads(pickle.dumps(tree_util.Partial(pow, 2)))(3)) == 8


@tree_util.register_dataclass
@dataclasses.dataclass
class Layer:
    w: Any
    n: Any = 1.0


def compiled(x: Any, y: Any = 1.0) -> Any:
    return x["w"][0] + y


TEXT = {"w": [1.0, Layer("text")]}
TYPE = {"w": [1.0, Layer(hloom.ShapeDtypeStruct((2,), "float32"))]}
PLACE = r"argument to compiled at .*test_trees.py:\d+ as .* <class 'str'> .* path x\['w'\]\[1\]\.w\."


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda: hloom.jit(compiled)(TEXT), NonArrayArgumentError, PLACE + "[\\s\\S]*static"),
        (lambda: hloom.jit(compiled)(1.0, y=Layer([TEXT])), NonArrayArgumentError, r"path y\.w\[0\]\['w'\]\[1\]\.w\."),
        (lambda: hloom.jit(compiled)(TYPE), NonArrayArgumentError, r"'x\['w'\]\[1\]\.w' .* compiled at .*[\s\S]*lower"),
        (lambda: hloom.jit(compiled).lower(TEXT), NonArrayArgumentError, PLACE),
        (lambda: hloom.eval_shape(compiled, TEXT), NonArrayArgumentError, PLACE),
        (
            lambda: hloom.jit(lambda x: {"q": [x, Layer("no")]})(1.0),
            *(NonArrayArgumentError, r"returned a value of type str at output component \['q'\]\[1\]\.w, which"),
        ),
        (lambda: hloom.jit(lambda x: "no")(1.0), NonArrayArgumentError, "returned a value of type str, which"),
        (lambda: hloom.eval_shape(lambda x: [x, "no"], 1.0), NonArrayArgumentError, r"output component \[1\], which"),
        (lambda: hloom.lax.scan(lambda c, x: (c, x), TEXT, jnp.ones(2)), TypeError, r"path c\['w'\]\[1\]\.w\."),
        (lambda: hloom.lax.scan(lambda c, x: (c, x), 1.0, TEXT), TypeError, r"path x\['w'\]\[1\]\.w\."),
        (lambda: hloom.lax.while_loop(lambda c: c, lambda c: c, TEXT), TypeError, r"path c\['w'\]\[1\]\.w\."),
        (lambda: hloom.lax.fori_loop(0, 3, lambda i, c: c, TEXT), TypeError, r"path c\['w'\]\[1\]\.w\."),
        (lambda: hloom.lax.cond(True, lambda a: a, lambda a: a, TEXT), TypeError, r"path a\['w'\]\[1\]\.w\."),
        (
            lambda: hloom.lax.scan(lambda c, x: (Layer(c.w, c.n > 0), x), Layer(1.0), jnp.ones(2)),
            *(TreeStructureError, r"component c\.n has type float32\[\]"),
        ),
    ],
)
def test_messages_name_the_leaf(use: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        use()


def test_compiled_functions_name_what_differs() -> None:
    lowered = hloom.jit(compiled, static_argnames="y").lower({"w": [jnp.ones(2), Layer(1.0)]}, y=2.0)
    assert isinstance(lowered.in_tree, tree.PyTreeDef)
    assert lowered.out_tree == tree.structure(0)
    program = lowered.compile()
    assert program.in_tree == lowered.in_tree == tree.structure((({"w": [0, Layer(0)]},), {}))
    rows = [
        (({"w": [jnp.ones(3), Layer(1.0)]},), 2.0, r"float32\[2\] as argument x\['w'\]\[0\], but.*float32\[3\]"),
        (({"w": (jnp.ones(2), Layer(1.0))},), 2.0, r"args\[0\]\['w'\]\n[\s\S]*'list'>[\s\S]*'tuple'>"),
        (({"w": [jnp.ones(2), Layer((1.0,))]},), 2.0, r"args\[0\]\['w'\]\[1\]\.w\n[\s\S]*a leaf[\s\S]*'tuple'>"),
        (({"w": [jnp.ones(2), Layer(1.0)]},), 3.0, "static arguments y=2.0, but called with y=3.0"),
        ((TEXT,), 2.0, "<class .str.>.*It is not an array"),
    ]
    for args, y, message in rows:
        with pytest.raises(TypeError, match=message):
            program(*args, y=y)


def test_parameters_have_the_names_of_the_paths() -> None:
    text = hloom.jit(compiled).lower({"w": [1.0, Layer(2.0)]}).as_text()
    for name in ("x_w_0", "x_w_1_w", "x_w_1_n"):
        assert f" {name} = " in text or f"%{name} = " in text or f"{name}.1 = " in text, text


# ---- ravel_pytree

RAVELED: dict[str, tuple[Callable[[], Any], str, list[Any]]] = {
    "floats": (lambda: {"b": jnp.ones((2, 2)), "a": 3.0}, "float32", [3, 1, 1, 1, 1]),
    "mixed": (lambda: [jnp.arange(3), jnp.ones(1), True], "float32", [0, 1, 2, 1, 1]),
    "integers": (lambda: (jnp.arange(2), (np.int32(5), None)), "int32", [0, 1, 5]),
    "small integers": (lambda: [jnp.ones(1, "int8"), jnp.ones(1, "uint8")], "int16", [1, 1]),
    "halves": (lambda: [jnp.ones(1, "bfloat16"), jnp.ones(1, "float16")], "float32", [1, 1]),
    "complex": (lambda: [1j, jnp.ones(1)], "complex64", [1j, 1]),
    "numpy": (lambda: [np.ones(2)], "float32", [1, 1]),
    "a scalar": (lambda: 2.0, "float32", [2]),
    "booleans": (lambda: [True, jnp.zeros(1, bool)], "bool", [True, False]),
    "nothing": (lambda: [None, ()], "float32", []),
    "no elements": (lambda: [jnp.zeros((0, 3)), jnp.ones(1)], "float32", [1]),
}


@pytest.mark.parametrize("name", RAVELED)
@pytest.mark.parametrize("transform", [lambda f: f, hloom.jit], ids=["eager", "jit"])
def test_ravel_pytree(name: str, transform: Callable[..., Any]) -> None:
    make, dtype, values = RAVELED[name]
    value = make()
    flat = transform(lambda v: flatten_util.ravel_pytree(v)[0])(value)
    assert str(flat.dtype) == dtype
    assert flat.tolist() == values
    _, unravel = flatten_util.ravel_pytree(value)
    again = transform(unravel)(flat)
    assert tree.structure(again) == tree.structure(value)
    for a, b in zip(tree.leaves(again), map(jnp.asarray, tree.leaves(value)), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_array_equal(np.asarray(a, complex), np.asarray(b, complex))
    assert unravel == flatten_util.ravel_pytree(make())[1]
    assert hash(unravel) == hash(flatten_util.ravel_pytree(make())[1])
    try:
        import jax
        from jax.flatten_util import ravel_pytree
    except ImportError:
        return
    theirs, _ = ravel_pytree(jax.tree.map(lambda x: np.asarray(x) if hasattr(x, "shape") else x, value))
    assert (str(theirs.dtype), theirs.tolist(), theirs.weak_type) == (dtype, values, flat.weak_type)


def test_unravel_checks_and_is_static() -> None:
    value = {"w": jnp.ones((2, 2)), "n": jnp.arange(3)}
    flat, unravel = flatten_util.ravel_pytree(value)
    with pytest.raises(ValueError, match=r"shape \(3,\), but expected shape \(7,\).*int32\[3\], float32\[2,2\]"):
        unravel(flat[:3])
    with pytest.raises(TypeError, match="dtype int32, but expected dtype float32"):
        unravel(flat.astype(int))
    with pytest.raises(ValueError, match="expected shape"):
        unravel(1.0)
    with pytest.raises(TypeError, match="type <class 'str'> is not a valid JAX type"):
        flatten_util.ravel_pytree(["a"])
    apply = hloom.jit(lambda u, x: u(x), static_argnums=0)
    assert apply(unravel, flat)["n"].tolist() == [0, 1, 2]
    assert apply(flatten_util.ravel_pytree(value)[1], flat)["w"].shape == (2, 2)
    assert apply._cache_size() == 1
    _, uniform = flatten_util.ravel_pytree([jnp.ones(2)])
    assert str(uniform(jnp.arange(2))[0].dtype) == "int32"
    assert uniform(jnp.ones((2, 1)))[0].shape == (2,)


def test_ravel_pytree_has_derivatives() -> None:
    value = {"w": jnp.asarray([1.0, 2.0]), "b": 3.0}

    def loss(flat: Any, unravel: Any) -> Any:
        parts = unravel(flat)
        return (parts["w"] ** 2).sum() * parts["b"]

    flat, unravel = flatten_util.ravel_pytree(value)
    np.testing.assert_allclose(hloom.grad(loss)(flat, unravel), [5.0, 6.0, 12.0])
    gradient = hloom.jit(hloom.grad(lambda v: (flatten_util.ravel_pytree(v)[0] ** 2).sum()))(value)
    assert (float(gradient["b"]), gradient["w"].tolist()) == (6.0, [2.0, 4.0])
    np.testing.assert_allclose(hloom.hessian(loss)(flat, unravel), [[0, 2, 4], [2, 6, 0], [4, 0, 6]])
    batch = hloom.vmap(unravel)(jnp.stack([flat, flat]))
    assert (batch["w"].shape, batch["b"].shape) == ((2, 2), (2,))


def test_paths_that_the_structure_does_not_say() -> None:
    """Equal structures may have unequal keys: numbers, and what a class says about one object."""
    tree = hloom.tree_util

    class Named:
        def __init__(self, name: str, child: Any) -> None:
            self.name, self.child = name, child

    tree.register_pytree_with_keys(
        Named, lambda n: ([(tree.GetAttrKey(n.name), n.child)], None), lambda _, children: Named("made", *children)
    )

    def paths(x: Any) -> list[str]:
        return [tree.keystr(path) for path, _ in tree.tree_flatten_with_path(x)[0]]

    for _ in range(2):
        assert (paths({1: 0.0}), paths({True: 0.0}), paths({1.0: 0.0})) == (["[1]"], ["[True]"], ["[1.0]"])
        assert (paths([Named("a", 1.0)]), paths([Named("b", 1.0)])) == (["[0].a"], ["[0].b"])
        assert paths({"b": [1, None], "a": (2,)}) == paths({"a": (2,), "b": [3, None]}) == ["['a'][0]", "['b'][0]"]
        assert tree.tree_flatten_with_path({"a": 1})[0] == [((tree.DictKey("a"),), 1)]


AT_THE_END = """
import atexit

@atexit.register
def last():
    import hloom, hloom.numpy as jnp  # imported after this function was registered
    for name, x in trees().items():
        structure = hloom.tree.structure(x)
        same = structure == STRUCTURES[name] and hash(structure) == hash(STRUCTURES[name])
        print(name, hloom.tree.leaves(x), same, hloom.tree.leaves(hloom.tree.map(lambda v: 10 * v, x)))
    class Late: pass
    hloom.tree_util.register_pytree_node(Late, lambda node: ((1, 2), None), lambda _, children: Late())
    print("registered at the end", hloom.tree.leaves([Late()]))
    print("jit", double({"x": 2.0})["x"], hloom.jit(lambda t: t["a"][0] + t["b"].sum())({"a": [1.0], "b": jnp.ones(3)}))
    print("grad", hloom.grad(lambda p: p["w"] ** 2)({"w": 3.0})["w"])

import collections, dataclasses, time
import hloom
Pair = collections.namedtuple("Pair", "p q")

@hloom.tree_util.register_dataclass
@dataclasses.dataclass
class Layer:
    w: float
    name: str = hloom.tree.static(default="layer")

@hloom.tree_util.register_pytree_node_class
class Box:
    def __init__(self, x): self.x = x
    def tree_flatten(self): return (self.x,), None
    @classmethod
    def tree_unflatten(cls, _, children): return cls(*children)

@hloom.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Fixed:
    n: int

def trees():
    return {
        "dict": {"b": 1, "a": 2}, "list": [1, [2]], "tuple": (1, (2,)), "None": [None, 1], "namedtuple": Pair(1, 2),
        "OrderedDict": collections.OrderedDict(b=1, a=2), "defaultdict": collections.defaultdict(int, b=1, a=2),
        "deque": collections.deque([1, 2], maxlen=3), "struct_time": time.gmtime(0)[:2], "dataclass": Layer(1, "n"),
        "class": Box(1), "static": [Fixed(3), 1], "Partial": hloom.tree_util.Partial(print, 1),
    }

STRUCTURES = {name: hloom.tree.structure(x) for name, x in trees().items()}
double = hloom.jit(lambda t: {"x": 2 * t["x"]})
"""


def test_trees_are_containers_until_the_process_ends() -> None:
    found = subprocess.run([sys.executable, "-c", AT_THE_END], capture_output=True, text=True, timeout=120)
    assert not found.stderr
    answers = {
        "dict": [2, 1], "list": [1, 2], "tuple": [1, 2], "None": [1], "namedtuple": [1, 2], "OrderedDict": [1, 2],
        "defaultdict": [2, 1], "deque": [1, 2], "struct_time": [1970, 1], "dataclass": [1], "class": [1],
        "static": [1], "Partial": [1],
    }  # fmt: skip
    lines = [f"{name} {leaves} True {[10 * leaf for leaf in leaves]}" for name, leaves in answers.items()]
    assert found.stdout.splitlines() == [*lines, "registered at the end [1, 2]", "jit 4.0 4.0", "grad 6.0"]
