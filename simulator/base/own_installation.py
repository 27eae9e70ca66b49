"""How this longspan was installed, and so how to install one of its extras."""

from __future__ import annotations

import json
import shlex
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import longspan

__all__ = ["install_extra"]


def install_extra(extra: str) -> str:
    """Return the command that adds an extra to this installation.

    It asks an index for longspan only if longspan came from one: elsewhere, the name may be another project's.
    """
    clone = Path(longspan.__file__).parents[2]
    if (clone / "pyproject.toml").is_file():  # an editable installation, or a clone on PYTHONPATH
        wanted = ["-e", f"{'.' if clone == Path.cwd() else clone}[{extra}]"]
    else:
        origin = json.loads(_read("direct_url.json") or "{}")
        vcs = origin.get("vcs_info")
        at = origin.get("url", "")
        if vcs:  # pip refuses an address without a host here
            at = f"{vcs['vcs']}+{at.replace('file:///', 'file://localhost/')}@{vcs['commit_id']}"
        wanted = [f"longspan[{extra}]{at and f' @ {at}'}"]
    if _read("INSTALLER") == "uv":  # its environments have no pip of their own
        pip = f"uv pip install --python {shlex.quote(sys.prefix)}"
    elif (Path(sys.prefix) / "pipx_metadata.json").is_file():
        pip = "pipx runpip longspan install"
    else:
        pip = "pip install"
    return f"{pip} {shlex.join(wanted)}"


def _read(name: str) -> str:
    """Return a file of the installation's metadata; empty if there is none."""
    try:
        return (distribution("longspan").read_text(name) or "").strip()
    except PackageNotFoundError:
        return ""
