# An image with the command longspan. docs/start/installing.md describes how to build and run it.
ARG PYTHON=3.13-slim-bookworm

FROM python:${PYTHON} AS build
# Extras to install, as in `.[openai,ltm]`.
ARG EXTRAS=openai,anthropic,google
# The commit that `longspan --version` and manifests name: the context has no .git.
ARG COMMIT=
WORKDIR /build
COPY . .
RUN pip install --no-cache-dir -c constraints.txt hatchling
RUN if [ -n "$COMMIT" ]; then printf '%s\n' "$COMMIT" > src/longspan/commit.txt; fi \
    && pip wheel --no-cache-dir --no-build-isolation --no-deps -w /wheels .
RUN python -m venv /opt/longspan \
    && /opt/longspan/bin/pip install --no-cache-dir -c constraints.txt "$(ls /wheels/longspan-*.whl)${EXTRAS:+[$EXTRAS]}" \
    && /opt/longspan/bin/pip uninstall --yes pip

FROM python:${PYTHON}
COPY --from=build /opt/longspan /opt/longspan
RUN useradd --create-home --uid 1000 longspan && install -d -o longspan -g longspan /work
ENV PATH="/opt/longspan/bin:$PATH" PYTHONUNBUFFERED=1
USER 1000:1000
WORKDIR /work
ENTRYPOINT ["longspan"]
CMD ["--help"]
