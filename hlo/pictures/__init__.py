"""Pictures of layouts: in a terminal (`layout_text.py`), as SVG and PNG (`layout_figure.py`), and in words, step by
step (`layout_steps.py`).

All of them show the cells that `view.py` finds in a shape's physical form. Nothing here makes an array: a shape of 2^40
elements is as quick as one of 15. Only the IR is needed; PNG also needs Matplotlib.
"""

from __future__ import annotations
