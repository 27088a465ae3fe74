"""Random scheduling cases, one JSON object a line.

    python tests/conformance/generate.py --seed S --count N [--start I] [--features a,b] [--without a,b] [--nodes LO:HI]

The output depends on the arguments only; case I of a seed is the same whatever N is. Without ``--features`` each case
draws a few; with it, every case has exactly the named ones ("requests" is always on).
"""

from __future__ import annotations

import argparse
import json
import sys

from tests.conformance.generator.catalogue import NAMES, make_case


def features_of(text: str) -> list[str]:
    """Read ``a,b``; for argparse."""
    names = [name for name in text.split(",") if name]
    unknown = sorted(set(names) - set(NAMES))
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown features {', '.join(unknown)}; known: {', '.join(NAMES)}")
    return names


def nodes_of(text: str) -> tuple[int, int]:
    """Read ``LO:HI``; for argparse."""
    low, _, high = text.partition(":")
    nodes = (int(low), int(high or low))
    if not 1 <= nodes[0] <= nodes[1]:
        raise argparse.ArgumentTypeError("wants LO:HI with 1 <= LO <= HI")
    return nodes


def main() -> int:
    """Print cases."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", default="1", help="any text (default: %(default)s)")
    parser.add_argument("--count", type=int, default=10, help="number of cases (default: %(default)s)")
    parser.add_argument("--start", type=int, default=0, help="number of the first case (default: %(default)s)")
    parser.add_argument("--features", type=features_of, default=[], help=f"some of {', '.join(NAMES)}")
    parser.add_argument("--without", type=features_of, default=[], help="features that are never drawn")
    parser.add_argument("--nodes", type=nodes_of, default=(1, 60), metavar="LO:HI", help="nodes a case (default: 1:60)")
    options = parser.parse_args()
    for number in range(options.start, options.start + options.count):
        case = make_case(options.seed, number, options.features, options.nodes, options.without)
        sys.stdout.write(json.dumps(case, separators=(",", ":")) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
