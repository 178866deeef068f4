"""Cases of single operations: the cases of the table, one after the other, on the sets of data of random programs.

Seed n is case n of the table, so a run of as many programs as the table has cases tries each once.
"""

from __future__ import annotations

import random

from hloom.hlo.opcode import Opcode

from hloom.backend_check.op_case import make_inputs
from hloom.backend_check.op_table import CASES, build_module
from hloom.backend_check.op_values import any_value, finite

from . import data, module_cases, module_runs
from .case import Case, Outcome, Stage
from .minimise import Shows

COUNT = len(CASES)
ANY = frozenset({any_value, finite})
"""Values of operands that may be any: others are members of replica groups, triangles. Sizes of groups may be any."""


def draw(seed: int) -> Case:
    """The case of a seed."""
    case = CASES[seed % COUNT]
    options = module_runs.random_options(random.Random(seed)) if seed >= COUNT else {}
    return Case("op", seed, build_module(case).to_text(), tuple(make_inputs(case, seed)), options)


def with_data(case: Case, number: int) -> Case:
    """The case with another set of data; some operands keep the kind of values that they require."""
    given = CASES[case.seed % COUNT]
    flavours, inputs = data.another(case.inputs, case.seed, number)
    own = make_inputs(given, case.seed + COUNT * number)
    chosen = zip(given.arrays, inputs, own, strict=True)
    any_sizes = given.opcode is Opcode.RAGGED_DOT
    inputs = tuple(drawn if any_sizes or array.values in ANY else wanted for array, drawn, wanted in chosen)
    return case.but(data=number, inputs=inputs, options=module_runs.other_run(case.options, flavours, number))


def check(case: Case, stage: Stage) -> Outcome:
    """See `module_cases.check`."""
    return module_cases.check(case, stage)


def minimised(case: Case, shows: Shows) -> Case:
    """See `module_cases.minimised`."""
    return module_cases.minimised(case, shows)
