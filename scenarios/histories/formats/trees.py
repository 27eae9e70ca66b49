"""Find the branch of a tree of messages that was shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["shown_branch", "shown_messages"]


def shown_branch(nodes: Mapping[str, Any], leaf: Any, what: str, parent: str = "parent") -> tuple[list[Mapping[str, Any]], int]:
    """Return the nodes from the root to the leaf, and the number of other nodes with a message. Raises ValueError.

    Without a leaf, the branch ends at the last node that no other node follows.
    """
    followed = {node.get(parent) for node in nodes.values() if isinstance(node, dict) and isinstance(node.get(parent), str)}
    leaves = [key for key, node in nodes.items() if isinstance(node, dict) and key not in followed]
    at = leaf if isinstance(leaf, str) and leaf in nodes else next(reversed(leaves), None)
    found: dict[str, Mapping[str, Any]] = {}
    while isinstance(at, str) and at in nodes:
        node = nodes[at]
        if at in found or not isinstance(node, dict):
            raise ValueError(
                f"{what}: the messages before {at!r:.80} form a cycle" if at in found else f"{what}: {at!r:.80} is not a message"
            )
        found[at] = node
        at = node.get(parent)
    others = sum(key not in found and isinstance(node, dict) and node.get("message", node) is not None for key, node in nodes.items())
    return list(found.values())[::-1], others


def shown_messages(messages: Sequence[Any], id: str, parent: str, leaf: Any) -> tuple[Sequence[Any], int]:
    """Return the messages of the branch that was shown, and the number of others. Messages without parents are a list, all of it shown.

    `id` and `parent`: the keys of a message's id and of its parent's. Raises ValueError.
    """
    nodes = {each[id]: each for each in messages if isinstance(each, dict) and isinstance(each.get(id), str)}
    if len(nodes) < len(messages) or not all(isinstance(each.get(parent), str) for each in nodes.values()):
        return messages, 0
    return shown_branch(nodes, leaf, "messages", parent)
