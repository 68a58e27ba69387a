"""Which clients a server understands. Both say their version as `major.minor`; servers are upgraded first."""

import re

from aiki_push.adapters.transport.field_faults import Fault, invalid_request
from aiki_push.domain.errors import UnsupportedVersion

API_VERSION = (0, 1)
"""Major and minor of the package that this file came with."""

VERSION_HEADER = "Aiki-Version"
VERSION_PATTERN = r"([0-9]{1,4})\.([0-9]{1,4})"


def version_text(version: tuple[int, int]) -> str:
    """`major.minor`, as the header says it."""
    return f"{version[0]}.{version[1]}"


def is_from_newer_client(sent: str | None, own: tuple[int, int] = API_VERSION) -> bool:
    """Whether the request may have fields that came after this release and do not matter to it.

    `sent` is the header; without one the client is taken to be of this release.

    Raises:
        InvalidRequest: not `major.minor`.
        UnsupportedVersion: another major, or older than the previous minor.
    """
    if sent is None:
        return False
    match = re.fullmatch(VERSION_PATTERN, sent)
    if match is None:
        raise invalid_request([Fault(VERSION_HEADER, "should be major.minor, like 1.4")])
    version = int(match[1]), int(match[2])
    if version[0] == own[0] and version[1] >= own[1] - 1:
        return version > own
    side = "server" if version > own else "client"
    raise UnsupportedVersion(f"the client is of version {sent}, the server of {version_text(own)}: upgrade the {side}")
