"""From scores to errors: the sandwich and its parts, criteria, tests, advice."""
