"""The API as data: one Operation a call, all of them listed in `catalogue`."""
