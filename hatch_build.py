"""Writes into packages which commit they were built from, and gives the index a README whose links work there."""

import re
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

COMMIT = "src/longspan/commit.txt"
"""Has the commit in a source distribution, and in a zip of the repository (.gitattributes)."""

LINK = re.compile(r'(?P<before>\]\(|<img src=")(?![a-z]+:|#)(?P<path>[^)"]+)')


def find_commit(root: str) -> str | None:
    """Return the commit of the code in `root`, with "-dirty" if it has uncommitted changes, or None if it is unknown."""
    baked = (Path(root) / COMMIT).read_text("utf-8").strip()
    if re.fullmatch("[0-9a-f]{40,64}(-dirty)?", baked):
        return baked
    if not (Path(root) / ".git").exists():  # git would find the repository of a project that contains this folder
        return None
    describe = ["git", "-C", root, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        return subprocess.run(describe, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return None


class CommitHook(BuildHookInterface):  # type: ignore[type-arg]
    """Replaces commit.txt in packages. An editable installation asks git instead."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        commit = find_commit(self.root)
        if commit is not None and version != "editable":
            self.folder = TemporaryDirectory()  # deleted with the hook
            written = Path(self.folder.name) / "commit.txt"
            written.write_text(f"{commit}\n", "utf-8")
            build_data["force_include"][str(written)] = COMMIT


class ReadmeHook(MetadataHookInterface):
    """Makes the README's relative links absolute: they name the commit, or else the release."""

    def update(self, metadata: dict[str, Any]) -> None:
        code = metadata["urls"]["Repository"]
        commit = (find_commit(self.root) or "HEAD").removesuffix("-dirty")

        def complete(link: re.Match[str]) -> str:
            return f"{link['before']}{code}/{'blob' if link['before'] == '](' else 'raw'}/{commit}/{link['path']}"

        text = LINK.sub(complete, (Path(self.root) / "README.md").read_text("utf-8"))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
