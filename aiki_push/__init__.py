"""aiki."""
