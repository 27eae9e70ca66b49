"""Analysis of graded runs: comparisons, statistics, exports and commitments."""
