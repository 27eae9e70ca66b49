"""Grading: scores with reasons from transcripts, and the rules for reading replies that graders share.

The rules are exported here for custom graders: `from longspan import grading`.
"""

from longspan.simulator.grading.lenient_json import find_json
from longspan.simulator.grading.matching import contains_nearly, contains_phrase, found_words, json_values, number, plain
from longspan.simulator.grading.reading.reading import settled_words

__all__ = ["contains_nearly", "contains_phrase", "find_json", "found_words", "json_values", "number", "plain", "settled_words"]
