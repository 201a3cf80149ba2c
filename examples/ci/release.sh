#!/bin/sh
# What a CI job runs to publish a release. TAG comes from the CI system.
set -eu
: "${TAG:?the tag that is released}"
# --wait: a retry right after an unknown outcome waits until it is known.
exec keep-proxy run ${RUN_FLAGS:-} --wait 15m --workflow release --item "$TAG" \
    --title "Release $TAG" --resume-hint "re-run the release job of $TAG" -- sh "${PUBLISH:-publish.sh}"
