"""Tolerances for rounding errors, in one place for engine and sheets."""

NEAR = 1e-9  # numbers about 1 that differ by less are the same; a shorter vector has no direction
NEAR_LARGE = 1e-11  # what a sum of large numbers may be off by, as a share of their sum
NOISE = 1e-12  # a share that is smaller is what rounding left
LAST_DIGIT = 1e-14  # relative: programs write 15 digits
