"""The pass `expand`: ops written with simpler ones, a file for each family. What enters is valid for every backend; the
rules that only one wants are in its own folder, and its pipeline puts the tables together.
"""
