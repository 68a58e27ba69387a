"""Runs in one table: a mapping of domain models to items (`store`), written on `Table`, which every engine implements."""
