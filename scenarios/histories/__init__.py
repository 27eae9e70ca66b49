"""Recorded conversations with questions about them: LoCoMo, LongMemEval, BEAM, PersonaMem, and users' own logs."""

from longspan.scenarios.histories.history import History, Question, Session, Utterance
from longspan.scenarios.histories.registry import READERS, read_histories

__all__ = ["READERS", "History", "Question", "Session", "Utterance", "read_histories"]
