"""Keep LLVM's code generator from rounding once where a kernel rounds twice.

    %near = fptrunc double %x to float                 a function of f16, computed in f64: sin, cos, pow
    %half = fptrunc float %near to half

Of numbers, not of vectors, it makes one conversion from f64 to f16. That is another result in rare cases, and where no
instruction does it a call of `__truncdfhf2`, which a process may not have. The fence costs no instruction.
"""

from __future__ import annotations

import itertools
import re

_NAME = r"%[-\w.$]+"
_TO_FLOAT = re.compile(rf"({_NAME}) = fptrunc (?:\w+ )*double [^\n]+? to float\b")
_TO_HALF = re.compile(rf"^( *)({_NAME} = fptrunc (?:\w+ )*float) ({_NAME}) to half\b", re.MULTILINE)
_FENCE = "llvm.arithmetic.fence.f32"


def with_both_roundings(text: str) -> str:
    """The optimised LLVM IR of a kernel, with a fence between the roundings."""
    if " to half" not in text:
        return text
    rounded, numbers = set(_TO_FLOAT.findall(text)), itertools.count()

    def kept(found: re.Match[str]) -> str:
        indent, begin, name = found.groups()
        if name not in rounded:
            return found[0]
        own = f"%both.roundings.{next(numbers)}"
        return f"{indent}{own} = call float @{_FENCE}(float {name})\n{indent}{begin} {own} to half"

    fenced = _TO_HALF.sub(kept, text)
    return text if fenced == text else f"{fenced}\ndeclare float @{_FENCE}(float)\n"
