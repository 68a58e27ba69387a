"""The keys that endpoints may trust."""

from pydantic import TypeAdapter

from aiki_push.ports.api.operation import Answer, Operation


class SigningKeyList(Answer):
    """Public Ed25519 keys (`whpk_…`) that sign pushes now or did until recently."""

    public_keys: tuple[str, ...]


class ListSigningKeys(Operation[SigningKeyList]):
    """Read the public signing keys."""

    operation, method, path, role = "list_signing_keys", "GET", "/v1/signing-keys", "none"
    answer = TypeAdapter[SigningKeyList](SigningKeyList)
