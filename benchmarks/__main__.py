"""python -m benchmarks NAME [--span S]: run a benchmark and print its figures as a table and as JSON.

Figures named `all` are the cost of the whole benchmark, including its processes, in seconds, megabytes and passes of the tokenizer over
a million tokens of text.

A benchmark is a module of this package with a function `measure`, which takes the span and the values of the module's
OPTIONS, if it has any: argparse's options with their settings."""

from __future__ import annotations

import argparse
import json
from importlib import import_module
from pkgutil import iter_modules

import benchmarks
from benchmarks._whole import whole

SPAN = 500_000
"""The default span in tokens, for benchmarks without one of their own."""


def main() -> None:
    names = [module.name for module in iter_modules(benchmarks.__path__) if not module.name.startswith("_")]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("name", choices=names)
    parser.add_argument("--span", type=int, help="tokens of a span")
    given, rest = parser.parse_known_args()
    module = import_module(f"benchmarks.{given.name}")
    span = given.span or getattr(module, "SPAN", SPAN)
    own = argparse.ArgumentParser(prog=f"python -m benchmarks {given.name}")
    for option, settings in getattr(module, "OPTIONS", {}).items():
        own.add_argument(option, **settings)
    options = vars(own.parse_args(rest))
    figures: dict[str, float]
    figures, taken = whole(lambda: module.measure(span, **options))
    figures = figures | {f"all: {name}": value for name, value in taken.items()}
    for name, value in figures.items():
        print(f"{name:48}{value:>12.3f}")
    print(json.dumps({"benchmark": given.name, "span": span} | figures))


if __name__ == "__main__":
    main()
