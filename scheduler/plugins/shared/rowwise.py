"""Whole-cluster answers made of single statuses: one a row, or one a group of rows that cannot differ."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from scheduler.api import Code, Int32Column, NodesView, Status, Verdicts

__all__ = ["group_rows", "grouped_verdicts"]


def group_rows(
    nodes: NodesView, keys: set[str], extra: Sequence[Int32Column] = ()
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Sort rows into groups that agree in the labels ``keys`` and in the ``extra`` columns.

    Returns:
        The first row of each group, and the group of each row.
    """
    size = len(nodes)
    columns = [*(nodes.label(key).codes for key in sorted(keys)), *extra]
    if not columns or not size:
        return np.zeros(min(size, 1), np.intp), np.zeros(size, np.intp)
    _, first, group = np.unique(np.stack(columns, axis=1), axis=0, return_index=True, return_inverse=True)
    return first, group.reshape(-1)


def grouped_verdicts(statuses: Sequence[Status | None], group: NDArray[np.intp]) -> Verdicts:
    """Return the verdict in which each row has the status of its group; Errors are told apart from rejections."""
    ok = np.fromiter((status is None for status in statuses), np.bool_, len(statuses))
    failed = np.fromiter((s is not None and s.code is Code.ERROR for s in statuses), np.bool_, len(statuses))

    def explain(rows: NDArray[np.intp]) -> list[tuple[Status, NDArray[np.intp]]]:
        by_status: dict[Status, list[int]] = {}
        for row, index in zip(rows.tolist(), group[rows].tolist(), strict=True):
            status = statuses[index]
            assert status is not None, "only failing rows are explained"
            by_status.setdefault(status, []).append(row)
        return [(status, np.array(members, np.intp)) for status, members in by_status.items()]

    return Verdicts(ok[group], explain, errors=failed[group] if failed.any() else None)
