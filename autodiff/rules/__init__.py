"""Derivatives of ops, one file a family, jvp and transpose side by side; `tables` holds what they register in."""
