# Viaduct on Debian: backends local, tcp, ofi and ucx, an etcd to meet at, and the raw tools to compare with.
# Build it with deploy/docker/build.sh.
ARG BASE=debian:12-slim

FROM ${BASE} AS program
RUN apt-get update \
 && apt-get install -y --no-install-recommends binutils cmake g++ libarchive-dev libcurl4-openssl-dev \
      libfabric-dev libfmt-dev libssl-dev libucx-dev ninja-build nlohmann-json3-dev python3 \
 && rm -rf /var/lib/apt/lists/*
COPY . /source
RUN cmake -G Ninja -S /source -B /build -DCMAKE_BUILD_TYPE=Release -DVIADUCT_TESTS=OFF -DVIADUCT_BENCH=OFF -DVIADUCT_MERGE=ON \
 && cmake --build /build --target viaduct_cli \
 && install -D -s /build/apps/viaduct/viaduct /out/usr/local/bin/viaduct \
 && ln -s viaduct /out/usr/local/bin/nixlbench \
 && install -D -t /out/usr/local/bin /source/deploy/docker/bin/* \
 && install -D -m 644 -t /out/usr/share/doc/viaduct /source/LICENSE

FROM ${BASE}
RUN apt-get update \
 && apt-get install -y --no-install-recommends etcd-server ibverbs-providers iperf3 libarchive13 libcurl4 libfabric1 \
      libfmt9 libssl3 libucx0 perftest ucx-utils \
 && rm -rf /var/lib/apt/lists/* /var/cache/debconf/*-old /var/log/* \
 && echo 'viaduct:x:65532:65532::/tmp:/usr/sbin/nologin' >>/etc/passwd \
 && echo 'viaduct:x:65532:' >>/etc/group
COPY --from=program /out/ /
ARG VERSION=0.1.0
ARG COMMIT=unknown
LABEL org.opencontainers.image.title="viaduct" \
      org.opencontainers.image.description="Moves blocks of memory between processes and hosts, and measures it" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${COMMIT}"
# For GPU memory: libcuda.so.1 comes from the host, by NVIDIA's container runtime. The image has nothing of CUDA.
ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility
# RDMA needs root or an unlimited memlock: docs/containers.md.
USER 65532:65532
WORKDIR /tmp
HEALTHCHECK --interval=60s --timeout=5s CMD ["viaduct", "--version"]
CMD ["viaduct", "bench"]
