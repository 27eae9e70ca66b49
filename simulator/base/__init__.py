"""The foundations of every other room: errors, sizes, tables, tokens, the clock."""
