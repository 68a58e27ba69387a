"""What is in a push, what is never in one, and where it never goes."""

import json
import logging
import ssl
from base64 import b64decode
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.x509.oid import NameOID
from standardwebhooks import Webhook

from aiki_push.adapters.signing.key_file import KeyFile
from aiki_push.adapters.signing.key_ring import CachedKeyRing
from aiki_push.adapters.system import SystemClock
from aiki_push.domain.errors import SettingsError
from aiki_push.domain.push_message import PushMessage, parse_push
from aiki_push.domain.values import TimestampMs
from aiki_push.ports.publisher import Failed, Published
from aiki_push.ports.signing import Signer
from aiki_push.testing import FakeClock
from tests.integration.pushing import PUBLIC, SECRET, SHARED, only, publisher, push_once
from tests.integration.raw_server import answer, raw_server
from tests.unit.adapters.delivery.delivery_examples import RUN_ID, endpoint_at, ready_run

AUDIENCE = "https://x.example/a?b=1&c=<d>\u00e9\U0001f642"
