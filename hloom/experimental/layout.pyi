from ..tracer.arrays.layouts import Format as Format, Layout as Layout
