"""Refuses to build where the links in src/longspan are not links: the wheel would lack the folders they stand for."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class LinksHook(BuildHookInterface):  # type: ignore[type-arg]
    """Looks at the three folders of the package: links in a clone, folders in a source distribution."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Raise RuntimeError where one of them is a plain file, as a clone without symbolic links leaves it."""
        for name in ("simulator", "scenarios", "agents"):
            if not (Path(self.root) / "src" / "longspan" / name / "__init__.py").is_file():
                raise RuntimeError(
                    f"src/longspan/{name} is not a link to ../../{name}: clone with symbolic links (git -c core.symlinks=true clone ...)"
                )
