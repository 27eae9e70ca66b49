"""Replace personal data in logs by made-up data of the same kind. Everything happens in this process."""
