"""Control flow on traced values: loops and branches."""
