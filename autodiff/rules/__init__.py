"""Derivatives of ops: each family's file has jvp and transpose rules; `tables` has the tables that register them."""
