"""CREAM: the published figures again. What the paper proposes is `longspan.simulator.arena`."""
