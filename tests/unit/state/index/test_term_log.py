"""The log of carried terms is bounded by what it keeps alive, not only by its length."""

from scheduler.model.affinity import AffinityTerm
from scheduler.model.meta import LabelSelector, LabelSelectorRequirement
from scheduler.state.index import term_log
from scheduler.state.index.carried import Carried
from scheduler.state.index.term_log import TermChange, TermLog


def change(num_values: int) -> TermChange:
    requirement = LabelSelectorRequirement("a", "In", tuple(f"v{i}" for i in range(num_values)))
    term = AffinityTerm(frozenset({"shop"}), None, LabelSelector({}, (requirement,)), "zone")
    return TermChange(Carried(term, None), "a", 1)


def test_a_log_of_large_terms_is_shorter(monkeypatch):
    """Who stayed away too long is told to start anew, whatever the terms weigh."""
    monkeypatch.setattr(term_log, "_MAX_WEIGHT", 30)
    log = TermLog()
    log.add(change(10))
    log.add(change(10))
    assert len(log.since(0)) == 2
    log.add(change(10))
    assert log.since(0) is None
    assert (log.position, len(log.since(2))) == (3, 1)
    log.add(change(1))
    assert (log.position, len(log.since(2))) == (4, 2)


def test_the_weight_of_a_term():
    """The term, its namespaces, expressions and values."""
    assert change(10).of.term.weight == 1 + 1 + 1 + 10
