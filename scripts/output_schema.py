"""Write the JSON Schemas of result.json and of what commands print with --json, from the types that they print.

python -m scripts.output_schema
"""

from __future__ import annotations

import json
from collections.abc import Collection
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter, create_model

import longspan.simulator.arena.results as arena
from longspan.simulator.analysis.baseline import Fall, ScenarioFall, Verdict
from longspan.simulator.analysis.contrasts import Correction, Tested
from longspan.simulator.analysis.statements import Statement
from longspan.simulator.base.tables import Table
from longspan.simulator.cli import outputs
from longspan.simulator.exchange.papers import Cell
from longspan.simulator.judging.calibration import Calibration
from longspan.simulator.preflight.estimate import Estimate
from longspan.simulator.report.outcome import ContrastRun
from longspan.simulator.results.result import Result, TestResult

FILE: Final = Path(__file__).parents[1] / "simulator" / "data" / "output.schema.json"

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
        contrasts=list[written(Tested, "TestedContrast", sentence=str)],
        stated=list[written(Statement, "StatedContrasts", without=["references"])],
        missing=list[str],
        commitments_sha256=str,
        runs=list[written(ContrastRun, "ContrastRun")],
    )
    groups = printed("ComparedGroups", groups=list[outputs.ComparedGroup])
    options = printed("AgentOptions", agent=str, options=list[outputs.ListedOption], more=str | None)
    listed_runs = list[outputs.ListedRun | outputs.UnreadableRun]
    return {
        **dict.fromkeys(("run", "sweep", "resume", "rerun", "import"), runs),
        "replay": list[regraded] | runs,
        "score": list[regraded],
        "show": played | shown,
        "compare": groups | fall | contrasts,
        "check": outputs.Checked,
        "ask": outputs.AskedAgain,
        "estimate": list[written(Estimate, "PrintedEstimate", cost_usd=float | None)],
        "arena": written(arena.Result, "ArenaResult"),
        "reproduce": list[Cell],
        "annotate": Table,
        "calibrate": Calibration,
        "list-scenarios": printed("Scenarios", scenarios=list[outputs.ListedScenario]),
        "list-agents": printed("Agents", agents=list[outputs.ListedAgent]) | options,
        "list-memories": printed("Memories", memories=list[outputs.ListedMemory]),
        "list-suites": printed("Suites", suites=list[outputs.ListedSuite]),
        "list-runs": printed("Runs", folder=str, runs=listed_runs, deeper=list[str]),
    }


def schema() -> dict[str, Any]:
    """Return the schemas as definitions in one document, which is itself the schema of result.json: the results, and their checksum."""
    types = {**commands(), RESULT: Result}
    made, shared = TypeAdapter.json_schemas([(name, "serialization", TypeAdapter(kind)) for name, kind in types.items()])
    known = shared["$defs"]
    result = known[made[RESULT, "serialization"]["$ref"].rpartition("/")[2]]
    result["properties"]["sum"] = {"description": "The checksum.", "type": "string", "pattern": "^[0-9a-f]{16}$"}
    result["required"].append("sum")
    for each in known.values():
        if "properties" in each:
            each["additionalProperties"] = False
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:longspan:{version('longspan')}:output",
        "$ref": f"#/$defs/{RESULT}",
        "$defs": known | {name: found for (name, _), found in made.items()},
    }


def text() -> str:
    """Return the schemas as a file."""
    return json.dumps(schema(), indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), "utf-8")
