"""What the development server can be told beside its settings."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

StoreName = Literal["moto", "memory"]


@dataclass(frozen=True, slots=True)
class DevServerOptions:
    """`port` 0 takes any free one. `home` keeps the signing keys, so that endpoints go on trusting a server that is started again."""

    port: int
    store: StoreName
    home: Path
