"""`Fit` and what can be asked of it."""
