"""The foundations of all other packages: errors, sizes, tables, tokens, the clock."""
