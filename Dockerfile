# The final image holds the static binary, the roots that upstreams are checked
# with, an empty /tmp for bodies that are spooled to disk, and the folder of the
# ledger. Nothing else, no shell either.

FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -o /image/files/keep-proxy ./cmd/keep-proxy \
 && mkdir -p /image/files/etc/ssl/certs /image/data \
 && cp /etc/ssl/certs/ca-certificates.crt /image/files/etc/ssl/certs/ \
 && mkdir -m 1777 /image/files/tmp \
 && mkdir -m 0700 /image/data/keep-proxy \
 && mkdir -m 0755 /image/data/keep-proxy-ca

FROM scratch
COPY --from=build /image/files/ /
# The ledger, the CA and the operator's token; beside it a folder for the CA that
# other containers may see (proxy.ca.bundle_out). A new named volume takes owner
# and mode from here; a folder of the host must belong to 65532.
COPY --from=build --chown=65532:65532 /image/data/ /var/lib/
VOLUME /var/lib/keep-proxy
ENV KEEP_LEDGER_DIR=/var/lib/keep-proxy
USER 65532:65532
# The proxy. It listens on loopback, as a sidecar in a shared network namespace
# should; KEEP_PROXY_LISTEN=0.0.0.0:8080 opens it to other containers.
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s CMD ["/keep-proxy", "health"]
ENTRYPOINT ["/keep-proxy"]
CMD ["serve"]
