"""Hints that a run is due: by SQS, or in this process."""
