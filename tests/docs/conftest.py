"""Which tests of the documentation are collected."""

import os

collect_ignore = [] if "LONGSPAN_RECIPES" in os.environ else ["test_recipes_outside.py"]
