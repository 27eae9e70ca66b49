"""longspan new: write a small tested project for a scenario, a memory or an agent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from longspan.simulator.base.terminal import quote_command, say

__all__ = ["new"]

NAME: Final = r"(?=.{1,60}$)[a-z][a-z0-9]*(_[a-z0-9]+)*"
"""The pattern of names: of a scenario, of a module, and, with hyphens, of a distribution."""

STARTERS: Final = Path(__file__).parent / "starters"

COMMANDS: Final = {
    "scenario": ("run --scenario {} --span 2k --agent oracle", "python:{0}:{1}", "{0}"),
    "memory": ("check --agent {}", "memory/python:{0}:{1}?answerer=none", "memory/{0}?answerer=none"),
    "agent": ("check --agent {}", "python:{0}:{1}", "{0}"),
}
"""By kind: the command to try first, and what names the class, before and after the project is installed."""


def new(
    kind: Annotated[Literal["scenario", "memory", "agent"], typer.Argument(help="What to write.", show_default=False)],
    name: Annotated[str, typer.Argument(help="Its name, such as my_memory. Runs name it so after installation.", show_default=False)],
    folder: Annotated[Path | None, typer.Argument(help="The new folder.", show_default="NAME")] = None,
) -> None:
    """Write a project with a working scenario, memory or agent to change, and its tests.

    It has the class, tests for pytest, a pyproject.toml that registers the class, and a README with the commands to run it.
    """
    from string import Template

    from longspan.simulator.base.errors import InputError
    from longspan.simulator.base.files.file_io import write_new_folder

    if (problem := _find_problem(kind, name)) is not None:
        raise InputError(f"{name!r:.80} cannot be the name: {problem}")
    path = folder or Path(name)
    cls = "".join(part.capitalize() for part in name.split("_"))
    command, before, after = COMMANDS[kind]
    values = {
        "article": "An" if kind == "agent" else "A",
        "cls": cls,
        "command": f"longspan {command.format(quote_command(before.format(name, cls)))}",
        "distribution": name.replace("_", "-"),
        "group": "memories" if kind == "memory" else f"{kind}s",
        "installed": f"longspan {command.format(quote_command(after.format(name)))}",
        "kind": kind,
        "name": name,
    }
    files = {
        "README.md": "readme.txt",
        "pyproject.toml": "pyproject.txt",
        f"{name}.py": f"{kind}/module.txt",
        f"test_{name}.py": f"{kind}/test.txt",
    }
    with write_new_folder(path, "name another after the name") as made:
        for file, starter in files.items():
            (made / file).write_text(Template((STARTERS / starter).read_text("utf-8")).substitute(values), "utf-8")
    say(f"{path}: {', '.join(files)}")
    say(f"next    {quote_command('cd', path)} && python -m pytest && {values['command']}")


def _find_problem(kind: str, name: str) -> str | None:
    """Say why a project cannot have a name, or return None."""
    import re
    import sys
    from importlib.util import find_spec
    from keyword import iskeyword

    from longspan.simulator.base.installed import AGENTS, MEMORIES, SCENARIOS, find_entry_points

    if not re.fullmatch(NAME, name):
        return "a name has lower-case letters, digits and single underscores between them, and begins with a letter"
    if name in find_entry_points({"scenario": SCENARIOS, "memory": MEMORIES, "agent": AGENTS}[kind]):
        return f"there is {'an' if kind == 'agent' else 'a'} {kind} of this name"
    if iskeyword(name):
        return "it is a keyword of Python"
    if name in (*sys.stdlib_module_names, "conftest", "setup") or getattr(find_spec(name), "origin", None) is not None:
        return "it is the name of another module"
    return None
