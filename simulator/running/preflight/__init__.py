"""Tools to check an agent, estimate costs and rehearse a test."""
