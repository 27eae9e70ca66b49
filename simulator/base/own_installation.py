"""How this longspan was installed, and so how to install one of its extras."""

from __future__ import annotations

import json
import shlex
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import longspan

__all__ = ["install_extra"]


def install_extra(extra: str) -> str:
    """Return the command that adds an extra to this installation.

    It asks an index for longspan only if longspan came from one: elsewhere, the name may be another project's.
    """
    try:
        files = distribution("longspan")
        origin, installer = json.loads(files.read_text("direct_url.json") or "{}"), (files.read_text("INSTALLER") or "").strip()
    except PackageNotFoundError:  # a clone on PYTHONPATH
        origin, installer = {"url": Path(longspan.__file__).parents[2].as_uri(), "dir_info": {"editable": True}}, ""
    if origin.get("dir_info", {}).get("editable"):
        folder = Path(url2pathname(urlsplit(origin["url"]).path))
        wanted = ["-e", f"{'.' if folder == Path.cwd() else folder}[{extra}]"]
    elif "url" in origin:
        vcs = origin.get("vcs_info", {})
        prefix, commit = (f"{vcs['vcs']}+", f"@{vcs['commit_id']}") if vcs else ("", "")
        wanted = [f"longspan[{extra}] @ {prefix}{origin['url']}{commit}"]
    else:
        wanted = [f"longspan[{extra}]"]
    if installer == "uv":  # its environments have no pip of their own
        pip = f"uv pip install --python {shlex.quote(sys.prefix)}"
    elif (Path(sys.prefix) / "pipx_metadata.json").is_file():
        pip = "pipx runpip longspan install"
    else:
        pip = "pip install"
    return f"{pip} {shlex.join(wanted)}"
