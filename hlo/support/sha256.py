"""SHA-256 by Python's own code, as `random` uses it: `hashlib` loads OpenSSL, which takes longer than all digests of a
short process."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

__all__ = ["sha256"]

if TYPE_CHECKING:
    from hashlib import sha256
else:
    try:
        if sys.version_info >= (3, 12):
            from _sha2 import sha256
        else:
            from _sha256 import sha256
    except ImportError:  # this Python was built without it
        from hashlib import sha256
