"""A server on this machine that speaks the vendors' APIs: what their libraries are tested against."""

from tests.loopback.acts import Act, Cut, Hang, Raw, Say, Status
from tests.loopback.server import Asked, Server

__all__ = ["Act", "Asked", "Cut", "Hang", "Raw", "Say", "Server", "Status"]
