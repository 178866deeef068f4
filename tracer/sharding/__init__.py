"""Devices, meshes and shardings: where arrays and programs are, and programs over several devices."""
