"""Libraries that come with an extra of the package."""


def explained(error: ModuleNotFoundError, *, extra: str) -> str:
    """One readable line: which library is missing, and what to install."""
    return f"{error.name} is not installed; it comes with the extra `{extra}`: pip install 'aiki-push[{extra}]'"
