"""Imports loaded once, before processes are forked to be killed. They would otherwise take most of their short lives."""

from longspan.simulator.suite import load_suite, make_tests
from longspan.simulator.tokens import Tokenizer

Tokenizer()
make_tests(load_suite("ltm"), 0, "spread")
