"""The memory agent of the paper (GoodAI, section 4.2), around any core.

`agent.py` answers messages. `history.py` stores the turns and tracks which are recent. `memory.py` keeps older ones in a vector database
(`index.py`), as vectors (`embedders.py`) of pieces (`fragments.py`). `scratchpad.py` holds the core's notes, which `notes.py` updates.
`prompts.py` renders the prompts. `snapshot.py` saves and loads everything.
"""
