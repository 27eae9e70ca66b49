"""What everything stands on: errors, sizes, tables, tokens, the clock."""
