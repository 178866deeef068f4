"""Finding a fault: the pass, the rule or the kernel, and the smallest program that shows it."""
