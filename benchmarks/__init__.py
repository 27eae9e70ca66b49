"""Benchmarks of speed and memory, run by hand: `python -m benchmarks NAME`. Figures are ratios from one run."""
