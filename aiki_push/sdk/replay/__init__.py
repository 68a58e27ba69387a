"""What executes a workflow: a deterministic event loop, the run's memory, and the loop that lets them meet."""
