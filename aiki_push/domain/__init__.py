"""Ring 1: the nouns and rules of durable runs. Pure: no I/O, no clock, no randomness; imports the standard library and pydantic only."""
