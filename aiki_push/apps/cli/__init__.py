"""The command line: `aiki-push`."""
