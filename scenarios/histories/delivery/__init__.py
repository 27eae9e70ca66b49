"""How a history is delivered: told once, in the question's message, or woven into a long conversation. A file for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from longspan.scenarios.histories.delivery.context import InContext
from longspan.scenarios.histories.delivery.delivery import Delivery, DeliveryName
from longspan.scenarios.histories.delivery.told import ToldOnce
from longspan.scenarios.histories.delivery.weave import Woven

__all__ = ["DELIVERIES", "Delivery", "DeliveryName"]

DELIVERIES: Final[Mapping[DeliveryName, Delivery]] = {"told": ToldOnce(), "context": InContext(), "weave": Woven()}
