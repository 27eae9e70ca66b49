"""Grading: read replies and transcripts, and return scores with reasons.

The package exports matching rules for custom graders: `from longspan import grading`.
"""

from longspan.simulator.base.lenient_json import find_json
from longspan.simulator.base.words import number, plain
from longspan.simulator.reading.matching import contains_nearly, contains_phrase, found_words, json_values
from longspan.simulator.reading.replies.reading import settled_words

__all__ = ["contains_nearly", "contains_phrase", "find_json", "found_words", "json_values", "number", "plain", "settled_words"]
