"""Packaging: the wheel, the sdist, and longspan next to packages and folders with the same names."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

import longspan
from longspan.simulator.base.own_installation import install_extra
from longspan.simulator.suite.provenance import own_commit
from tests.environments import PROJECT, ROOT, Environment, build, register

FOLDERS = ("simulator", "scenarios", "agents")

RUN = ("run", "--scenario", "colours", "--tests", "1", "--span", "2k", "--json")

OPENAI_AGENTS = ("openai-agents", "griffelib", "mcp", "mcp-types", "PyJWT", "python-multipart", "websockets")
"""openai-agents, whose package is called `agents`, and what it needs that longspan's tests do not."""

NEEDED = ("openai", "starlette", "sse-starlette", "uvicorn", "jsonschema", "opentelemetry-api", "cryptography")
"""Its other requirements."""

PARROT = """
class Parrot:
    def reply(self, message):
        return "You said: " + message.text
"""


SCENARIO = """
from longspan import Grade, Line, Scenario, Script


class Mine(Scenario):
    name = "mine"
    skills = ("recall",)

    def make(self, random):
        return Script(facts={}, lines=[Line("My cat is called Ada."), Line("What is my cat called?", ideal="Ada.", asks=True)])

    def grade(self, facts, record):
        return Grade(score=float("Ada" in record.answer.reply), reason="")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """longspan without extras."""
    made = Environment(tmp_path_factory.mktemp("installed") / "venv")
    made.install(wheel)
    return made


def tracked(*folders: str) -> set[str]:
    """Return the files of these folders that git tracks."""
    listed = subprocess.run(["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(listed.stdout.splitlines())


def test_the_wheel_has_longspan_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
        commit = opened.read("longspan/commit.txt").decode().strip()
    info = {name for name in names if re.match(r"longspan-[^/]+\.dist-info/", name)}
    assert {name.partition("/")[2] for name in info} >= {"METADATA", "entry_points.txt", "licenses/LICENSE", "licenses/NOTICE"}
    own = {f"longspan/{name}" for name in ("__init__.py", "__main__.py", "commit.txt", "py.typed")}
    assert names - info == own | {f"longspan/{name}" for name in tracked(*FOLDERS)}
    assert commit == own_commit()


def test_the_sdist_builds_the_same_wheel(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as opened:
        opened.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    assert {path.name for path in source.iterdir()} >= {"LICENSE", "NOTICE", "README.md", "CHANGELOG.md", "pyproject.toml", *FOLDERS}
    assert not any((source / name).exists() for name in ("tests", "docs", *(f"src/longspan/{name}" for name in FOLDERS)))
    again = build("wheel", tmp_path / "out", source=source)
    assert (again.name, again.read_bytes()) == (wheel.name, wheel.read_bytes())


@pytest.fixture(scope="module")
def zipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository as a zip of a forge unpacks where links are not kept: a link is a text file, and there is no history."""
    folder = tmp_path_factory.mktemp("zipped")
    for name in tracked("src", *FOLDERS, *(path.name for path in ROOT.iterdir() if path.is_file())):
        copy = folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_symlink():
            copy.write_text(str((ROOT / name).readlink()), "utf-8")
        elif name == "src/longspan/commit.txt":
            copy.write_text(str(own_commit()), "utf-8")
        else:
            shutil.copy(ROOT / name, copy)
    return folder


def test_a_zip_without_links_builds_the_same_packages(zipped: Path, wheel: Path, sdist: Path, tmp_path: Path) -> None:
    assert build("wheel", tmp_path, source=zipped).read_bytes() == wheel.read_bytes()
    assert build("sdist", tmp_path, source=zipped).read_bytes() == sdist.read_bytes()


def test_a_zip_without_links_is_installed_as_it_stands(zipped: Path, tmp_path: Path) -> None:
    made = Environment(tmp_path / "venv")
    made.install(build("wheel:editable", tmp_path, source=zipped))
    done = made.run("longspan", *RUN, "--agent", "notebook", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (manifest,) = tmp_path.glob("runs/*/manifest.json")
    versions = json.loads(manifest.read_text("utf-8"))["versions"]
    assert (versions["longspan"], versions["longspan_commit"]) == (longspan.__version__, own_commit())


def test_the_readme_has_links_that_work_on_an_index(installed: Environment) -> None:
    (metadata,) = installed.site.glob("longspan-*.dist-info/METADATA")
    text = metadata.read_text("utf-8")
    (home,) = re.findall(r"^Project-URL: Repository, (.+)$", text, re.MULTILINE)
    links = re.findall(r'(?:\]\(|<img src=")([^)"]+)', text.partition("\n\n")[2])
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    commit = str(own_commit()).removesuffix("-dirty")
    inside = {link.partition("#")[0] for link in links if link.startswith(home)}
    paths = {link.removeprefix(f"{home}/{kind}/{commit}/") for link in inside for kind in ("blob", "raw") if f"/{kind}/" in link}
    assert len(paths) > 15
    assert [path for path in paths if not (ROOT / path).exists()] == []


WINDOWS = "import sys; sys.modules.update(fcntl=None, resource=None, termios=None); "
"""Python without the modules that Windows lacks."""


@pytest.mark.parametrize(
    ("code", "said"),
    [("from longspan.__main__ import main; main()", "longspan: "), ("import longspan; longspan.run", "ImportError: ")],
)
def test_a_system_without_posix_is_refused_in_one_line(code: str, said: str, installed: Environment, tmp_path: Path) -> None:
    done = installed.run("python", "-c", WINDOWS + code, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"{said}longspan needs Linux or macOS; on Windows, install it in WSL"
    assert said == "ImportError: " or done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("origin", "installer", "command"),
    [
        ({}, "pip", "pip install 'longspan[gguf]'"),
        ({"url": "file:///c/longspan", "dir_info": {}}, "pip", "pip install 'longspan[gguf] @ file:///c/longspan'"),
        ({"url": "file:///c/longspan.whl", "archive_info": {}}, "pip", "pip install 'longspan[gguf] @ file:///c/longspan.whl'"),
        (
            {"url": "https://host/a.git", "vcs_info": {"vcs": "git", "requested_revision": "main", "commit_id": "0af1"}},
            "pip",
            "pip install 'longspan[gguf] @ git+https://host/a.git@0af1'",
        ),
        (
            {"url": "file:///c/longspan", "vcs_info": {"vcs": "git", "commit_id": "0af1"}},
            "pip",
            "pip install 'longspan[gguf] @ git+file://localhost/c/longspan@0af1'",
        ),
        ({}, "uv", f"uv pip install --python {shlex.quote(sys.prefix)} 'longspan[gguf]'"),
    ],
)
def test_an_extra_is_installed_as_longspan_was(
    origin: dict[str, object], installer: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hint names an index only if longspan came from one."""
    register({"name": "longspan", "version": "1.0", "entry-points": {}}, tmp_path)
    (info,) = tmp_path.iterdir()
    (info / "INSTALLER").write_text(f"{installer}\n", "utf-8")
    if origin:
        (info / "direct_url.json").write_text(json.dumps(origin), "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(longspan, "__file__", str(tmp_path / "longspan" / "__init__.py"))
    assert install_extra("gguf") == command


def test_in_a_clone_an_extra_is_installed_from_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert install_extra("gguf").endswith("pip install -e '.[gguf]'")
    monkeypatch.chdir(tmp_path)
    assert install_extra("gguf").endswith(f"pip install -e {shlex.quote(f'{ROOT}[gguf]')}")


def test_what_a_release_names_is_the_version_and_the_repository() -> None:
    home = PROJECT["urls"]["Repository"]
    assert [link for link in PROJECT["urls"].values() if not link.startswith(home)] == []
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert (cited["version"], cited["repository-code"]) == (longspan.__version__, home)
    (contact,) = yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / "config.yml").read_text("utf-8"))["contact_links"]
    assert contact["url"] == f"{home}/security/advisories/new"
    steps = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8"))["jobs"]["build"]["steps"]
    (check,) = (step["run"] for step in steps if step.get("name") == "The tag is the version")
    for tag, code in {f"v{longspan.__version__}": 0, "v0.0.1": 1}.items():
        assert subprocess.run(["bash", "-c", check], cwd=ROOT, env=os.environ | {"GITHUB_REF_NAME": tag}, check=False).returncode == code


@pytest.mark.parametrize("name", FOLDERS)
@pytest.mark.parametrize("how", ["in a string", "from the folder", "in sitecustomize"])
def test_a_bare_name_is_refused_in_one_line(name: str, how: str, installed: Environment, tmp_path: Path) -> None:
    code, env, cwd = f"import {name}", {"PYTHONPATH": str(ROOT)}, tmp_path
    if how == "from the folder":
        env, cwd = {}, ROOT
    elif how == "in sitecustomize":
        (tmp_path / "sitecustomize.py").write_text(code, "utf-8")
        code, env = f"import sys; assert '{name}' not in sys.modules", {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    done = installed.run("python", "-B", "-c", code, cwd=cwd, env=env)
    assert f"ImportError: '{name}' is longspan's own folder: install longspan and import longspan.{name}\n" in done.stderr
    assert (done.returncode == 0) is (how == "in sitecustomize")  # Python itself ignores a sitecustomize that fails


def test_an_editable_installation_has_no_bare_names(tmp_path: Path) -> None:
    made = Environment(tmp_path / "venv")
    made.install(build("wheel:editable", tmp_path))
    for name in FOLDERS:
        code = f"import longspan.{name}; import {name}"
        assert f"No module named '{name}'" in made.run("python", "-B", "-c", code, cwd=tmp_path).stderr


BOTH = "import agents; from agents import Agent; import longspan.agents; from longspan import BaseAgent; assert agents.Agent is Agent"


def test_longspan_works_next_to_openai_agents(wheel: Path, tmp_path: Path) -> None:
    made = Environment(tmp_path / "venv", besides=NEEDED)
    other = ["install", "-q", "--no-compile", "--no-deps", "-c", ROOT / "constraints.txt", *OPENAI_AGENTS]

    def works(code: str) -> bool:
        done = made.run("python", "-c", code, cwd=tmp_path)
        assert done.returncode == 0 or "ModuleNotFoundError" in done.stderr, done.stderr
        return done.returncode == 0

    made.install(wheel)
    made.pip(*other)
    assert works(BOTH)
    assert "No broken requirements" in made.pip("check")
    made.pip("uninstall", "-q", "-y", "longspan")
    assert works("from agents import Agent")
    assert not works("import longspan")
    assert not list(made.site.glob("longspan*"))
    made.install(wheel)
    assert works(BOTH), "in whichever order they are installed"
    made.pip("uninstall", "-q", "-y", "openai-agents")
    assert not works("import agents")
    done = made.run("longspan", *RUN, "--agent", "oracle", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose own packages are called like longspan's folders."""
    for name in FOLDERS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
        (tmp_path / name / "mine.py").write_text(PARROT, "utf-8")
    (tmp_path / "scenarios" / "lending.py").write_text(SCENARIO, "utf-8")
    return tmp_path


@pytest.mark.parametrize("options", ["", f"?interpreter={sys.executable}"])
def test_a_project_with_packages_of_the_same_names_tests_its_agents(options: str, project: Path, installed: Environment) -> None:
    agent = f"python:agents.mine:Parrot{options}"
    done = installed.run("longspan", "check", "--agent", agent, cwd=project)
    assert done.returncode == 0, done.stdout + done.stderr
    done = installed.run("longspan", *RUN, "--agent", agent, cwd=project)
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)
    assert {test["status"] for test in result["tests"]} == {"scored"}


def test_a_sweep_plays_them_in_several_processes(project: Path, installed: Environment) -> None:
    agents = [f"python:{name}.mine:Parrot" for name in FOLDERS]
    content = {"scenarios": ["python:scenarios.lending:Mine"], "tests": 1, "spans": ["2k"], "agents": agents}
    (project / "mine.yaml").write_text(json.dumps(content), "utf-8")
    done = installed.run("longspan", "sweep", "mine.yaml", "--trust", "--jobs", "2", "--json", cwd=project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [set(result["scenarios"]) for result in json.loads(done.stdout)] == [{"mine"}] * 3


@pytest.mark.parametrize(
    ("arguments", "code", "output"),
    [
        (("estimate", "ltm", "--span", "2k", "--scenario", "colours", "--agent", "oracle"), 0, "ltm at 2,000 tokens"),
        (("ask", "--agent", "silent"), 0, "OK."),
        (("list", "schema", "run"), 0, '"$ref": "#/$defs/run"'),
        (("cream", "arena", "summaries.jsonl", "--judge", "silent"), 2, "cannot judge"),
        (("summhay", "write", "--writer", "silent", "--out", "made"), 2, "the settings are topic"),
    ],
)
def test_commands_that_no_guide_runs_work_outside_the_clone(
    arguments: tuple[str, ...], code: int, output: str, installed: Environment, tmp_path: Path
) -> None:
    summaries = [{"source": "a", "system": system, "summary": "It rained."} for system in ("one", "two")]
    (tmp_path / "summaries.jsonl").write_text("".join(json.dumps(summary) + "\n" for summary in summaries), "utf-8")
    done = subprocess.run(
        [installed.bin / "longspan", *arguments],
        cwd=tmp_path,
        env=installed.variables(),
        input="Hello\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, output in done.stdout + done.stderr) == (code, True), done.stdout + done.stderr
