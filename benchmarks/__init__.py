"""Speed and memory, measured by hand: `python -m benchmarks NAME`. Figures are ratios taken in one run."""
