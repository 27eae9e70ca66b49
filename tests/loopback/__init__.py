"""Fake servers on this machine: one that speaks the vendors' APIs, for tests of their libraries, and one for other JSON APIs."""

from tests.loopback.acts import Act, Cut, Hang, Raw, Say, Status, Use
from tests.loopback.quirks import Quirks
from tests.loopback.server import Asked, Server
from tests.loopback.service import Service
from tests.loopback.stateful import Stateful

__all__ = ["Act", "Asked", "Cut", "Hang", "Quirks", "Raw", "Say", "Server", "Service", "Stateful", "Status", "Use"]
