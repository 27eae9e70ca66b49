"""Reads replies: parses a reply once, then answers which values it settles on, whose they are, and whether it leaks one.

Scenario graders use `Reading`. `layout` removes markup, `splitting` cuts text into sentences and clauses, `values` finds values in any
spelling, and `lexicon` lists the words that show a stance. `mentions` determines how each value is presented, `subjects` whose it is,
and `weighing` which of several values the reply decides on.
"""
