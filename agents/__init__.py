"""The built-in agents, registered in the entry-point group `longspan.agents`."""

if __name__ != "longspan.agents":
    raise ImportError(f"{__name__!r} is longspan's own folder: install longspan and import longspan.agents")
