"""Modules with one loop, from the text of its body: for operations that the tracer does not offer."""

from __future__ import annotations

from collections.abc import Sequence

from hloom.hlo.ir import HloModule

from hloom import hlo


def loop_module(state: Sequence[str], body: str, computations: str = "") -> HloModule:
    """A `while` over values of these types. `body` computes ``y0``, ``y1``, ... from ``x0``, ``x1``, ... and the
    counter ``i``. The entry's parameters are the number of iterations, s32[], and the initial state."""
    types = ["s32[]", "s32[]", *state]
    tuple_type = f"({', '.join(types)})"
    old = "\n".join(f"  x{k} = {t} get-tuple-element(p), index={k + 2}" for k, t in enumerate(state))
    new = ", ".join(f"y{k}" for k in range(len(state)))
    inputs = "\n".join(f"  a{k} = {t} parameter({k})" for k, t in enumerate(types[1:]))
    values = ", ".join(f"a{k}" for k in range(len(types) - 1))
    results = "\n".join(f"  r{k} = {t} get-tuple-element(w), index={k + 2}" for k, t in enumerate(state))
    names = ", ".join(f"r{k}" for k in range(len(state)))
    return hlo.parse(f"""
HloModule loop

{computations}

condition {{
  p = {tuple_type} parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] get-tuple-element(p), index=1
  ROOT r = pred[] compare(i, n), direction=LT
}}

body {{
  p = {tuple_type} parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] get-tuple-element(p), index=1
{old}
{body}
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT r = {tuple_type} tuple(next, n, {new})
}}

ENTRY main {{
{inputs}
  zero = s32[] constant(0)
  s = {tuple_type} tuple(zero, {values})
  w = {tuple_type} while(s), condition=condition, body=body
{results}
  ROOT r = ({", ".join(state)}) tuple({names})
}}
""")
