def make_board(): return "# Board\n"
