# A name server and a broker in one container: docs/ci.md says how to run it.
FROM python:3.12-slim AS build
# The native core is built here: the slim image has no compiler.
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev
COPY . /source
RUN python -m venv /opt/pocketmq \
    && /opt/pocketmq/bin/pip install --no-cache-dir --constraint /source/constraints.txt /source

FROM python:3.12-slim
COPY --from=build /opt/pocketmq /opt/pocketmq
RUN useradd --system --uid 10001 pocketmq && install --directory --owner pocketmq /store
USER pocketmq
ENV PATH=/opt/pocketmq/bin:$PATH
VOLUME /store
EXPOSE 9876 10911 10909 8080
HEALTHCHECK --interval=2s --timeout=2s --start-period=5s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/readyz')"]
ENTRYPOINT ["pocketmq", "serve", "--host", "0.0.0.0", "--store", "/store", "--admin-port", "8080"]
# Clients outside the container reach the broker at the address that routes name.
CMD ["--advertise", "127.0.0.1:10911"]
