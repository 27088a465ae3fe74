"""The scheduler's own code on a model API server, in virtual time, with random faults: thousands of histories a minute.

    python -m tests.simulation --count 1000          histories of fresh seeds; ends at the first violation
    python -m tests.simulation --seed 17 --verbose   one history, with everything that happened
    python -m tests.simulation --seed 17 --shrink    the smallest plan that still fails

Read in this order: ``plan`` (what will happen), ``history`` (makes it happen), ``promises`` (what must hold).
"""
