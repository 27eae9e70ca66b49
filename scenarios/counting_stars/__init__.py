"""Counting-Stars (Song, Zheng and Luo, 2024): numbers scattered over a long text, all of them to be listed."""
