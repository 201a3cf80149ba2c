// A module of its own, so that what only this trial needs is not linked into keep-proxy.
module keep-proxy/integration/powerloss/disk

go 1.26.0

require (
	github.com/hanwen/go-fuse/v2 v2.12.1
	keep-proxy v0.0.0
)

require golang.org/x/sys v0.48.0 // indirect

replace keep-proxy => ../../..
