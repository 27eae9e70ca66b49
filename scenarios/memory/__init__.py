"""The scenarios of the suite `memory`: how an agent handles requests to forget, correct, keep apart or disbelieve."""
