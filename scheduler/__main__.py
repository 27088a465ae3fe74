"""``python -m scheduler`` is the ``podium`` command."""

from scheduler.cli.main import entry

if __name__ == "__main__":
    entry()
