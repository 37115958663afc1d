"""Who may see and who may erase what: the two scope tables of the contract, once for every backend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from adk_memory._validation import validate_id, validate_project_id
from adk_memory.types import AllProjects


@dataclass(frozen=True, slots=True)
class Scope:
    """The part of the store that one call may touch: one user of one app, and some of their projects.

    ``projects`` holds `None` for the global entries; it is itself `None` where every project is meant.
    """

    app_name: str
    user_id: str
    projects: tuple[str | None, ...] | None

    @classmethod
    def reading(cls, app_name: object, user_id: object, project_id: str | AllProjects | None) -> Self:
        """Global sees global; a project sees global and its own."""
        scope = cls.erasing(app_name, user_id, project_id)
        if scope.projects is None or scope.projects == (None,):
            return scope
        return cls(scope.app_name, scope.user_id, (None, *scope.projects))

    @classmethod
    def erasing(cls, app_name: object, user_id: object, project_id: str | AllProjects | None) -> Self:
        """Global touches global only; a project touches its own only."""
        app_name, user_id = validate_id("app_name", app_name), validate_id("user_id", user_id)
        if isinstance(project_id, AllProjects):
            return cls(app_name, user_id, None)
        return cls(app_name, user_id, (validate_project_id(project_id),))

    def holds(self, project_id: str | None) -> bool:
        return self.projects is None or project_id in self.projects
