"""Choose the schedule of an algorithm on a machine. Only this folder distinguishes cases. It has one file for each kind
of algorithm; each choice has the measurement that justifies it."""

FEW_IMAGES = 8
"""Fewer images are not enough work to share between threads image by image."""
