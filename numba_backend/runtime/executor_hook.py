"""The executor hook: each call of a program takes its executor from the first word of this block.

While it records, recorder.py puts another executor there, and the data of that executor into the other words
(recorder_code.py). A process that records nothing needs only this.
"""

from __future__ import annotations

from array import array

from .executor import EXECUTOR
from .store import default_store

HOOK_WORD = 14
"""The word of a program's header that has the hook's address."""
HOOK_WORDS = 32
EXECUTE = 0
"""The word of the hook with the executor's address."""

HOOK = array("q", bytes(8 * HOOK_WORDS))


def hook_address() -> int:
    """The hook's address, with an executor on it."""
    if not HOOK[EXECUTE]:
        HOOK[EXECUTE] = default_store().get(EXECUTOR)
    return HOOK.buffer_info()[0]
