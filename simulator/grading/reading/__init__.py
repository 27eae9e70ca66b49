"""Reads a reply as a person does: parsed once, and then asked which values it settles on, what it says of whom, and whether it leaks.

`Reading` is what readers of scenarios use. `layout` undoes markup, `splitting` cuts text into sentences and clauses, `values` finds
values in any spelling, `lexicon` knows the words that show a stance, `mentions` tells how each value is presented, and `subjects` tells
of whom it is said.
"""
