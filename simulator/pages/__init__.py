"""What people look at: reports of runs and comparisons as HTML files, and the view, which serves them."""
