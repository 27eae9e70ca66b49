"""Dockerfile: a small image without privileges, and a context that has what a wheel is built from and nothing else."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
import zipfile
from pathlib import Path

from tests.environments import build

ROOT = Path(__file__).parents[1]

TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")

STEPS = [
    (keyword, rest.strip())
    for keyword, _, rest in (line.partition(" ") for line in re.sub(r"\\\n", "", TEXT).splitlines() if line and not line.startswith("#"))
]
"""The instructions, each with what follows its keyword."""

CONSTRAINTS = (ROOT / "constraints.txt").read_text(encoding="utf-8")


def named(keyword: str) -> list[str]:
    return [rest for each, rest in STEPS if each == keyword]


def context(folder: Path) -> Path:
    """Copy what .dockerignore lets a build see of a clean clone."""
    first, *lines = [line for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert first == "*"
    allowed = [line[1:] for line in lines if line.startswith("!")]
    assert all((ROOT / name).exists() for name in allowed)
    listed = subprocess.run(["git", "ls-files", *allowed], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.splitlines():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name, follow_symlinks=False)
    return folder


def test_it_follows_the_rules_of_images() -> None:
    assert {keyword for keyword, _ in STEPS} <= {"ARG", "FROM", "COPY", "RUN", "ENV", "USER", "WORKDIR", "ENTRYPOINT", "CMD"}
    build_stage, final = named("FROM")
    assert build_stage.endswith(" AS build")
    (base,) = (rest.partition("=")[2] for rest in named("ARG") if rest.startswith("PYTHON="))
    assert re.fullmatch(r"3\.1[123]-slim-[a-z]+", base), "a version of Python and of Debian, not `latest`"
    after = STEPS[STEPS.index(("FROM", final)) :]
    assert after.count(("COPY", "--from=build /opt/longspan /opt/longspan")) == sum(keyword == "COPY" for keyword, _ in after) == 1
    assert after[-1] == ("CMD", '["--help"]')
    (user,) = named("USER")
    assert user.split(":")[0].isdigit(), "a number, so that Kubernetes sees that it is not root"
    assert user.split(":")[0] != "0"
    assert all(keyword in ("WORKDIR", "ENTRYPOINT", "CMD") for keyword, _ in after[after.index(("USER", user)) + 1 :])
    assert all(path.startswith("/") for path in named("WORKDIR"))
    assert not re.search(r"(?i)(KEY|TOKEN|SECRET|PASSWORD)\b", " ".join(named("ARG") + named("ENV")))


def test_it_installs_tested_versions_without_caches() -> None:
    installs = [step for step in named("RUN") if re.search(r"\bpip (install|wheel)\b", step)]
    assert len(installs) == 3
    assert all("--no-cache-dir" in step for step in installs)
    assert all("-c constraints.txt" in step or "--no-deps" in step for step in installs)
    assert re.search(r"^hatchling==", CONSTRAINTS, re.MULTILINE)
    (extras,) = (rest.partition("=")[2] for rest in named("ARG") if rest.startswith("EXTRAS="))
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(extras.split(",")) <= set(known)


def test_its_context_builds_the_same_wheel(tmp_path: Path) -> None:
    """The context has no history: COMMIT says what was built."""
    clean = context(tmp_path / "context")
    (commit,) = (step for step in named("RUN") if "COMMIT" in step)
    step = commit.partition("&&")[0]
    subprocess.run(["bash", "-euc", step], cwd=clean, check=True, env={"COMMIT": "0" * 40, "PATH": "/usr/bin:/bin"})
    built = build("wheel", tmp_path / "built", source=clean)
    with zipfile.ZipFile(built) as opened:
        names = set(opened.namelist())
        assert opened.read("longspan/commit.txt").decode() == f"{'0' * 40}\n"
    with zipfile.ZipFile(build("wheel", tmp_path / "whole")) as opened:
        assert names == set(opened.namelist())
