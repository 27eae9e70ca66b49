"""The scenarios that come with longspan, one per module, found by entry point."""
