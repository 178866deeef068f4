"""Primitives that are defined as JAX's are: by an implementation, types of results, rules in tables, and a lowering.

    square_p = Primitive("square_p")
    square_p.def_impl(lambda x: x * x)
    square_p.def_abstract_eval(lambda x: ShapedArray(x.shape, x.dtype))
    ad.primitive_jvps[square_p] = lambda primals, tangents: ...
    mlir.register_lowering(square_p, mlir.lower_fun(lambda x: x * x, multiple_results=False))

The lowering is the meaning: it is traced when a program is recorded, with a context (`contexts.py`), and with arrays
where JAX gives it values of MLIR. A lowering that combines functions of `interpreters.mlir` and operations of
`hloom.extend.mlir.dialects` runs; one that builds other parts of MLIR does not. There may be lowerings for single
platforms, which a program that is exported for these has. The implementation runs outside of jit. A rule in a table
becomes the rule of the primitive in `tracer/primitive.py`; this module translates JAX's conventions into its terms:
lists if the primitive has `multiple_results`, `Zero` and `UndefinedPrimal`, the positions of batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..autodiff.batches import Axis
from ..autodiff.tangents import Linear, Operand, Tangent, Zero
from ..hlo.errors import UnsupportedError
from ..hlo.support.records import dataclass
from ..tracer.arrays.array import as_value
from ..tracer.arrays.overlay import storages
from ..tracer.aval import ShapedArray, aval_of_shape
from ..tracer.control_flow.platforms import lowering_platforms, on_each_platform
from ..tracer.core import Call, Primitive, Value
from ..tracer.ops import transpose
from ..tracer.trees import tree
from .contexts import LoweredFunction, LoweringRuleContext, ModuleContext, TokenSet
from .effects import lowerable_effects, ordered_effects
from .given import Given, tangent_of


class UndefinedPrimal:
    """In a transpose rule, an operand with a type and no value: the operation is linear in it.

    >>> UndefinedPrimal(hloom.typeof(1.5)).aval
    ShapedArray(float32[], weak_type=True)
    """

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval: ShapedArray = aval

    def __repr__(self) -> str:
        return f"UndefinedPrimal({self.aval})"


tree.register_pytree_node(UndefinedPrimal, lambda u: ((), u.aval), lambda aval, _: UndefinedPrimal(aval))


@dataclass(frozen=True, slots=True)
class AxisData:
    """The axis of a batch, as batching rules get it."""

    name: Any
    size: int
    spmd_name: None = None
    explicit_mesh_axis: None = None


EFFECTS = "hloom.effects"
"""The attribute of a composite in HLO text that lists its effects, as `text_of_effects` writes them. No parameter of a
primitive has this name."""


def text_of_effects(effects: Iterable[Any]) -> str:
    """Effects in one line, sorted."""
    return "; ".join(sorted(map(str, effects)))


class Definition:
    """A user's declarations about a primitive in JAX's way."""

    def __init__(self, owner: Any, core: Primitive) -> None:
        self.owner, self.core = owner, core
        self.impl: Callable[..., Any] | None = None
        self.abstract_eval: Callable[..., Any] | None = None
        self.has_effects = False
        """Whether `abstract_eval` returns (types, effects)."""
        self.lowerings: dict[str | None, Callable[..., Any]] = {}
        """By platform; None: of the platforms that have none of their own."""
        self._kept: list[Any] = []
        self._evaluate_meaning = core.evaluate
        core.evaluate = self._evaluate

    # ---- running it

    def call(self, values: Sequence[Value], params: dict[str, Any]) -> Call:
        """A use of the primitive."""
        avals = tuple([v.aval for v in values])
        effects = self._effects(avals, params)
        use = Given(self.owner, params, avals, effects)

        def meaning(inner: list[Value]) -> list[Value]:
            return self._lowered(use, inner)

        printed = [(k, repr(v)) for k, v in sorted(params.items())]
        if effects:
            printed.append((EFFECTS, text_of_effects(effects)))
        return Call(self.core, meaning, use, self.owner.name, tuple(printed))

    def _effects(self, avals: Sequence[ShapedArray], params: dict[str, Any]) -> frozenset[Any]:
        if self.abstract_eval is None or not self.has_effects:
            return frozenset()
        return frozenset(self.abstract_eval(*avals, **params)[1])

    def _evaluate(self, call: Call, arrays: Sequence[Value]) -> list[Any]:
        use: Given = call.params
        if self.impl is None:
            return list(self._evaluate_meaning(call, arrays)) if self.owner.has_meaning else self._lowered(use, arrays)
        return _flat(use.results(self.impl(*use.operands(arrays), **use.params)))

    def _lowered(self, use: Given, values: Sequence[Value]) -> list[Value]:
        """The results of the lowering of the platform, or of each platform for which the program is exported."""
        if unknown := lowerable_effects.filter_not_in(use.effects):
            raise ValueError(f"Cannot lower jaxpr with effects: {unknown}, of the primitive {self.owner.name}")
        types = self.result_types(use)
        chosen = [self._lowering_for(platform) for platform in lowering_platforms()]

        def with_rule(rule: Callable[..., Any]) -> Callable[..., list[Value]]:
            return lambda *given: self._checked(rule, use, list(given), types)

        functions = {rule: with_rule(rule) for rule in chosen}
        return list(on_each_platform([functions[rule] for rule in chosen], values))

    def _lowering_for(self, platform: str) -> Callable[..., Any]:
        found = self.lowerings.get(platform, self.lowerings.get(None))
        if found is None:
            where = "" if platform == "cpu" else f" for the platform {platform}"
            raise UnsupportedError(
                f"the primitive {self.owner.name} has no lowering{where}, so jit cannot compile it: register one with "
                "mlir.register_lowering(primitive, mlir.lower_fun(function_of_arrays, multiple_results=...)), or set "
                "its meaning with primitive.def_meaning(function_of_arrays)"
            )
        return found

    def _checked(
        self, lowering: Callable[..., Any], use: Given, values: Sequence[Value], types: list[ShapedArray] | None
    ) -> list[Value]:
        tokens = TokenSet.create(ordered_effects.filter_in(use.effects))
        context = LoweringRuleContext(ModuleContext(self._kept), self.owner, use.avals, types, tokens)
        try:
            results = _flat(lowering(context, *use.operands(values), **use.params))
        except (AttributeError, TypeError, ValueError) as error:
            if isinstance(lowering, LoweredFunction):
                raise
            raise UnsupportedError(
                f"the lowering of the primitive {self.owner.name} fails on traced arrays ({error}), which it gets in "
                "place of MLIR's values. Of MLIR's operations, those in hloom.extend.mlir.dialects take arrays; "
                "for others, make it with mlir.lower_fun(function_of_arrays, multiple_results=...)"
            ) from error
        if types is not None:
            found = [(r.aval.shape, r.aval.dtype) for r in results]
            if found != [(t.storage.shape, t.storage.dtype) for t in types]:
                wanted = ", ".join(t.str_short() for t in types)
                raise TypeError(
                    f"the lowering of {self.owner.name} gives {', '.join(r.aval.str_short() for r in results)}, but "
                    f"its abstract evaluation says {wanted}"
                )
        return results

    def result_types(self, use: Given) -> list[ShapedArray] | None:
        """The result of `abstract_eval`; None without one."""
        if self.abstract_eval is None:
            return None
        found = self.abstract_eval(*use.avals, **use.params)
        types = use.results(found[0] if self.has_effects else found)
        return [a.aval if hasattr(a, "aval") else a for a in types]

    # ---- its rules, in the terms of `tracer/primitive.py`

    def set_jvp(self, rule: Callable[..., Any]) -> None:
        """rule(primals, tangents, **params) -> (results, tangents of the results)."""

        def jvp(
            call: Call, primals: Sequence[Value], tangents: Sequence[Tangent]
        ) -> tuple[list[Value], list[Tangent]]:
            use: Given = call.params
            own = len(use.avals)
            if not all(isinstance(t, Zero) for t in tangents[own:]):
                raise TypeError(f"the lowering of {self.owner.name} closes over a value that is differentiated")
            given, moved = rule(use.operands(primals), tangents[:own], **use.params)
            results = _flat(use.results(given))
            pairs = zip(results, use.results(moved), strict=True)
            return results, [tangent_of(r, t) for r, t in pairs]

        self.core.jvp = jvp

    def set_transpose(self, rule: Callable[..., Any]) -> None:
        """rule(cotangents, *operands, **params) -> a cotangent, Zero or None for each operand."""

        def transpose(
            call: Call, cotangents: Sequence[Value | None], operands: Sequence[Operand]
        ) -> Sequence[Value | None]:
            use: Given = call.params
            shapes = call.computation.root.shape.elements
            given = [Zero(aval_of_shape(s)) if c is None else c for c, s in zip(cotangents, shapes, strict=True)]
            own = use.operands(operands)
            first = given if self.owner.multiple_results else given[0]
            found = transposed(rule, first, own, use.params, self.owner.name)
            return [*found, *[None] * call.captured]

        self.core.transpose = transpose
        self.core.is_linear = True

    def set_batch(self, rule: Callable[..., Any]) -> None:
        """rule(axis data, operands, positions of the batch, **params) -> (results, their positions)."""

        def batch(
            call: Call, operands: Sequence[Value], batched: Sequence[bool], axis: Axis
        ) -> tuple[list[Value], list[bool]]:
            use: Given = call.params
            own = len(use.avals)
            if any(batched[own:]):
                raise TypeError(f"the lowering of {self.owner.name} closes over a value that is batched")
            whole = [
                a.update(shape=(axis.size, *a.shape)) if b else a for a, b in zip(use.avals, batched, strict=False)
            ]
            inside = Given(self.owner, use.params, tuple(whole)).operands(operands)
            positions = tuple([0 if b else None for b in batched[:own]])
            given, found = rule(AxisData(axis.name, axis.size), inside, positions, **use.params)
            results = _flat(use.results(given))
            places = list(found) if self.owner.multiple_results else [found]
            pairs = list(zip(results, places, strict=True))
            return [to_front(r, p) for r, p in pairs], [p is not None for _, p in pairs]

        self.core.batch = batch


def transposed(
    rule: Callable[..., Any], cotangents: Any, operands: Sequence[Operand], params: dict[str, Any], name: str
) -> list[Value | None]:
    """The results of a transpose rule: a cotangent, or None, for each operand."""
    inside = [UndefinedPrimal(o.aval) if isinstance(o, Linear) else o for o in operands]
    answer = list(rule(cotangents, *inside, **params))
    if len(answer) != len(operands):
        raise TypeError(f"the transpose rule of {name} gives {len(answer)} cotangents for {len(operands)} operands")
    return [None if c is None or c is Zero or isinstance(c, Zero) else as_value(c) for c in answer]


def _flat(results: Sequence[Any]) -> list[Value]:
    return list(storages(tuple([as_value(r) for r in results])))


def to_front(value: Value, position: int | None) -> Value:
    if not position:
        return value
    order = [position, *(d for d in range(value.aval.ndim) if d != position)]
    return transpose(value, order)
