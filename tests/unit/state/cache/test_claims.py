"""ClaimUse: a claim is in use while a row names it."""

import numpy as np

from scheduler.state.cache.claims import ClaimUse
from scheduler.state.cache.rows import Reorder


def test_claim_is_used_until_the_last_row_lets_go():
    """Rows are counted."""
    use = ClaimUse()
    use.put(0, {"a/x": 1, "a/y": 2})
    use.put(1, {"a/x": 1})
    use.put(2, {})

    assert {"a/x", "a/y"} == set(use.used())
    use.put(0, {})
    assert {"a/x"} == set(use.used())
    use.put(1, {"a/z": 1})
    assert {"a/z"} == set(use.used())


def test_other_count_of_the_same_claims_is_no_change():
    """Only names matter."""
    use = ClaimUse()
    use.put(0, {"a/x": 1})
    use.put(0, {"a/x": 2})
    use.put(0, {})

    assert set() == set(use.used())


def test_gone_rows_let_go():
    """A removed node uses nothing; a moved one still does."""
    use = ClaimUse()
    use.put(0, {"a/x": 1})
    use.put(1, {"a/x": 1, "a/y": 1})

    use.reorder(Reorder(np.array([-1, 0], np.intp), 2))

    assert {"a/x"} == set(use.used())
    use.put(1, {})
    assert set() == set(use.used())
