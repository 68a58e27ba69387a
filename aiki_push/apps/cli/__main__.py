"""`aiki-push`, and `python -m aiki_push.apps.cli`."""

import sys

from aiki_push.apps.missing_libraries import explained


def main() -> None:
    """Run the command that the arguments name."""
    try:
        from aiki_push.apps.cli.main import app
    except ModuleNotFoundError as error:
        sys.exit(f"aiki-push: {explained(error, extra='cli')}")
    app()


if __name__ == "__main__":
    main()
