"""Ring 3b: the use cases of the server. Imports domain and ports; synchronous throughout."""
