"""Ring 4: one file or folder for each technology. Imports domain and ports; siblings do not know each other."""
