"""The rules that only batching needs. Importing this file completes `BATCH`; `tables.load_batch_rules` does that when a
function is batched, after it has imported `every.py`: a program that is only differentiated needs none of them."""

from __future__ import annotations

from . import control_flow_batches, custom_batches, declared, every, from_text, scan_batches
from .tables import BATCH

RULES = (*every.RULES, control_flow_batches, custom_batches, declared, scan_batches)

declared.register_declared()  # for the ops without a rule in the families
BATCH.unsupported(
    [o for o in from_text.FROM_TEXT if o not in BATCH], "it comes from HLO text only, which is run and not batched"
)
