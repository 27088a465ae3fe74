"""The profile of long runs."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "fuzz", max_examples=3_000, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)
