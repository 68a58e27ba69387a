"""The table in this process's memory."""
