from .tracer.arrays.layouts import Space as Space
