"""The bottom trace: all that an operation outside of `jit` and outside of every transformation goes through.

`core.EVAL` sends an operation through the layers that are on, in this order, and then evaluates it:

| layer | is on | does |
|---|---|---|
| executions | once `no_execution` is on | refuses all operations |
| errors | once `jax_error_checking_behavior_*` is "raise" | remembers the first error, and goes on |
| keys | once `debug_key_reuse` is on | refuses a random key that was used before |
| places | once there are several devices, or an array over a mesh | runs an operation where its operands are |
| deferral | once a `jit_scope` was entered, or `hloom_jit_level` set | records it, to be compiled with others |
| results | once `debug_nans` or `debug_infs` is on | refuses NaN and infinities |
| evaluation | always | computes: NumPy, or a compiled program (`core.EvalTrace`) |

The settings (`settings/context.py`), the devices (`sharding/devices.py`) and `deferred/jit_scope.py` turn layers on, by
`LAYERS.turn_on`. A layer that is on stays on, and then looks up for each operation whether it has something to do in
this thread. The modules of the first three, and of deferral, are imported when they are needed.

A call of a jitted function does not come here: `PjitFunction.__call__` says what it goes through.
"""

from __future__ import annotations

from ..hlo.support.loading import load
from .core import EVALUATION, CheckingLayer
from .layers import LAYERS
from .settings.config import config
from .sharding.placed_operations import PlacementLayer

LAYERS.define(
    EVALUATION,
    executions=lambda: load(".checks.no_execution", __package__).RefusingLayer(),
    errors=lambda: load(".checks.error_state", __package__).LookingLayer(),
    keys=lambda: load(".checks.key_reuse", __package__).KeyLayer(),
    places=PlacementLayer,
    deferral=lambda: load(".deferred.deferral", __package__).DeferralLayer(),
    results=CheckingLayer,
)
if config.hloom_jit_level:
    load(".deferred.jit_scope", __package__).change_level(config.hloom_jit_level)
