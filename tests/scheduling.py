"""Which worker of a parallel run gets which test."""

from __future__ import annotations

from typing import Any

from xdist.scheduler import LoadGroupScheduling


class Forgetful(LoadGroupScheduling):
    """Forgets groups that are done: the original counts all that a worker ever had after each of thousands of tests."""

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        super().mark_test_complete(node, item_index, duration)
        group = self._split_scope(self.registered_collections[node][item_index])
        if all(self.assigned_work[node][group].values()):
            del self.assigned_work[node][group]
