# SPDX-License-Identifier: Apache-2.0
FROM debian:trixie-slim AS build
WORKDIR /src
COPY scripts/install-deps scripts/
RUN scripts/install-deps build
COPY . .
RUN scripts/build release && strip build-release/bin/*

FROM debian:trixie-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates libgrpc++1.51t64 libhiredis1.1.0 \
      liblmdb0 libspdlog1.15 libuv1t64 libyaml-cpp0.8 \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --system --gid 7420 holdfast \
 && useradd --system --uid 7420 --gid 7420 --home-dir /var/lib/holdfast --shell /usr/sbin/nologin holdfast \
 && install -d -o holdfast -g holdfast -m 0750 /var/lib/holdfast
COPY --from=build /src/build-release/bin/holdfastd /src/build-release/bin/holdfast /usr/bin/
COPY LICENSE /usr/share/doc/holdfast/
USER 7420:7420
ENV STATE_DIRECTORY=/var/lib/holdfast
VOLUME /var/lib/holdfast
EXPOSE 7420
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s CMD ["holdfast", "ping"]
# The environment, not an argument: --listen given to `docker run` replaces it instead of adding to it.
ENV HOLDFAST_LISTEN=0.0.0.0:7420
ENTRYPOINT ["holdfastd"]
