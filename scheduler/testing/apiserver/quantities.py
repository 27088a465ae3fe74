"""Quantities as the API server stores them: texts, rounded up to thousandths.

Source: ``SetDefaults_ResourceList``, which rounds every amount in a resource list up to milli scale.
"""

from __future__ import annotations

from typing import Any

from scheduler.model.quantity import NANO, parse_quantity_nano
from scheduler.testing.apiserver.status import Json

__all__ = ["normalize_resource_list"]

_MILLI = NANO // 1000


def normalize_resource_list(holder: Json | None, field: str) -> None:
    """Rewrite ``holder[field]``, a resource list, in place; a missing one is fine.

    Raises:
        QuantityError: an amount cannot be read.
    """
    amounts = holder.get(field) if holder else None
    if holder is not None and amounts:
        holder[field] = {name: _rounded(value) for name, value in amounts.items()}


def _rounded(value: Any) -> str:
    text = value if isinstance(value, str) else str(value)
    nano = parse_quantity_nano(text)
    if nano % _MILLI == 0:
        return text
    return f"{-(-nano // _MILLI) if nano > 0 else nano // _MILLI}m"
