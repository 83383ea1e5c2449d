# Viaduct on CUDA: libfabric with EFA, UCX with CUDA and verbs, and GDRCopy, each of a pinned version.
# Build it with deploy/docker/build.sh BUILD_TARGET=full.
ARG CUDA=12.8.1
ARG BASE=nvidia/cuda:${CUDA}-devel-ubuntu22.04
ARG RUNTIME=nvidia/cuda:${CUDA}-base-ubuntu22.04

FROM ${BASE} AS fabrics
RUN apt-get update \
 && apt-get install -y --no-install-recommends autoconf automake bzip2 ca-certificates curl g++ libibverbs-dev \
      libnuma-dev librdmacm-dev libtool make pkg-config \
 && rm -rf /var/lib/apt/lists/*
ARG GDRCOPY=2.5.1
RUN curl -fsSL https://github.com/NVIDIA/gdrcopy/archive/refs/tags/v${GDRCOPY}.tar.gz | tar -xz -C /tmp \
 && make -C /tmp/gdrcopy-${GDRCOPY} -j"$(nproc)" prefix=/opt/gdrcopy CUDA=/usr/local/cuda lib lib_install
ARG UCX=1.20.0
RUN curl -fsSL https://github.com/openucx/ucx/releases/download/v${UCX}/ucx-${UCX}.tar.gz | tar -xz -C /tmp \
 && cd /tmp/ucx-${UCX} \
 && ./contrib/configure-release --prefix=/opt/ucx --enable-mt --with-verbs --with-rdmacm --without-java --without-go \
      --with-cuda=/usr/local/cuda --with-gdrcopy=/opt/gdrcopy \
 && make -j"$(nproc)" install-strip
ARG LIBFABRIC=2.5.1
RUN curl -fsSL https://github.com/ofiwg/libfabric/releases/download/v${LIBFABRIC}/libfabric-${LIBFABRIC}.tar.bz2 | tar -xj -C /tmp \
 && cd /tmp/libfabric-${LIBFABRIC} \
 && ./configure --prefix=/opt/libfabric --enable-efa --enable-verbs --enable-cuda-dlopen --enable-gdrcopy-dlopen \
      --with-cuda=/usr/local/cuda --with-gdrcopy=/opt/gdrcopy \
 && make -j"$(nproc)" install-strip
# fi_rma_bw, the baseline on EFA.
RUN curl -fsSL https://github.com/ofiwg/libfabric/releases/download/v${LIBFABRIC}/fabtests-${LIBFABRIC}.tar.bz2 | tar -xj -C /tmp \
 && cd /tmp/fabtests-${LIBFABRIC} \
 && ./configure --prefix=/opt/fabtests --with-libfabric=/opt/libfabric \
 && make -j"$(nproc)" install-strip

FROM ${BASE} AS program
RUN apt-get update \
 && apt-get install -y --no-install-recommends binutils cmake g++ libarchive-dev libcurl4-openssl-dev \
      libfmt-dev libssl-dev ninja-build nlohmann-json3-dev python3 \
 && rm -rf /var/lib/apt/lists/*
COPY --from=fabrics /opt /opt
COPY . /source
# CMake compiles CUDA code for these architectures.
ARG CUDA_ARCH=90
ENV CUDAARCHS=${CUDA_ARCH}
RUN cmake -G Ninja -S /source -B /build -DCMAKE_BUILD_TYPE=Release -DVIADUCT_TESTS=OFF -DVIADUCT_BENCH=OFF -DVIADUCT_MERGE=ON \
      -DCMAKE_PREFIX_PATH="/opt/libfabric;/opt/ucx" \
 && cmake --build /build --target viaduct_cli \
 && install -D -s /build/apps/viaduct/viaduct /out/usr/local/bin/viaduct \
 && ln -s viaduct /out/usr/local/bin/nixlbench \
 && install -D -t /out/usr/local/bin /source/deploy/docker/bin/* \
 && install -D -m 644 -t /out/usr/share/doc/viaduct /source/LICENSE

FROM ${RUNTIME}
ARG LIBFMT=libfmt8
RUN apt-get update \
 && apt-get install -y --no-install-recommends ibverbs-providers iperf3 libarchive13 libcurl4 ${LIBFMT} libibverbs1 \
      libnuma1 librdmacm1 libssl3 perftest \
 && rm -rf /var/lib/apt/lists/* /var/cache/debconf/*-old /var/log/* \
 && echo 'viaduct:x:65532:65532::/tmp:/usr/sbin/nologin' >>/etc/passwd \
 && echo 'viaduct:x:65532:' >>/etc/group
COPY --from=fabrics /opt /opt
COPY --from=program /out/ /
# The loader takes these before the distribution's.
RUN printf '/opt/%s/lib\n' libfabric ucx gdrcopy >/etc/ld.so.conf.d/000-viaduct.conf \
 && ldconfig \
 && ln -s /opt/ucx/bin/ucx_info /opt/ucx/bin/ucx_perftest /opt/libfabric/bin/fi_info /opt/fabtests/bin/fi_rma_bw /usr/local/bin/
ARG VERSION=0.1.0
ARG COMMIT=unknown
ARG CUDA_ARCH=90
ARG CUDA_ARCH_NAME=hopper
LABEL org.opencontainers.image.title="viaduct" \
      org.opencontainers.image.description="Moves blocks of memory between processes and hosts, and measures it; with EFA and CUDA" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${COMMIT}" \
      viaduct.cuda.arch="${CUDA_ARCH}" \
      viaduct.cuda.arch-name="${CUDA_ARCH_NAME}"
# RDMA needs root or an unlimited memlock: docs/containers.md.
USER 65532:65532
WORKDIR /tmp
HEALTHCHECK --interval=60s --timeout=5s CMD ["viaduct", "--version"]
CMD ["viaduct", "bench"]
