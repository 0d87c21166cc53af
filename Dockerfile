# One image builds, tests and runs the project. There is one stage, because the tests need the compiler.
ARG SWIFT_VERSION=6.3
FROM swift:${SWIFT_VERSION}-noble

RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
        libhiredis-dev liblua5.1-0-dev openssl python3 python3-pip redis-server shellcheck valgrind \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /redisdc
COPY . .
RUN scripts/demo --no-install --build

CMD ["scripts/demo", "--no-install"]
