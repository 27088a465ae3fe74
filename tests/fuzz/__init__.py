"""Fuzzing of what reads foreign bytes: a few seconds with all other tests, minutes by ``make fuzz``.

Every target is an ordinary property. ``python -m tests.fuzz --minutes 10`` runs all of them again and again, each round
with another seed and many more examples, and prints the seed of a round that failed. What it finds becomes an entry of
``regressions.py``, which every later run tries first.
"""
