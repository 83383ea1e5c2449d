# Viaduct for Python on Debian: the packages viaduct and viaduct-nixl, and the libraries that the backends ofi and
# ucx load. Build it with deploy/docker/build.sh BUILD_TARGET=slim-python.
ARG BASE=debian:12-slim

FROM ${BASE} AS wheels
RUN apt-get update \
 && apt-get install -y --no-install-recommends binutils cmake g++ libcurl4-openssl-dev libfabric-dev libfmt-dev libssl-dev \
      libucx-dev ninja-build nlohmann-json3-dev pybind11-dev python3-dev python3-pip \
 && rm -rf /var/lib/apt/lists/*
COPY . /source
RUN python3 /source/python/build_backend/viaduct_build.py wheel --out /wheels \
 && python3 /source/python/build_backend/viaduct_build.py nixl-wheel --out /wheels
# Python of Debian looks for packages that are not Debian's in this folder.
RUN python3 -m pip install --no-index --find-links /wheels --target /out/packages viaduct-nixl \
 && mkdir -p /out/usr/local/bin /out/usr/local/lib/python3.11 \
 && mv /out/packages/bin/* /out/usr/local/bin \
 && rmdir /out/packages/bin \
 && mv /out/packages /out/usr/local/lib/python3.11/dist-packages \
 && install -m 755 /source/examples/python/p2p.py /out/usr/local/bin/viaduct-p2p \
 && install -D -m 644 -t /out/usr/share/doc/viaduct /source/LICENSE

FROM ${BASE}
RUN apt-get update \
 && apt-get install -y --no-install-recommends ibverbs-providers libcurl4 libfabric1 libucx0 python3 \
 && rm -rf /var/lib/apt/lists/* /var/cache/debconf/*-old /var/log/* \
 && echo 'viaduct:x:65532:65532::/tmp:/usr/sbin/nologin' >>/etc/passwd \
 && echo 'viaduct:x:65532:' >>/etc/group
COPY --from=wheels /out/ /
ARG VERSION=0.1.0
ARG COMMIT=unknown
LABEL org.opencontainers.image.title="viaduct-python" \
      org.opencontainers.image.description="Moves blocks of memory between processes and hosts, from Python" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${COMMIT}"
# For GPU memory: libcuda.so.1 comes from the host, by NVIDIA's container runtime. The image has nothing of CUDA.
ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility
# RDMA needs root or an unlimited memlock: docs/containers.md.
USER 65532:65532
WORKDIR /tmp
HEALTHCHECK --interval=60s --timeout=5s CMD ["python3", "-c", "import viaduct"]
CMD ["python3", "-m", "viaduct.verify"]
