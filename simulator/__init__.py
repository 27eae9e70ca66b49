"""The engine: plays, grades and shows conversations. It finds scenarios and agents by entry point and knows none by name."""

if __name__ != "longspan.simulator":
    raise ImportError(f"{__name__!r} is longspan's own folder: install longspan and import longspan.simulator")

try:
    import fcntl  # noqa: F401
except ImportError:
    raise ImportError("longspan needs Linux or macOS; on Windows, install it in WSL", name=__name__) from None
