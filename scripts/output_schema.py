"""Write the JSON Schemas of result.json and of what commands print with --json, from the types that they print.

The schemas of a benchmark's own commands are in the benchmark's folder.

python -m scripts.output_schema
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter, create_model

import longspan.scenarios.cream.arena_result as arena_result
from longspan import __version__
from longspan.simulator.base.tables import Table
from longspan.simulator.cli import outputs
from longspan.simulator.cli.schema import BESIDE, FILE
from longspan.simulator.pages.report.outcome import ContrastRun
from longspan.simulator.results.analysis.baseline import Fall, ScenarioFall, Verdict
from longspan.simulator.results.analysis.contrasts import ContrastResult, Correction
from longspan.simulator.results.analysis.statements import Statement
from longspan.simulator.results.judging.calibration import Calibration
from longspan.simulator.results.papers import Cell
from longspan.simulator.results.result import Result, TestResult
from longspan.simulator.running.preflight.estimate import Estimate

ROOT: Final = Path(__file__).parents[1]

RESULT: Final = "result.json"
"""The schema of the file: the whole document describes it."""


def written(kind: Any, name: str, without: Collection[str] = (), **more: Any) -> type[BaseModel]:
    """Return a model of the JSON object that a model, dataclass or named tuple is printed as: all of its fields, and `more`."""
    hints = {field: info.annotation for field, info in kind.model_fields.items()} if issubclass(kind, BaseModel) else get_type_hints(kind)
    fields: dict[str, Any] = {field: (hint, ...) for field, hint in {**hints, **more}.items() if field not in without}
    return create_model(name, __config__=ConfigDict(extra="forbid"), __doc__=kind.__doc__, **fields)


def printed(name: str, **fields: Any) -> type[BaseModel]:
    return create_model(name, __config__=ConfigDict(extra="forbid"), **{field: (hint, ...) for field, hint in fields.items()})


def commands() -> dict[str, Any]:
    """Return the type of what each command prints, by its words joined with hyphens."""
    played = written(Result, "PlayedRun", folder=str)
    regraded = written(Result, "RegradedRun", folder=str, changed=dict[str, tuple[float | None, float | None]])
    runs: Any = list[played | printed("UngradedRun", folder=str)]
    shown = printed("ShownTest", folder=str, test=TestResult, turns=list[outputs.ShownTurn])
    fall = written(Fall, "FallBelowBaseline", verdict=Verdict, sentence=str, scenarios=list[written(ScenarioFall, "ScenarioFall")])
    contrasts = printed(
        "ContrastsOutcome",
        format=int,
        longspan=str,
        correction=Correction,
        alpha=float,
        contrasts=list[written(ContrastResult, "TestedContrast", sentence=str)],
        stated=list[written(Statement, "StatedContrasts", without=["references"])],
        missing=list[str],
        commitments_sha256=str,
        runs=list[written(ContrastRun, "ContrastRun")],
    )
    groups = printed("ComparedGroups", groups=list[outputs.ComparedGroup])
    options = printed("AgentOptions", agent=str, options=list[outputs.ListedOption], more=str | None)
    listed_runs = list[outputs.ListedRun | outputs.UnreadableRun]
    return {
        **dict.fromkeys(("run", "sweep", "resume", "import"), runs),
        "replay": list[regraded] | runs,
        "score": list[regraded],
        "show": played | shown,
        "compare": groups | fall | contrasts,
        "check": outputs.Checked,
        "ask": outputs.AskedAgain,
        "estimate": list[written(Estimate, "PrintedEstimate", cost_usd=float | None)],
        "reproduce": list[Cell],
        "calibrate": Calibration,
        "list-scenarios": printed("Scenarios", scenarios=list[outputs.ListedScenario]),
        "list-agents": printed("Agents", agents=list[outputs.ListedAgent]) | options,
        "list-memories": printed("Memories", memories=list[outputs.ListedMemory]),
        "list-formats": printed("Formats", formats=list[outputs.ListedFormat]),
        "list-suites": printed("Suites", suites=list[outputs.ListedSuite]),
        "list-runs": printed("Runs", folder=str, runs=listed_runs, deeper=list[str]),
    }


def benchmark_commands() -> dict[str, dict[str, Any]]:
    """Return the type of what each benchmark's own commands print, by the benchmark's folder and the command."""
    return {"cream": {"arena": written(arena_result.ArenaResult, "ArenaResult")}, "summhay": {"annotate": Table}}


def document(types: dict[str, Any], id: str) -> dict[str, Any]:
    """Return the schemas of `types` as definitions in one document."""
    made, shared = TypeAdapter.json_schemas([(name, "serialization", TypeAdapter(kind)) for name, kind in types.items()])
    known = shared["$defs"]
    for each in known.values():
        if "properties" in each:
            each["additionalProperties"] = False
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:longspan:{__version__}:{id}",
        "$defs": known | {name: found for (name, _), found in made.items()},
    }


def schema() -> dict[str, Any]:
    """Return the schemas of longspan's own commands, in a document that is itself the schema of result.json: the results, and their
    checksum."""
    made = document({**commands(), RESULT: Result}, "output")
    result = made["$defs"][made["$defs"][RESULT]["$ref"].rpartition("/")[2]]
    result["properties"]["sum"] = {"description": "The checksum.", "type": "string", "pattern": "^[0-9a-f]{16}$"}
    result["required"].append("sum")
    return {"$schema": made["$schema"], "$id": made["$id"], "$ref": f"#/$defs/{RESULT}", "$defs": made["$defs"]}


def texts() -> dict[Path, str]:
    """Return the content of every file with schemas."""
    made = {FILE: schema()}
    for benchmark, types in benchmark_commands().items():
        made[ROOT / "scenarios" / benchmark / BESIDE] = document(types, f"output:{benchmark}")
    return {path: json.dumps(content, indent=1) + "\n" for path, content in made.items()}


if __name__ == "__main__":
    for path, content in texts().items():
        path.write_text(content, "utf-8")
