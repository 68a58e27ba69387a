"""The workflow versions that an executor can run."""

from collections.abc import Sequence

from aiki_push.domain.errors import SettingsError
from aiki_push.sdk.workflow import AnyWorkflowVersion


class Registry:
    """Workflow versions by name. Raises SettingsError for none, and for two handlers of one version."""

    def __init__(self, workflows: Sequence[AnyWorkflowVersion]) -> None:
        if not workflows:
            raise SettingsError("an executor needs at least one workflow version")
        self._versions: dict[tuple[str, str], AnyWorkflowVersion] = {}
        for version in workflows:
            if (version.name, version.version) in self._versions:
                raise SettingsError(f"{version.name} {version.version} is registered twice; one version has one handler")
            self._versions[version.name, version.version] = version

    def find(self, name: str, version: str) -> AnyWorkflowVersion | None:
        """The version, or None where it is not registered: a run is never executed by another version."""
        return self._versions.get((name, version))

    def all(self) -> tuple[AnyWorkflowVersion, ...]:
        """Every registered version, in the order given."""
        return tuple(self._versions.values())
