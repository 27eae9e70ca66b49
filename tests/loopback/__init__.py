"""A server on this machine that speaks the vendors' APIs: what their libraries are tested against. And one that is no chat model."""

from tests.loopback.acts import Act, Cut, Hang, Raw, Say, Status
from tests.loopback.server import Asked, Server
from tests.loopback.service import Service

__all__ = ["Act", "Asked", "Cut", "Hang", "Raw", "Say", "Server", "Service", "Status"]
