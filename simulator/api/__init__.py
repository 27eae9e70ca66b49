"""longspan from Python: functions that play runs, and result objects. `longspan` exports the public names."""
