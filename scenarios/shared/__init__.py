"""What scenarios of several suites share."""
