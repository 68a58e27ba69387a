"""Ring 3a: what authors write, and what replays it. Imports domain and ports."""
