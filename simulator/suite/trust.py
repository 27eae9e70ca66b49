"""The gate: things that a file names are run, called or read only if they are harmless or the user has allowed them.

A run's folder or a sweep's file may come from an untrusted source. So a manifest read from a folder may not use anything harmful at first.
`require_trust` raises an error for such a manifest. It is called wherever tests, scenarios, agents and judges are created from a manifest.
So a command that forgets to ask for permission cannot run anything from such a folder. `admit_manifest` asks: it allows what the user has
named or trusts.

Permissions are stored outside the folder, in the user's own folder (see `cache`). Their key is a digest of the run folder's path and of all
that the manifest could run. If either changes, the user is asked again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, NoReturn
from urllib.parse import unquote

from longspan.simulator.base import cache
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.installed import AGENTS
from longspan.simulator.contract.agent import Danger, worst_danger
from longspan.simulator.contract.plugins import own_class, path_parameters, scenario_class
from longspan.simulator.suite.agent_spec import AgentSpec
from longspan.simulator.suite.manifest import Manifest

__all__ = [
    "NamedDanger",
    "Part",
    "admit_file",
    "admit_manifest",
    "is_trusted",
    "list_dangers",
    "remember_trust",
    "require_trust",
    "vouch_for",
]

Part = Literal["agent", "judge", "scenarios", "sources"]
"""The parts of a manifest that name things: the agent, the judge, the scenarios, and the sources of tests and filler (files and
embedders)."""

PARTS: Final[tuple[Part, ...]] = ("agent", "judge", "scenarios", "sources")

PLAIN: Final = re.compile(r"[^/\\:]*")
"""A parameter's value that is not an address, a path or a model."""

MAX_NAME: Final = 500
"""The most characters of a name that an error shows."""


class NamedDanger(NamedTuple):
    """A potentially harmful thing in a file: `how` it would be used, and its `name`."""

    how: Danger
    name: str


WORDING: Final[Mapping[Danger, tuple[str, str]]] = {
    "run": ("code to run", "runs"),
    "call": ("an address to call", "calls"),
    "send": ("what to send to a model's vendor", "sends"),
    "use": ("a file or a model to use", "uses"),
}


def spec_danger(spec: str) -> NamedDanger | None:
    """Return the worst potential harm of an agent spec, or None.

    The class of the agent's kind decides, and an address to call also counts: it would receive API keys. The options of other packages'
    kinds are unknown here. So a spec of such a kind counts as harmful if it has options, or a colon in the target.
    """
    try:
        parsed = AgentSpec.parse(spec)
    except InputError:  # no agent can be created from it, so be strict
        return NamedDanger("run", spec)
    texts = [parsed.target, *parsed.options, *parsed.options.values()]
    address = any(name.endswith("url") for name in parsed.options) or any("://" in unquote(unquote(text)) for text in texts)
    how = worst_danger(_by_class(parsed), "call" if address else None)
    return None if how is None else NamedDanger(how, spec)


def _by_class(spec: AgentSpec) -> Danger | None:
    """Return the danger that the agent's class declares, if the class is longspan's own."""
    cls = own_class(AGENTS, spec.kind)
    if cls is None:
        return "run" if spec.options or ":" in spec.target else None
    danger: Danger | None = cls.danger(spec.target, spec.options)
    return danger


def list_dangers(manifest: Manifest, parts: Collection[Part] = PARTS) -> list[NamedDanger]:
    """Return the potentially harmful things in these parts of a manifest, allowed or not."""
    found: list[NamedDanger | None] = []
    if "agent" in parts:
        found.append(spec_danger(manifest.agent))
    if "judge" in parts and manifest.judge is not None:
        found.append(spec_danger(manifest.judge))
    if "scenarios" in parts:
        found += [NamedDanger("run", name) for name in manifest.suite.scenarios if ":" in name]
    if "sources" in parts:
        found += [NamedDanger("use", str(path)) for path in (manifest.filler, manifest.definitions) if path is not None]
        for name, parameters in manifest.suite.scenarios.items():
            found += _sources(name, parameters)
    return [each for each in found if each is not None]


def require_trust(manifest: Manifest, *parts: Part) -> None:
    """Raise InputError if these parts of a manifest name anything potentially harmful that the user has not allowed."""
    found = [each for each in list_dangers(manifest, parts) if each.name not in manifest.allowed]
    if found and not (manifest.folder and _is_known(_run_key(manifest.folder, manifest))):
        _refuse(manifest.folder or "the manifest", found)


def admit_manifest(folder: Path, manifest: Manifest, *, trust: bool = False, given: Iterable[str] = ()) -> None:
    """Allow the things that a run's manifest names: all if the user trusts it now or did before, else those that are `given`."""
    manifest.allow(given)
    if trust or is_trusted(folder, manifest):
        vouch_for(manifest)
    remember_trust(folder, manifest)


def is_trusted(folder: Path, manifest: Manifest) -> bool:
    """Return whether a run's manifest names nothing potentially harmful, or the user has allowed all of it before."""
    return not list_dangers(manifest) or _is_known(_run_key(folder, manifest))


def vouch_for(manifest: Manifest) -> None:
    """Allow everything that a manifest names. For a manifest made from the user's own settings, or equal to one that was."""
    manifest.allow(each.name for each in list_dangers(manifest))


def remember_trust(folder: Path, manifest: Manifest) -> None:
    """Store that the user has allowed all that a run's manifest names, if that is so and it names anything."""
    names = {each.name for each in list_dangers(manifest)}
    if names and names <= manifest.allowed:
        _remember(_run_key(folder, manifest))


def admit_file(file: str | Path, specs: Collection[str], given: Collection[str] = (), *, trust: bool = False) -> None:
    """Raise InputError if a sweep's or a suite's file names potentially harmful things that are neither `given` nor trusted."""
    found = [each for spec in specs if spec not in given and (each := spec_danger(spec)) is not None]
    if found:
        key = _key(file, sorted({each.name for each in found}))
        if trust:
            _remember(key)
        elif not _is_known(key):
            _refuse(file, found)


def _sources(scenario: str, parameters: dict[str, Any]) -> Iterator[NamedDanger]:
    """Yield the files, models and addresses among a scenario's parameters."""
    texts = [(name, text) for name, value in parameters.items() for text in _texts(value)]
    paths: set[str] = set()
    if texts and ":" not in scenario:
        try:
            paths = path_parameters(scenario_class(scenario))
        except InputError:  # the scenario cannot be created either
            return
    for name, text in texts:
        if name in paths or not PLAIN.fullmatch(text):
            yield NamedDanger("call" if "://" in text else "use", text)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from (*_texts(key), *_texts(inner))
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def _refuse(where: str | Path, found: Collection[NamedDanger]) -> NoReturn:
    what, does = WORDING[worst_danger(*(each.how for each in found)) or "run"]
    names = ", ".join(dict.fromkeys(_shorten_name(each.name) for each in found))
    raise InputError(f"{where} names {what}: {names}; --trust {does} it, if you trust its author")


def _shorten_name(name: str) -> str:
    """Return a name for an error. A shortened name says how many characters are missing, because they could matter."""
    return name if len(name) <= MAX_NAME else f"{name[:MAX_NAME]}... (and {len(name) - MAX_NAME:,} more characters)"


def _run_key(folder: Path, manifest: Manifest) -> bytes:
    fields = {"agent", "judge", "filler", "filler_sha256", "definitions", "definitions_sha256"}
    return _key(folder, [manifest.model_dump(mode="json", include=fields), manifest.suite.scenarios])


def _key(path: str | Path, names: object) -> bytes:
    """Return a key for a file or folder and the names in it: their JSON, or b"" if a number is too large."""
    with suppress(ValueError):
        return json.dumps([str(Path(path).resolve()), names], sort_keys=True, default=str).encode()
    return b""


def _remember(key: bytes) -> None:
    if key:
        cache.write_cached(sha256(key).hexdigest(), key, "trusted")


def _is_known(key: bytes) -> bool:
    return bool(key) and cache.read_cached(sha256(key).hexdigest(), "trusted") == key
