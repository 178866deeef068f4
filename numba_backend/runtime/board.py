"""The board: a block of words, from whose first one each call of a program takes its executor.

recorder.py puts another executor there while it records, and what that one needs into the other words
(recorder_code.py). A process that records nothing needs only this.
"""

from __future__ import annotations

from array import array

from .executor import EXECUTOR
from .store import default_store

BOARD_WORD = 14
"""The word of a program's header that has the board's address."""
BOARD_WORDS = 32
EXECUTE = 0
"""The word of the board with the executor's address."""

BOARD = array("q", bytes(8 * BOARD_WORDS))


def board_address() -> int:
    """The board's address, with an executor on it."""
    if not BOARD[EXECUTE]:
        BOARD[EXECUTE] = default_store().get(EXECUTOR)
    return BOARD.buffer_info()[0]
