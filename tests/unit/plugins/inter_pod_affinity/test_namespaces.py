"""Namespaces: which of them a term of a pod means."""

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.model.meta import Namespace
from scheduler.model.selectors import label_selector_matches
from scheduler.plugins.inter_pod_affinity.namespaces import Namespaces
from scheduler.state.store import Stores
from scheduler.testing import pod
from scheduler.testing.builders import absent, exists, in_, not_in, obj

NAMES = ("a", "b", "c", "d")
EXPRESSIONS = (in_("team", "red", "blue"), in_("team", "red"), not_in("team", "red"), exists("team"), absent("env"))
LABELS = st.dictionaries(st.sampled_from(("team", "env")), st.sampled_from(("red", "blue", "green")))


@given(
    labels=st.lists(LABELS, min_size=3, max_size=3),
    named=st.lists(st.sampled_from(NAMES), unique=True),
    wanted=st.dictionaries(st.just("env"), st.just("red")),
    expressions=st.lists(st.sampled_from(EXPRESSIONS), max_size=3),
    later=LABELS,
)
@settings(deadline=None)
def test_a_term_means_the_namespaces_it_names_and_those_it_selects(labels, named, wanted, expressions, later):
    """As if each known namespace were asked; also after one of them has changed."""
    store = Stores().of(Namespace)
    namespaces = Namespaces(store)
    selector = {"matchLabels": wanted, "matchExpressions": expressions}
    term = pod().pod_affinity("zone", {}, namespaces=named, namespaceSelector=selector).obj()
    (read,) = term.affinity_terms.required_affinity
    for version in (labels, [*labels[:2], later]):
        for name, of in zip(NAMES, version, strict=False):  # the last one does not exist
            store.put(obj(Namespace, {"metadata": {"name": name, "labels": of}}))
        if label_selector_matches(read.namespace_selector, {}):
            assert namespaces.of(read) is None
            assert all(namespaces.means(read, name) for name in NAMES)
            continue
        selected = {
            name
            for name, of in zip(NAMES, version, strict=False)
            if label_selector_matches(read.namespace_selector, of)
        }
        assert namespaces.of(read) == selected | set(named)
        assert {name for name in NAMES if namespaces.means(read, name)} == selected | set(named)
