"""What the cache raises.

```
CacheError      a transition that the pod state machine does not have, or a node that is not there
```

A ``CacheError`` says that the caller and the cache disagree about what exists; nothing was changed when it is raised.
Callers in ``intake`` log it and go on (the comparer shows what is left over); a scheduling cycle fails with it.
"""

from __future__ import annotations

__all__ = ["CacheError"]


class CacheError(Exception):
    """The requested change does not fit what the cache holds; the text names the object."""
