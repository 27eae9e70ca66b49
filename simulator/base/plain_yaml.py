"""Parses YAML without its traps: whole numbers are plain decimal digits, `off` is a word, a duplicate key is an error, and aliases cannot
make a small file large.

ruamel.yaml, which implements YAML 1.2, is no help. It still reads 0x10, 010, 1_000 and +7 as numbers and does not limit aliases, so it
would need the same code as below. It also takes 1.6 times as long to read a suite.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final, final

import yaml
from yaml.composer import ComposerError

from longspan.simulator.base.errors import one_line
from longspan.simulator.base.integers import PLAIN, parse_integer

__all__ = ["describe_yaml_error", "load_yaml"]

MAX_NODES: Final = 100_000
"""The most values in a file. An aliased value counts again for each alias."""

_BOOL: Final = "tag:yaml.org,2002:bool"
_INT: Final = "tag:yaml.org,2002:int"
_FLOAT: Final = "tag:yaml.org,2002:float"


def load_yaml(text: str | bytes) -> Any:
    """Return the value of a YAML document. Raises YAMLError, or any exception that a constructor raises for a value.

    Values that only YAML 1.1 treats as numbers (0x10, 010, 1_000, +7, 1:30) or booleans (yes, no, on, off) are strings.
    """
    return yaml.load(text, _Loader)  # noqa: S506


def describe_yaml_error(error: BaseException) -> str:
    """Return one line that says why a document could not be read, and where."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, yaml.MarkedYAMLError) and (mark := error.problem_mark) is not None:
        why = " ".join(", ".join(part for part in (error.context, error.problem) if part).split())
        return f"line {mark.line + 1:,}, column {mark.column + 1:,}: {why:.300}"
    return one_line(error)


@final
class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: ClassVar[Any] = {  # type: ignore[misc]  # the stubs declare an instance variable
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in (_BOOL, _INT, _FLOAT)]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def get_single_node(self) -> yaml.Node | None:
        node: yaml.Node | None = super().get_single_node()
        if node is not None and _size(node, {}) > MAX_NODES:
            raise yaml.YAMLError(f"it has more than {MAX_NODES:,} values, with its aliases")
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in seen:
                    raise ComposerError(None, None, f"the key {key.value!r:.80} is given twice", key.start_mark)
                seen.add((key.tag, key.value))
        return node


def _size(node: yaml.Node, known: dict[int, float]) -> float:
    """Return the number of nodes below a node, or infinity if it contains itself."""
    if id(node) not in known:
        known[id(node)] = float("inf")
        inner = [each for pair in node.value for each in pair] if isinstance(node, yaml.MappingNode) else node.value
        known[id(node)] = 1 if isinstance(node, yaml.ScalarNode) else 1 + sum(_size(each, known) for each in inner)
    return known[id(node)]


def _whole(loader: _Loader, node: yaml.ScalarNode) -> int:
    return parse_integer(node.value)  # an explicit tag (!!int) may be on any scalar


_Loader.add_implicit_resolver(_BOOL, re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"), list("tTfF"))
_Loader.add_implicit_resolver(_INT, PLAIN, list("-0123456789"))
_FRACTION: Final = re.compile(r"-?[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?\Z|-?\.(?:inf|[0-9]+)\Z|\.nan\Z")
_Loader.add_implicit_resolver(_FLOAT, _FRACTION, list("-.0123456789"))
_Loader.add_constructor(_INT, _whole)
