"""Mutants: one wrong line at a time, and the test that must notice it. See `docs/mutants.md`."""
