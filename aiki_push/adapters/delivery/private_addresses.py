"""Which hosts a push may go to: an address of the public internet, unless private ones are allowed."""

import ipaddress
import socket
from collections.abc import Callable, Sequence
from typing import TypeAlias

Resolve: TypeAlias = Callable[[str], Sequence[str]]
"""The IP addresses of a host name, as text. Raises OSError or UnicodeError: there are none."""


def resolve_host(host: str) -> Sequence[str]:
    """By the operating system."""
    return [str(address[4][0]) for address in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]


def private_address(host: str, resolve: Resolve) -> str | None:
    """The first address of `host` that is not public (but loopback, link-local, private, shared, reserved, multicast), if any.

    The connection resolves `host` again, and a name that answers otherwise then gains nothing: pushes go by https wherever
    this matters, and the private host would have to show a certificate for that name.
    Raises what `resolve` does.
    """
    return next((address for address in resolve(host) if not _is_public(address)), None)


def _is_public(text: str) -> bool:
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return address.is_global and not address.is_multicast
