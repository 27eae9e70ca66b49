"""Write the JSON Schema of result.json.

python -m scripts.result_schema docs/result.schema.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from longspan.simulator.results.result import Result


def schema() -> dict[str, Any]:
    """Return the schema of the file: the results, and their checksum."""
    made = Result.model_json_schema(mode="serialization")
    made["properties"]["sum"] = {"description": "The checksum.", "type": "string", "pattern": "^[0-9a-f]{16}$"}
    made["required"].append("sum")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | made


def text() -> str:
    """Return the schema as a file."""
    return json.dumps(schema(), indent=1) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="where the schema is written")
    parser.parse_args().file.write_text(text(), "utf-8")
