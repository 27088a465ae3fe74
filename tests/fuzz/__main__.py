"""``python -m tests.fuzz --minutes 10 [--seed N]``: rounds with growing seeds until the time is over or one has failed.

Each round is a line of the record: when, its seed, how long it took, whether it failed. A seed of it given again makes
the same examples.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

TARGETS = ("tests/fuzz", "tests/properties/test_decode.py", "tests/properties/test_quantity.py")


def main() -> int:
    """Run; exit 1 after the first round that failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, help="of the first round; the next have the numbers behind it")
    parser.add_argument("--record", type=Path, default=Path("build/fuzz.jsonl"), help="where the seeds are kept")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(2**31) if options.seed is None else options.seed
    begun_s, rounds = time.monotonic(), 0
    while time.monotonic() - begun_s < options.minutes * 60:
        if not _round(seed + rounds, options.record):
            print(f"failed with --seed {seed + rounds}; add the example to tests/fuzz/regressions.py")
            return 1
        rounds += 1
        print(f"{rounds} rounds, {time.monotonic() - begun_s:.0f} s, last seed {seed + rounds - 1}", flush=True)
    return 0


def _round(seed: int, record: Path) -> bool:
    """Run all targets with a seed and note it; returns whether nothing was found."""
    arguments = ["-q", "-p", "no:cacheprovider", "--timeout=900", "--hypothesis-profile=fuzz"]
    begun_s = time.monotonic()
    command = [sys.executable, "-m", "pytest", *arguments, f"--hypothesis-seed={seed}", *TARGETS]
    has_passed = subprocess.run(command, check=False).returncode == 0
    when, seconds = datetime.now(UTC).isoformat(timespec="seconds"), round(time.monotonic() - begun_s, 1)
    record.parent.mkdir(parents=True, exist_ok=True)
    with record.open("a") as lines:
        lines.write(json.dumps({"when": when, "seed": seed, "seconds": seconds, "passed": has_passed}) + "\n")
    return has_passed


if __name__ == "__main__":
    sys.exit(main())
