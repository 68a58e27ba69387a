"""The workflow versions that an executor can run."""

from collections.abc import Sequence

from aiki_push.domain.errors import SettingsError
from aiki_push.sdk.workflow_version import AnyWorkflowVersion, SingleStart


class Registry:
    """Workflow versions by name.

    Raises SettingsError (no version, two handlers of one version, a type with a name that does not exist), NotSerializable (a type
    that JSON cannot hold), TypeError (something else than a version).
    """

    def __init__(self, workflows: Sequence[AnyWorkflowVersion]) -> None:
        if not workflows:
            raise SettingsError("an executor needs at least one workflow version")
        self._versions: dict[tuple[str, str], AnyWorkflowVersion] = {}
        for version in map(_checked, workflows):
            if (version.name, version.version) in self._versions:
                raise SettingsError(f"{version.name} {version.version} is registered twice; one version has one handler")
            version.check_types()
            self._versions[version.name, version.version] = version

    def find(self, name: str, version: str) -> AnyWorkflowVersion | None:
        """The version, or None where it is not registered: a run is never executed by another version."""
        return self._versions.get((name, version))

    def all(self) -> tuple[AnyWorkflowVersion, ...]:
        """Every registered version, in the order given."""
        return tuple(self._versions.values())


def _checked(given: object) -> AnyWorkflowVersion:
    if isinstance(given, AnyWorkflowVersion):
        return given
    if isinstance(given, SingleStart):
        raise TypeError(
            f"{given!r} is about one particular run, and an executor runs whatever comes: give it the version as it was before "
            "with_() set its delay or reference"
        )
    raise TypeError(f"{given!r} is no version of a workflow: give what `@some_workflow.v(version)` makes of a handler")
