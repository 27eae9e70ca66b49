"""Imports loaded once, before processes are forked to be killed. They would otherwise take most of their short lives."""

from longspan.simulator.base.tokens import Tokenizer
from longspan.simulator.suite.suite import load_suite, make_tests

Tokenizer()
make_tests(load_suite("ltm"), 0, "spread")
