"""The `memory` suite: how an agent handles requests to forget, correct, keep apart or disbelieve."""
