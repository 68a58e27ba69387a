"""Ring 5: what runs. Settings, the composition root, endpoints, the development server and the command line. Imports every ring above."""
