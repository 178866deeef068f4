"""A backend that writes C and lets the system's compiler make code of it: scenario 1 of docs/new_backend.md."""
