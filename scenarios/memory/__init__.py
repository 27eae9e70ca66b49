"""The scenarios of the suite `memory`: what an agent does with what it was asked to forget, correct, keep apart or not to believe."""
