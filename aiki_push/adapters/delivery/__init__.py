"""Ways to offer ready runs to executors."""
