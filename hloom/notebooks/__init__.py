"""How the package's objects look in a notebook: as HTML with pictures, made when one is shown and not before.

`views.py` says which function shows which class. All of them are put together from the few elements of `page.py`, the
drawings of `hlo/pictures/`, and coloured text (`syntax.py`). There is no JavaScript, since notebooks remove it, and
nothing is loaded from elsewhere. Any text of a user is escaped.
"""

from __future__ import annotations
