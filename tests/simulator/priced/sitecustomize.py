"""For processes that tests start with this folder in PYTHONPATH: a dollar a million tokens, for any model. What a server of our own
costs, no list knows."""

import longspan.simulator.subject.ledger

longspan.simulator.subject.ledger.price_usage = lambda model, usage: 1e-6 * (usage.input_tokens + usage.output_tokens)
