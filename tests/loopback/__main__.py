"""python -m tests.loopback [--latency S] [--words N]: print the port and serve until killed.

Benchmarks use it to run the server in a process of its own.
"""

from __future__ import annotations

import argparse

from tests.loopback.server import Server


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.loopback")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--words", type=int, default=1, help="words of each answer")
    arguments = parser.parse_args()
    server = Server(latency=arguments.latency, reply=lambda text: " ".join(["noted"] * arguments.words))
    print(server.port, flush=True)
    server.serve()


if __name__ == "__main__":
    main()
