"""The log writer: a blocked output costs lines, never time."""

import io
import threading

from scheduler.telemetry.log_writer import LogWriter


class BlockedStream(io.StringIO):
    """Takes nothing until released, like a full pipe."""

    def __init__(self):
        super().__init__()
        self.reached, self.released = threading.Event(), threading.Event()

    def write(self, text):
        self.reached.set()
        self.released.wait()
        return super().write(text)


def test_lines_are_written_at_once_without_a_thread():
    stream = io.StringIO()
    LogWriter(stream).write("one")
    assert stream.getvalue() == "one\n"


def test_stop_writes_what_is_queued():
    stream = io.StringIO()
    writer = LogWriter(stream)
    writer.start()
    for number in range(2_000):
        writer.write(str(number))
    writer.stop()
    assert stream.getvalue().splitlines() == [str(number) for number in range(2_000)]
    assert writer.dropped == 0


def test_blocked_output_drops_and_counts_and_says_so_later():
    """The pipe is full: writers go on, the lines beyond the capacity are lost, one line tells how many."""
    stream = BlockedStream()
    writer = LogWriter(stream, capacity=3)
    writer.start()
    writer.write("first")
    stream.reached.wait()
    for number in range(10):
        writer.write(str(number))
    assert writer.dropped == 7
    stream.released.set()
    writer.stop()
    assert stream.getvalue().splitlines() == ["first", "0", "1", "2", "log lines lost: 7"]


def test_stop_gives_up_on_an_output_that_never_takes_anything():
    stream = BlockedStream()
    writer = LogWriter(stream)
    writer.start()
    writer.write("first")
    stream.reached.wait()
    writer.stop(timeout_s=0.01)
    stream.released.set()


def test_full_disk_is_counted_and_survived():
    class Full(io.StringIO):
        def write(self, text):
            raise OSError(28, "No space left on device")

    writer = LogWriter(Full())
    writer.write("one")
    assert writer.dropped == 1


def test_a_volume_that_was_full_hears_of_every_line_it_lost():
    """Also of those whose count was among what could not be written."""

    class FullStream(io.StringIO):
        is_full = True

        def write(self, text):
            if self.is_full:
                raise OSError(28, "No space left on device")
            return super().write(text)

    stream = FullStream()
    writer = LogWriter(stream)
    for line in ("one", "two", "three"):
        writer.write(line)
    stream.is_full = False
    writer.write("four")
    writer.write("five")
    assert writer.dropped == 3
    assert stream.getvalue().splitlines() == ["four", "log lines lost: 3", "five"]
