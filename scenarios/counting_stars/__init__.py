"""Counting-Stars (Song, Zheng and Luo, 2024): numbers are scattered over a long text, and all of them must be listed."""
