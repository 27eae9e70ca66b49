"""Analysis of graded runs: comparisons, statistics, exports, commitments."""
