"""Histories that once broke a promise, as plans: what a seed means changes with the generator, a plan does not."""

from __future__ import annotations

from tests.simulation.plan import Deed, Fault, Plan

__all__ = ["REGRESSIONS"]

REGRESSIONS = {
    "a watch's bookmark overtook the lines before it (embedded API server)": Plan(
        seed=49,
        replicas=1,
        deeds=(
            Deed(0.0, "create_node", "n0", 4, "pool-0"),
            Deed(0.0, "create_node", "n1", 2, "pool-1"),
            Deed(4.139639831121949, "create_pod", "p5", 1, "pool-1"),
            Deed(6.575075951769546, "create_pod", "p3", 2, "pool-1"),
            Deed(9.796409407062649, "create_urgent_pod", "p6", 1, "pool-0"),
            Deed(11.135655060428224, "create_pod", "p4", 1, "pool-0"),
            Deed(11.956792018234196, "create_pod", "p7", 2, "pool-1"),
            Deed(15.338553296269557, "create_urgent_pod", "p0", 1, "pool-0"),
            Deed(16.450327055416018, "cordon", "n1", 0, ""),
            Deed(19.83774090100548, "create_pod", "p8", 2, "pool-0"),
            Deed(19.841043720694138, "freeze", "0", 39, ""),
            Deed(21.55388171885935, "uncordon", "n1", 0, ""),
            Deed(22.01234669507955, "create_pod", "p2", 2, "pool-0"),
            Deed(22.75047802983248, "create_pod", "p1", 1, "pool-1"),
        ),
        faults=(
            Fault("late", 14.69133154146815, 29.03272963530121, 0, 0.5),
            Fault("repeated", 0.6676629652730526, 19.01335118781478, -1, 0.2),
            Fault("blackhole", 25.61209312273029, 63.37897663989496, 0, 0.2),
            Fault("lost_answer", 20.83525538383849, 21.07345067878616, -1, 0.7),
            Fault("late", 20.83525538383849, 21.07345067878616, -1, 0.7),
        ),
    ),
    "an event whose series was gone was posted anew after the lease had ended (recorder)": Plan(
        seed=40063,
        replicas=2,
        deeds=(
            Deed(20.236260131084165, "replace_pod", "p13", 1, ""),
            Deed(20.513004223167666, "replace_pod", "p0", 1, ""),
            Deed(20.648189521489268, "replace_pod", "p7", 1, ""),
            Deed(20.787782440708366, "replace_pod", "p8", 1, ""),
            Deed(20.950128714236378, "replace_pod", "p6", 1, ""),
            Deed(21.13073235174228, "replace_pod", "p11", 1, ""),
            Deed(21.70912991192215, "replace_pod", "p1", 1, ""),
            Deed(22.32531252737329, "freeze", "0", 19, ""),
        ),
        faults=(Fault("slow", 15.870024579817619, 27.870024579817617, -1, 0.4),),
    ),
    "a pod with a resource that only an extender knows did not hear of a new node (node resources' hint)": Plan(
        seed=68244,
        replicas=1,
        deeds=(
            Deed(0.0, "create_node", "n1", 1, "pool-0"),
            Deed(1.0, "create_pod", "p0", 1),
            Deed(5.0, "create_extended_pod", "e0", 1),
            Deed(12.0, "create_node", "n0", 4, "pool-0"),
        ),
        faults=(),
    ),
    "a reason that waited for the lease denied the newer one that the watch had shown before it (status writer)": Plan(
        seed=4015142,
        replicas=1,
        deeds=(
            Deed(0.0, "create_node", "n0", 4, "pool-0"),
            Deed(0.0, "create_node", "n1", 4, "pool-1"),
            Deed(10.532530843811012, "create_pod", "p2", 2, "pool-0"),
            Deed(10.674573223459284, "create_pod", "p3", 2, "pool-1"),
            Deed(13.803054009121361, "create_urgent_pod", "x0", 2, ""),
            Deed(13.803054009121361, "create_urgent_pod", "x1", 2, ""),
            Deed(14.56476381094636, "replace_pod", "p12", 1, ""),
            Deed(14.646501277816427, "replace_pod", "p3", 1, ""),
            Deed(15.882770921454233, "freeze", "0", 23, ""),
            Deed(18.43591446585488, "replace_pod", "p1", 1, ""),
        ),
        faults=(Fault("slow", 13.803054009121361, 25.80305400912136, -1, 0.4),),
    ),
    "a reason equal to what a late watch showed was not said after another one had been (status writer)": Plan(
        seed=4031851,
        replicas=2,
        deeds=(
            Deed(0.0, "create_node", "n0", 4, "pool-0"),
            Deed(5.068440488057398, "create_pod", "p5", 1, "pool-1"),
            Deed(13.669552914782791, "create_pod", "p0", 1, "pool-0"),
            Deed(14.038945929557427, "create_pod", "p8", 1, "pool-0"),
            Deed(17.633677912113654, "create_picky_pod", "p4", 2, "pool-0"),
        ),
        faults=(
            Fault("refused", 11.344510626824256, 24.95128573118951, 1, 0.5),
            Fault("late", 21.10067544353554, 26.911383849504237, -1, 0.7),
        ),
    ),
    "a leader that had not seen the one before, who gave the lease up, decided from what its late watch showed": Plan(
        seed=9003205,
        replicas=2,
        deeds=(
            Deed(0.0, "create_node", "n0", 4, "pool-0"),
            Deed(2.348882914670068, "cordon", "n0", 0, ""),
            Deed(3.395977144897394, "stop", "1", 0, ""),
            Deed(11.36499162306219, "create_picky_pod", "p6", 1, "pool-0"),
        ),
        faults=(Fault("late", 1.6585023502044716, 13.738838897492771, -1, 0.7),),
    ),
    "a victim's binding failed while its preemptor waited at the gate, which heard nothing of the room": Plan(
        seed=15022255,
        replicas=1,
        deeds=(
            Deed(0.0, "create_node", "n0", 4, "pool-0"),
            Deed(1.9473776389802788, "create_pod", "p10", 1, "pool-0"),
            Deed(2.679687557751201, "create_pod", "p7", 1, "pool-1"),
            Deed(3.4028681606755775, "create_picky_pod", "p12", 1, "pool-0"),
            Deed(6.008770524491499, "create_pod", "p5", 1, "pool-1"),
            Deed(6.193203918989355, "create_pod", "p6", 1, "pool-0"),
            Deed(8.573335621201016, "create_volume_pod", "v1", 1, "made"),
            Deed(12.333078008760669, "create_picky_pod", "p1", 1, "pool-1"),
            Deed(18.209732163008592, "create_volume_pod", "v3", 2, "nowhere"),
            Deed(21.371010472295787, "create_urgent_pod", "p0", 1, "pool-0"),
        ),
        faults=(
            Fault("lost_request", 2.6529376430256404, 22.270836885648663, 0, 0.5),
            Fault("lost_answer", 0.09789999090485724, 13.288053833140854, -1, 0.7),
            Fault("late", 0.09789999090485724, 13.288053833140854, -1, 0.7),
        ),
    ),
}
"""What was wrong -> the plan that showed it."""
