"""Virtual environments with longspan's wheel installed, and with links to distributions of the environment that runs the tests."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final, final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import longspan

__all__ = ["PROJECT", "ROOT", "Environment", "build", "register"]

ROOT: Final = Path(__file__).parents[1]

PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"] | {"version": longspan.__version__}


def build(target: str, out: Path, *, source: Path = ROOT) -> Path:
    """Build longspan's `target`, "wheel", "wheel:editable" or "sdist", from a checkout or an unpacked sdist. Return the file, in `out`."""
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(out)], cwd=source, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (found,) = out.glob("*.tar.gz" if target == "sdist" else "*.whl")
    return found


def register(project: dict[str, Any], site: Path) -> None:
    """Make a project's entry points known to a Python that has `site` on its path, as an installation would."""
    folder = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n", "utf-8")
    lines = [
        line
        for group, points in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {target}" for name, target in points.items()))
    ]
    (folder / "entry_points.txt").write_text("\n".join(lines) + "\n", "utf-8")


@final
class Environment:
    """A virtual environment with what longspan and its `extras` require, the distributions `besides`, and nothing else.

    Distributions are linked from the environment that runs the tests, which is quicker than to install them.
    """

    def __init__(self, folder: Path, extras: Iterable[str] = (), *, besides: Iterable[str] = ()) -> None:
        venv.create(folder, symlinks=True)
        self.bin = folder / "bin"
        self.python = self.bin / "python"
        self.site = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
        wanted = [*besides, *PROJECT["dependencies"], *(text for extra in extras for text in PROJECT["optional-dependencies"][extra])]
        for name in sorted(_closure(wanted) - {"longspan"}):
            self._link(name)

    def run(self, *command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment in the folder `cwd`."""
        program, *arguments = map(str, command)
        return subprocess.run(
            [str(self.bin / program), *arguments], cwd=cwd, env=self.variables() | (env or {}), capture_output=True, text=True, check=False
        )

    def pip(self, *arguments: str | Path) -> str:
        """Run pip in the environment. Return its output."""
        command = [sys.executable, "-m", "pip", "--python", str(self.python), *map(str, arguments)]
        done = subprocess.run(command, env=self.variables(), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def install(self, wheel: Path) -> None:
        """Install a wheel without its dependencies. A module is compiled when it is first imported."""
        self.pip("install", "-q", "--no-compile", "--no-deps", "--no-index", wheel)

    def share(self, other: Environment) -> None:
        """Use the longspan that is installed in another environment."""
        for path in other.site.glob("longspan*"):
            (self.site / path.name).symlink_to(path)
        script = self.bin / "longspan"
        script.write_text((other.bin / "longspan").read_text("utf-8").replace(str(other.bin), str(self.bin)), "utf-8")
        script.chmod(0o755)

    def variables(self) -> dict[str, str]:
        """Return the environment variables for its programs. No checkout is on Python's path."""
        kept = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "PYTHONPATH", "PYTEST_ADDOPTS")}
        return kept | {"PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "120", "NO_COLOR": "1"}

    def _link(self, name: str) -> None:
        """Link a distribution's files: a package as a folder, a namespace package file by file."""
        found = distribution(name)
        for line in csv.reader((found.read_text("RECORD") or "").splitlines()):
            path = Path(line[0])
            if path.parts[0] in ("..", "__pycache__"):
                continue
            for part in [*reversed(path.parents[:-1]), path]:
                origin = Path(str(found.locate_file(part)))
                if origin.is_dir() and not (origin / "__init__.py").exists() and origin.suffix != ".dist-info":
                    continue
                link = self.site / part
                if not link.is_symlink() and origin.exists():
                    link.parent.mkdir(parents=True, exist_ok=True)
                    link.symlink_to(origin)
                break


def _closure(wanted: Iterable[str]) -> set[str]:
    """Return the names of all distributions that requirements need, directly or indirectly."""
    names: set[str] = set()
    seen: set[tuple[str, str]] = set()
    left = [(Requirement(text), "") for text in wanted]
    while left:
        requirement, extra = left.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        names.add(name)
        for extra_name in ("", *requirement.extras):
            if (name, extra_name) not in seen:
                seen.add((name, extra_name))
                left += [(required, extra_name) for required in _requirements(name)]
    return names


def _requirements(name: str) -> Iterator[Requirement]:
    try:
        yield from map(Requirement, distribution(name).requires or ())
    except PackageNotFoundError as error:
        raise AssertionError(f"{name} is not installed here: pip install -c constraints.txt -e '.[test]'") from error
