"""The agents that come with longspan, found by entry point in the group `longspan.agents`."""

if __name__ != "longspan.agents":
    raise ImportError(f"{__name__!r} is longspan's own folder: install longspan and import longspan.agents")
