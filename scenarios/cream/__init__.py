"""CREAM: the published figures again. What the paper proposes is `simulator.arena`."""
