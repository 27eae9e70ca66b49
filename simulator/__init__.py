"""The engine: plays conversations, grades and shows them. It knows no scenario and no agent by name."""

if __name__ != "longspan.simulator":
    raise ImportError(f"{__name__!r} is longspan's own folder: install longspan and import longspan.simulator")
