"""PatchCall: the API server's side of ``Handle.patch``; a failure is a status, as plugins expect it.

A patch is sent once. If its outcome stays unknown the plugin fails the pod, whose next attempt reads what is true then;
patches that name the version they were made from cannot be applied twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from scheduler.api import Status
from scheduler.kube.errors import ApiError, KubeError
from scheduler.kube.transport import Transport
from scheduler.kube.writes import WRITE_TIMEOUT_S, patch_object
from scheduler.model.meta import KubeObject

__all__ = ["PatchCall"]


class PatchCall:
    """Sends merge patches of plugins."""

    def __init__(self, transport: Transport, *, may_write: Callable[[float], bool]) -> None:
        """Make the call.

        Args:
            transport: to the API server.
            may_write: the lease's gate.
        """
        self._transport = transport
        self._may_write = may_write

    async def __call__(self, obj: KubeObject, changes: Mapping[str, Any]) -> KubeObject | Status:
        """Change ``obj``; returns it as the server has it then, or an Error."""
        what = f"{type(obj).__name__} {obj.key}"
        if not self._may_write(WRITE_TIMEOUT_S):
            return Status.error(f"the lease is no longer held, so the change of {what} was not sent")
        try:
            return await patch_object(self._transport, obj, changes)
        except ApiError as error:
            # parity: the server's own words are the whole text
            return Status.error(error.message or f"changing {what}: {error}", error)
        except KubeError as error:
            return Status.error(f"changing {what}: {error}", error)
