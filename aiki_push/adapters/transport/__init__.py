"""The API over HTTP, and without it: one `wire` behind every door; clients that implement `Api`."""
