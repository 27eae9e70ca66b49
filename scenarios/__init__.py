"""The scenarios that come with longspan, found by entry point in the group `longspan.scenarios`."""

if __name__ != "longspan.scenarios":
    raise ImportError(f"{__name__!r} is longspan's own folder: install longspan and import longspan.scenarios")
