"""The paper's experiments, run again: `unnorm reproduce …`."""
