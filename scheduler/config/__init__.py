"""KubeSchedulerConfiguration v1: types, defaults, merging, validation, loading, flags."""
