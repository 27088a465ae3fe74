"""The controller's rounds against an API server and a scheduler that do as they are told."""

import asyncio
import json

import pytest

from scheduler.config.errors import ConfigError
from scheduler.config.gates import DEFAULT_GATES
from scheduler.config.load import default_configuration
from scheduler.controllers.live_profiles import LiveProfiles
from scheduler.framework.profile import Resolved
from scheduler.kube.errors import TransportError
from scheduler.kube.transport import Response

PATH = "/apis/scheduling.podium.dev/v1alpha1/schedulerprofiles"


class World:
    """Transport, host, watch and metrics in one; time stands still unless it is moved."""

    def __init__(self, **settings):
        self.now_s = 1000.0
        self.objects = {}
        self.answer = None
        self.patch_status = 200
        self.patches = []
        self.applied = []
        self.preloaded = []
        self.foreign = {}
        self.refusals = {}
        self.scheduled = 0
        self.is_leading = True
        self.is_running = False
        self.problem = ""
        self.starts = 0
        self.counts = {}
        self.errors = []
        self.live = LiveProfiles(
            transport=self,
            host=self,
            configuration=default_configuration(),
            gates=DEFAULT_GATES,
            metrics=self,
            may_write=lambda seconds: self.is_leading,
            resync_s=30.0,
            watch=self,
            monotonic=lambda: self.now_s,
        )

    def put(self, name, *, generation=1, **spec):
        known = self.objects.get(name, {})
        self.objects[name] = {
            "metadata": {"name": name, "uid": f"uid-{name}", "generation": generation},
            "spec": {"schedulerName": name, **spec},
            "status": known.get("status", {}),
        }

    # transport
    async def request(self, method, path, *, body=None, content_type="", timeout_s):
        if method == "GET":
            assert path == PATH
            if isinstance(self.answer, Exception):
                raise self.answer
            if self.answer is not None:
                return self.answer
            return Response(200, {}, json.dumps({"items": list(self.objects.values())}).encode())
        name = path.removeprefix(f"{PATH}/").removesuffix("/status")
        assert (method, content_type) == ("PATCH", "application/merge-patch+json")
        if self.patch_status != 200:
            return Response(self.patch_status, {}, b"{}")
        patch = json.loads(body)["status"]
        self.patches.append((name, patch))
        status = self.objects[name]["status"]
        status.update(patch)
        status["plugins"] = {k: v for k, v in (patch["plugins"] or {}).items() if v is not None} or None
        for key in [key for key, value in status.items() if value is None]:
            del status[key]
        return Response(200, {}, b"{}")

    # host
    def is_imported(self, plugin):
        return plugin not in self.foreign

    async def preload(self, plugin):
        self.preloaded.append(plugin)
        await self.foreign[plugin].wait()
        del self.foreign[plugin]

    async def apply(self, puts, removes):
        self.applied.append(([p.scheduler_name for p in puts], list(removes)))
        return {
            p.scheduler_name: ConfigError(self.refusals[p.scheduler_name])
            if p.scheduler_name in self.refusals
            else Resolved({"score": ("A",), "bind": ("B",)}, {"A": 3})
            for p in puts
        }

    def pods_scheduled(self, name):
        return self.scheduled

    # watch
    def start(self):
        self.starts += 1
        self.is_running = True

    def stop(self):
        self.is_running = False

    # metrics
    def live_profiles(self, counts):
        self.counts = dict(counts)

    def live_profile_error(self, operation):
        self.errors.append(operation)

    def round(self):
        asyncio.run(self.live._reconcile())

    def status(self, name):
        return self.objects[name]["status"]

    def ready(self, name):
        (condition,) = self.status(name)["conditions"]
        return condition["status"], condition["reason"], condition["message"]


@pytest.fixture
def world():
    return World()


def test_an_object_becomes_live_and_is_told(world):
    world.put("batch")
    world.round()
    assert world.applied == [(["batch"], [])]
    assert world.preloaded == []
    status = world.status("batch")
    assert world.ready("batch") == ("True", "Serving", 'pods with schedulerName "batch" are scheduled by generation 1')
    assert (status["observedGeneration"], status["servingGeneration"], status["podsScheduled"]) == (1, 1, 0)
    assert status["plugins"] == {"score": ["A=3"], "bind": ["B"]}
    assert "errors" not in status
    assert world.counts == {"serving": 1, "outdated": 0, "refused": 0}
    assert world.starts == 1


def test_a_second_round_changes_and_writes_nothing(world):
    world.put("batch")
    world.round()
    world.round()
    assert len(world.applied) == len(world.patches) == 1


def test_a_refused_change_is_told_and_the_last_good_version_serves(world):
    world.put("batch")
    world.round()
    began = world.status("batch")["conditions"][0]["lastTransitionTime"]
    world.put("batch", generation=2, percentageOfNodesToScore=101)
    world.round()
    problem = "spec.percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"
    assert world.applied == [(["batch"], [])]
    assert world.ready("batch") == (
        "False",
        "Outdated",
        f'generation 1 keeps scheduling the pods with schedulerName "batch"; generation 2 is refused: {problem}',
    )
    status = world.status("batch")
    assert (status["observedGeneration"], status["servingGeneration"], status["errors"]) == (2, 1, [problem])
    assert world.counts == {"serving": 0, "outdated": 1, "refused": 0}
    world.put("batch", generation=3)
    world.round()
    assert world.ready("batch")[:2] == ("True", "Serving")
    assert world.status("batch")["servingGeneration"] == 3
    assert world.applied == [(["batch"], [])], "it means the same as what serves"
    assert world.status("batch")["conditions"][0]["lastTransitionTime"] >= began


def test_a_profile_that_cannot_be_made_is_tried_again_ever_more_rarely(world):
    world.refusals["batch"] = ['plugin "A" does not exist', "and more"]
    world.put("batch")
    tries = []
    for second in range(0, 200, 10):
        before = len(world.applied)
        world.round()
        tries += [second] * (len(world.applied) - before)
        world.now_s += 10
    assert tries == [0, 30, 90]
    assert world.ready("batch")[1:] == ("Refused", 'generation 1 is refused: [plugin "A" does not exist, and more]')
    assert world.status("batch")["errors"] == ['plugin "A" does not exist', "and more"]
    world.put("batch", generation=2, percentageOfNodesToScore=1)
    del world.refusals["batch"]
    world.round()
    assert world.ready("batch")[:2] == ("True", "Serving"), "a new generation is tried at once"


def test_a_deleted_object_is_removed_and_forgotten(world):
    world.put("batch")
    world.round()
    del world.objects["batch"]
    world.round()
    assert world.applied[-1] == ([], ["batch"])
    world.round()
    assert len(world.applied) == 2
    assert world.counts == {"serving": 0, "outdated": 0, "refused": 0}


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        (
            Response(404, {}, b""),
            "the API server has no /apis/scheduling.podium.dev/v1alpha1/schedulerprofiles: apply ",
        ),
        (Response(403, {}, b""), "no right to list schedulerprofiles"),
        (Response(500, {}, b""), "500"),
        (Response(200, {}, b"<html>"), "list of schedulerprofiles: "),
        (TransportError("refused", sent=False), "refused"),
        (ValueError("bug"), "ValueError('bug')"),
    ],
)
def test_what_cannot_be_read_changes_nothing(world, answer, line):
    world.put("batch")
    world.round()
    world.answer = answer
    world.round()
    assert len(world.applied) == 1
    assert len(world.errors) == 1
    assert any(line in shown for shown in world.live.lines()), world.live.lines()
    assert world.live.lines()[0].startswith("live profiles: 1 serving, 0 outdated, 0 refused, listed 0s ago")
    world.answer = None
    world.round()
    assert len(world.live.lines()) == 1


def test_a_standby_follows_and_writes_nothing(world):
    world.is_leading = False
    world.put("batch")
    world.round()
    assert (world.applied, world.patches) == ([(["batch"], [])], [])
    world.is_leading = True
    world.round()
    assert len(world.applied) == 1
    assert world.ready("batch")[0] == "True"


def test_pods_are_counted_on_from_the_status_and_shown_now_and_then(world):
    world.put("batch")
    world.objects["batch"]["status"] = {"podsScheduled": 40}
    world.scheduled = 5  # by an earlier object of this name
    world.round()
    assert world.status("batch")["podsScheduled"] == 40
    world.scheduled = 12
    world.now_s += 29
    world.round()
    assert (world.status("batch")["podsScheduled"], len(world.patches)) == (40, 1)
    world.now_s += 2
    world.round()
    assert (world.status("batch")["podsScheduled"], len(world.patches)) == (47, 2)
    world.scheduled = 3  # the metrics were reset
    world.now_s += 31
    world.round()
    assert world.status("batch")["podsScheduled"] == 50


def test_a_status_that_cannot_be_written_is_tried_again(world):
    world.put("batch")
    world.patch_status = 500
    world.round()
    assert world.errors == ["status"]
    world.patch_status = 200
    world.round()
    assert world.ready("batch")[0] == "True"


def test_extension_points_that_are_empty_now_go_from_the_status(world):
    """A merge patch keeps what it does not name; without care every round would write again."""
    world.put("batch")
    world.objects["batch"]["status"] = {"plugins": {"permit": ["Old"], "bind": ["B"]}}
    world.round()
    assert world.patches[0][1]["plugins"] == {"permit": None, "score": ["A=3"], "bind": ["B"]}
    world.round()
    assert len(world.patches) == 1


def test_a_new_leader_knows_the_objects_before_it_decides_but_does_not_wait_for_ever(world):
    world.put("batch")

    async def lead():
        await world.live.sync(5.0)
        assert world.applied == [(["batch"], [])]
        assert world.patches == [], "statuses can wait"
        await world.live._lock.acquire()  # a round that hangs
        await world.live.sync(0.01)

    asyncio.run(lead())


def test_changes_and_time_lead_to_rounds(world):
    """Run: one round at once, one after a change, and the watch ends with it."""

    async def run():
        task = asyncio.create_task(world.live.run())
        await asyncio.sleep(0.02)
        world.put("batch")
        world.live.changed()
        await asyncio.sleep(0.2)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
    assert world.applied == [(["batch"], [])]
    assert not world.is_running


def test_a_package_that_takes_for_ever_to_import_holds_up_its_own_profile_alone(world, monkeypatch):
    """It is imported once, said to be missing, and the profile serves as soon as it is there."""
    monkeypatch.setattr("scheduler.controllers.live_profiles._IMPORT_S", 0.05)

    async def follow():
        quick, slow = world.foreign["Quick"], world.foreign["Slow"] = asyncio.Event(), asyncio.Event()
        quick.set()
        world.put("a", plugins={"score": {"enabled": [{"name": "Quick"}]}})
        world.put("b", plugins={"score": {"enabled": [{"name": "Slow"}]}})
        task = asyncio.create_task(world.live.run())
        await _until(lambda: len(world.patches) == 2)
        assert (world.ready("a")[1], world.ready("b")[1]) == ("Serving", "Refused")
        assert world.status("b")["errors"] == ["the package of Slow is still being imported after 0 s"]
        world.live.changed()
        await asyncio.sleep(0.15)
        assert world.preloaded == ["Quick", "Slow"]
        slow.set()
        await _until(lambda: world.ready("b")[1] == "Serving")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(follow())


async def _until(probe):
    async with asyncio.timeout(10):
        while not probe():  # noqa: ASYNC110  whatever the probe looks at
            await asyncio.sleep(0.01)
