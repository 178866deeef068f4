"""The step `Padding`: leave out terms with only the zeros around an array."""

from __future__ import annotations

from ..loops.expressions import ZERO, Expr, Name, call, maximum, minimum, product_of, times
from ..loops.typing import is_float
from .bands import Limits
from .offsets import OpenLoops
from .steps import Padding


class TermsOfPadding:
    """The terms of an iteration. Before the first iteration that would have fewer, the other operand
    is checked, if it has floats. ::

        seen = 0
        nothing = 0
        for item in range(lo, hi):
            ...
                first_term = ...
                end_term = ...
                if end_term - first_term < taps:
                    if seen == 0:
                        for j in range(weights):
                            nothing = nothing + w[j]
                        nothing = nothing * 0
                        seen = 1
                    if nothing != 0:
                        first_term = 0
                        end_term = taps
    """

    def __init__(self, here: OpenLoops, padding: Padding) -> None:
        self.here, self.padding, self.terms = here, padding, padding.terms
        algorithm, writer = here.algorithm, here.writer
        self.zero, self.pointer = algorithm.zero, algorithm.operand(padding.other).pointer
        if is_float(self.zero.type):
            self.seen, self.nothing = writer.assign("seen", 0), writer.assign("nothing", self.zero)

    def limits(self, first: Expr, many: int) -> Limits:
        """The terms of the results `first` to ``first + many``; it may be that there are none."""
        here, writer, padding = self.here, self.here.writer, self.padding
        stride, low, size, dilation = (Name(f"line_{x}") for x in ("stride", "low", "size", "dilation"))
        of_line, window, of_window = Name("of_line"), Name("window"), Name("of_window")
        before = times(here.counter(padding.strips), Name("lines"))
        begin = times(before + first // of_line, stride) - low
        end = times(before + minimum((first + (many - 1)) // of_line, Name("last_line")), stride) - low
        start = maximum(0, (dilation - 1 - end) // dilation)
        stop = minimum(window, (size - 1 - begin) // dilation + 1)
        first_term = writer.assign("first_term", times(start, of_window))
        end_term = writer.assign("end_term", times(stop, of_window))
        terms = here.algorithm.dimension(self.terms).extent
        if not is_float(self.zero.type):
            return first_term, end_term
        with writer.if_(end_term - first_term < terms):
            with writer.if_(self.seen.eq(0)):
                with writer.loop("j", Name("weights")) as j:
                    writer.assign(self.nothing, call("reduce_add", self.nothing, self.pointer[j]))
                writer.assign(self.nothing, product_of(self.nothing, self.zero))
                writer.assign(self.seen, 1)
            with writer.if_(self.nothing.ne(self.zero)):
                writer.assign(first_term, ZERO)
                writer.assign(end_term, terms)
        return first_term, end_term
