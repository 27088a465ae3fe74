"""The HTTPS endpoints: health, metrics, configuration."""
