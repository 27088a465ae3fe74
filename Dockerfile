# syntax=docker/dockerfile:1
FROM python:3.13-slim-bookworm AS build
WORKDIR /src
COPY requirements/runtime.lock requirements/build.lock ./requirements/
RUN python -m venv /app/.venv /build/.venv \
 && /build/.venv/bin/pip install --no-cache-dir --require-hashes -r requirements/build.lock \
 && /app/.venv/bin/pip install --no-cache-dir --no-compile --require-hashes -r requirements/runtime.lock
COPY pyproject.toml README.md LICENSE ./
COPY scheduler ./scheduler
RUN /build/.venv/bin/python -m hatchling build -t wheel -d /dist \
 && /app/.venv/bin/pip install --no-cache-dir --no-deps /dist/*.whl \
 && /app/.venv/bin/python -m compileall -q /app/.venv/lib \
 && /app/.venv/bin/pip uninstall --yes pip

FROM python:3.13-slim-bookworm
LABEL org.opencontainers.image.title="podium" \
      org.opencontainers.image.description="A Kubernetes scheduler written in Python" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    PYTHONSAFEPATH=1 \
    PYTHONFAULTHANDLER=1 \
    MALLOC_ARENA_MAX=2
COPY --from=build /app/.venv /app/.venv
USER 65532:65532
EXPOSE 10259
STOPSIGNAL SIGTERM
ENTRYPOINT ["/app/.venv/bin/podium"]
CMD ["run"]
