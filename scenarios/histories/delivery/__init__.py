"""Ways to deliver a history: told once, inside the question's message, or woven into a long conversation. One file each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from longspan.scenarios.histories.delivery.context import InContext
from longspan.scenarios.histories.delivery.delivery import Delivery, DeliveryName
from longspan.scenarios.histories.delivery.told import ToldOnce
from longspan.scenarios.histories.delivery.weave import Woven

__all__ = ["DELIVERIES", "Delivery", "DeliveryName"]

DELIVERIES: Final[Mapping[DeliveryName, Delivery]] = {"told": ToldOnce(), "context": InContext(), "weave": Woven()}
