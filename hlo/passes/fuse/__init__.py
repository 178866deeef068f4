"""Passes that decide what is computed together, in which steps, and when: from operations to kernels in an order. What
enters changes no layout; how much is too much for a kernel or a thread is an option that the backend gives.
"""
