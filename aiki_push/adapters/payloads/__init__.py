"""Payload stores outside the table."""
