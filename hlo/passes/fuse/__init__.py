"""Passes that decide which operations are computed together, in which steps, and when: they make ordered kernels of
operations. They change no layouts; the limits for a kernel or a thread are options that the backend gives.
"""
