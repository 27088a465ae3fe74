"""A scheduler is asked to end while something takes its time: it says so at once, and finishes what it has begun."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor

from tests.faults.bench import FaultBench, fault
from tests.faults.loads import L1_RATE, l1_nodes
from tests.faults.proxy import DelayRequest, Match, Rule
from tests.faults.results import at_least, at_most, exactly
from tests.faults.supervisor import SupervisedScheduler
from tests.faults.test_bind_answers import binds, spoil

LATE_S = 2.0
AT_ONCE_S = 0.3


@fault(31, "SIGTERM while every bind takes 2 s on its way")
def test_not_ready_from_the_moment_it_is_asked_to_end(bench: FaultBench) -> None:
    """Nobody sends it anything any more, and the binds under way are carried out before the lease is given back."""
    scheduler = bench.scheduler("a", proxied=True)
    bench.cluster.create(*l1_nodes(bench.cluster))
    proxy = spoil(scheduler, Rule(Match(verb="create", resource="pods/binding"), DelayRequest(LATE_S)))
    load = bench.load(100, L1_RATE).wait_created(60)
    with ThreadPoolExecutor(1) as pool:
        ending = pool.submit(scheduler.terminate)
        answers = _answers_until(scheduler, ending)
    code, seconds = ending.result()
    load.stop()
    late = [answer for since_s, answer in answers if since_s > AT_ONCE_S]
    bench.figure("answers that it is ready, 0.3 s after SIGTERM or later", exactly(0), late.count(200))
    bench.figure("answers that it is not", at_least(10), late.count(500) + late.count(503))
    bench.figure("exit code", exactly(0), code)
    bench.figure("end after", at_most(LATE_S + 2.0), seconds, "s")
    sent = binds(proxy)
    unfinished = [name for name, requests in sent.items() if requests[-1].server_status != 201]
    bench.figure("binds under way when it was asked", at_least(10), len(sent))
    bench.figure("binds left without an outcome", exactly(0), len(unfinished))
    proxy.clear()
    scheduler.start_again()
    bench.settle()
    bench.verdict()


def _answers_until(scheduler: SupervisedScheduler, ending: Future[tuple[int, float]]) -> list[tuple[float, int]]:
    """Ask for readiness again and again; return seconds since the first question and status, without refusals."""
    begun_s, answers = time.monotonic(), []
    while not ending.done():
        asked_s = time.monotonic() - begun_s
        answers.append((asked_s, scheduler.daemon.health("/readyz")[0]))
        time.sleep(0.02)
    return [answer for answer in answers if answer[1]]
