"""Standard Webhooks signatures (Ed25519 and HMAC-SHA256) and the server's set of signing keys."""
