"""The pass `expand`: writes ops with simpler ones; one file for each family. Rules here are valid for every backend. A
rule that only one backend wants is in its folder; its pipeline combines the tables.
"""
