"""ltm: the memory agent of the paper (GoodAI, section 4.2), around any core.

`agent.py` answers; `history.py` knows the turns and which of them are recent; `memory.py` keeps older ones in a vector
database (`index.py`), as vectors (`embedders.py`) of pieces (`fragments.py`); `scratchpad.py` keeps what the core noted;
`prompts.py` words it all; `snapshot.py` saves and loads it.
"""
