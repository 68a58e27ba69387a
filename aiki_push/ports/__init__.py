"""Ring 2: what the rules need from the world, as Protocols, and the API's operations as data. Imports domain only."""
