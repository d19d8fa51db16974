# One image for the facade and for Spark jobs: their locked requirements, the package, the connector jars of Spark.
FROM rust:1.88-slim-bookworm@sha256:38bc5a86d998772d4aec2348656ed21438d20fcdce2795b56ca434cf21430d89 AS front
COPY native native
RUN cargo build --release --locked --manifest-path native/Cargo.toml

FROM python:3.11.15-slim-bookworm@sha256:b18992999dbe963a45a8a4da40ac2b1975be1a776d939d098c647482bcad5cba

RUN apt-get update \
 && apt-get install -y --no-install-recommends openjdk-17-jre-headless \
 && rm -rf /var/lib/apt/lists/*

WORKDIR /opt/leaseway
ENV LW_JARS=/opt/leaseway/jars PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1

# The requirements before the code: they change rarely, and pyspark takes a minute.
COPY requirements requirements
RUN awk '/^setuptools==/ {on = 1} on {print} on && !/\\$/ {exit}' requirements/spark.lock > build.lock \
 && pip install --require-hashes -r build.lock \
 && pip install --no-build-isolation --use-pep517 --require-hashes -r requirements/spark.lock -r requirements/otel.lock

COPY pyproject.toml README.md LICENSE ./
COPY schemas schemas
COPY runtime runtime
COPY state state
COPY engine engine
COPY facade facade
COPY --from=front native/target/release/libleaseway_front.so facade/http/sockets/
COPY spark spark
RUN pip install --no-deps --no-build-isolation . && leaseway jars spark

RUN useradd --system leaseway && mkdir /reports && chown leaseway /reports
USER leaseway
EXPOSE 9400
ENTRYPOINT ["leaseway"]
CMD ["serve"]
