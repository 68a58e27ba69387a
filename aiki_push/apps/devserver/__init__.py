"""The whole server in one process, on this machine only: API, hints, offers and sweep."""
