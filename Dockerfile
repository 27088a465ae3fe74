# syntax=docker/dockerfile:1
# Two stages: an environment with hashes checked, then that environment alone beside an interpreter, without a shell.
# Bases are pinned by digest; a release renews them (--build-arg BUILD_BASE=… --build-arg RUN_BASE=…).
ARG BUILD_BASE=debian:12-slim@sha256:abd67ffcfa541b485a3dff59865ab629aa048a6c613e639d36e7456b0b229241
ARG RUN_BASE=gcr.io/distroless/python3-debian12:nonroot@sha256:7d1042ce588ab97019fe95c24ffca7bc5a82ccdac572511d5e09bda4435c89c5

# The same Python as the runtime's, at the same path.
FROM ${BUILD_BASE} AS python
# Debian's point releases replace versions, so the base is what pins them.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends python3-venv \
 && rm -rf /var/lib/apt/lists/*

# tests/chart runs every instruction of this stage as it stands here. The official client (137 MB with its models) serves
# exec credential plugins alone; those are programs, and this image has none. numpy's tests and build tools go too.
FROM python AS build
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
WORKDIR /src
COPY requirements/runtime.lock requirements/build.lock ./requirements/
RUN python3 -m venv /app/.venv \
 && python3 -m venv /build/.venv \
 && /build/.venv/bin/pip install --no-cache-dir --require-hashes -r requirements/build.lock \
 && /app/.venv/bin/pip install --no-cache-dir --no-compile --require-hashes -r requirements/runtime.lock \
 && /app/.venv/bin/pip uninstall --yes kubernetes pydantic pydantic-core \
 && find /app/.venv -path '*/numpy/*' -type d \( -name tests -o -name f2py -o -name distutils -o -name include \) -prune -exec rm -r {} + \
 && /build/.venv/bin/python3 -m compileall -q /app/.venv/lib
COPY pyproject.toml README.md LICENSE ./
COPY scheduler ./scheduler
RUN /build/.venv/bin/python3 -m hatchling build -t wheel -d /dist
WORKDIR /dist
RUN sha256sum -- *.whl | sed -E 's|^([0-9a-f]+)  (.*)|/dist/\2 --hash=sha256:\1|' > wheel.lock \
 && /app/.venv/bin/pip install --no-cache-dir --no-deps --no-compile --require-hashes -r wheel.lock \
 && /app/.venv/bin/pip uninstall --yes pip setuptools \
 && /build/.venv/bin/python3 -m compileall -q /app/.venv/lib

FROM ${RUN_BASE}
# A release says which one it is: --build-arg VERSION=… --build-arg REVISION="$(git rev-parse HEAD)"
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="podium" \
      org.opencontainers.image.description="A Kubernetes scheduler written in Python" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
ENV MALLOC_ARENA_MAX=2 \
    PATH=/app/.venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
COPY --from=build /app/.venv /app/.venv
USER 65532:65532
EXPOSE 10259
STOPSIGNAL SIGTERM
# -I reads neither PYTHON* variables nor a user's site; -B, since the root cannot be written to.
ENTRYPOINT ["/app/.venv/bin/python3", "-I", "-B", "-u", "-X", "faulthandler", "-m", "scheduler"]
CMD ["run"]
