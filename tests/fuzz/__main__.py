"""``python -m tests.fuzz --minutes 10 [--seed N]``: rounds with growing seeds until the time is over or one has failed."""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time

TARGETS = ("tests/fuzz", "tests/properties/test_decode.py", "tests/properties/test_quantity.py")


def main() -> int:
    """Run; exit 1 after the first round that failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, help="of the first round; the next have the numbers behind it")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(2**31) if options.seed is None else options.seed
    begun_s, rounds = time.monotonic(), 0
    while time.monotonic() - begun_s < options.minutes * 60:
        arguments = [
            "-q",
            "-p",
            "no:cacheprovider",
            "--timeout=900",
            "--hypothesis-profile=fuzz",
            f"--hypothesis-seed={seed + rounds}",
        ]
        done = subprocess.run([sys.executable, "-m", "pytest", *arguments, *TARGETS], check=False)
        if done.returncode:
            print(f"failed with --seed {seed + rounds}; add the example to tests/fuzz/regressions.py")
            return 1
        rounds += 1
        print(f"{rounds} rounds, {time.monotonic() - begun_s:.0f} s, last seed {seed + rounds - 1}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
