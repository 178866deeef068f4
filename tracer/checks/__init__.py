"""Checks that users switch on: NaN and infinity, leaked values, keys used twice, errors at run time."""
