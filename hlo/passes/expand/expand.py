"""Expansion: it writes ops that a backend has no code for with ops that it has code for.

The rules are in this folder, a file for each family; `../rewriter.py` applies them. A backend gives the pass its table:
`EXPANSIONS`, with the backend's additions, without the ops that it implements. Source of the idea: XLA's
float-normalization, dot-decomposer
and rng-bit-generator-expander.
"""

from __future__ import annotations

from ...ir import HloModule
from ...opcode import Opcode
from ...support.records import dataclass
from ..rewriter import RewriteLog, apply_rules
from ..rules import RuleSet, rule
from .asynchronous import ASYNCHRONOUS
from .collective import COLLECTIVE
from .convolution import (
    batch_groups_as_feature_groups,
    convolution_in_one_type,
    convolution_of_nothing,
    phases_of_dilated_input,
    reversed_window,
)
from .custom_call import annotation, topk, unwritten_memory
from .dot import ragged_dot, scaled_dot
from .elementwise import complex_extremum, stochastic_convert
from .indexing import gather_of_empty_slices
from .map import mapped
from .normalization import batch_norm_grad, batch_norm_inference, batch_norm_training
from .random import rng, rng_bit_generator
from .reduce import reduce_in_wider_type
from .scan import scan
from .small_types import COMPUTED_WIDER, bitcast_of_other_width, bitcast_to_other_type, computed_wider
from .sort import topk_by_sort
from .window import window_of_everything

_O = Opcode

EXPANSIONS = RuleSet(
    (
        rule(computed_wider, *COMPUTED_WIDER),
        rule(complex_extremum, _O.MAXIMUM, _O.MINIMUM),
        rule(mapped, _O.MAP),
        rule(stochastic_convert, _O.STOCHASTIC_CONVERT),
        rule(batch_norm_grad, _O.BATCH_NORM_GRAD),
        rule(batch_norm_inference, _O.BATCH_NORM_INFERENCE),
        rule(batch_norm_training, _O.BATCH_NORM_TRAINING),
        rule(bitcast_to_other_type, _O.BITCAST),
        rule(bitcast_of_other_width, _O.BITCAST_CONVERT),
        rule(convolution_of_nothing, _O.CONVOLUTION),
        rule(convolution_in_one_type, _O.CONVOLUTION),
        rule(batch_groups_as_feature_groups, _O.CONVOLUTION),
        rule(reversed_window, _O.CONVOLUTION),
        rule(phases_of_dilated_input, _O.CONVOLUTION),
        rule(annotation, _O.CUSTOM_CALL),
        rule(topk, _O.CUSTOM_CALL),
        rule(unwritten_memory, _O.CUSTOM_CALL),
        rule(gather_of_empty_slices, _O.GATHER),
        rule(ragged_dot, _O.RAGGED_DOT),
        rule(scaled_dot, _O.SCALED_DOT),
        rule(window_of_everything, _O.REDUCE_WINDOW),
        rule(reduce_in_wider_type, _O.REDUCE, _O.REDUCE_WINDOW),
        rule(rng, _O.RNG),
        rule(rng_bit_generator, _O.RNG_BIT_GENERATOR),
        *ASYNCHRONOUS,
        *COLLECTIVE,
        rule(scan, _O.SCAN),
        rule(topk_by_sort, _O.TOPK),
    )
)
"""The rules that write ops with simpler ones, for every backend, in the order in which they are tried."""

MAX_WALKS = 100
"""The limit of walks over the module: rules may rewrite each other's results, but not without end."""
LAST_WALKS = 4
"""Rules that fired in this number of last walks are reported as not settling."""


@dataclass(frozen=True, slots=True)
class Expand:
    """The pass: tries every rule on every instruction until nothing changes."""

    rules: RuleSet
    name: str = "expand"

    def __call__(self, module: HloModule) -> HloModule:
        return self.rewrite(module, RewriteLog())

    def rewrite(self, module: HloModule, log: RewriteLog) -> HloModule:
        several = module.replica_count * module.num_partitions > 1
        rules = self.rules.of_several_devices if several else self.rules
        for walk in range(MAX_WALKS):
            if walk == MAX_WALKS - LAST_WALKS:
                counted = dict(log.counts)
            before, module = module, apply_rules(module, rules, log)
            if module is before:
                return module
        log.unfinished.update({name: None for name, count in log.counts.items() if count != counted.get(name, 0)})
        return module
