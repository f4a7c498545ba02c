"""Data with a known truth, bundled data, and the paper's experiments (`unnorm reproduce …`)."""
