package hop

import (
	"maps"
	"net/http"
	"slices"
	"testing"
)

func TestStripLeavesEndToEndFieldsOnly(t *testing.T) {
	t.Parallel()
	h := http.Header{
		"Connection": {"keep-alive, X-Hop", "close,,"}, "X-Hop": {"1"}, "Keep-Alive": {"timeout=5"}, "Transfer-Encoding": {"chunked"},
		"Trailer": {"X"}, "Upgrade": {"h2c"}, "Proxy-Authenticate": {"Basic"}, "Te": {"trailers"}, "Proxy-Connection": {"close"},
		"Proxy-Authorization": {"Basic"}, "Proxy-Authentication-Info": {"x"}, "Close": {"no option, but a field"},
		"Content-Type": {"application/json"}, "Link": {"a", "b"},
	}
	if !Strip(h) {
		t.Error("it nominates none")
	}
	if names := slices.Sorted(maps.Keys(h)); !slices.Equal(names, []string{"Close", "Content-Type", "Link"}) {
		t.Errorf("%v are left", names)
	}
	if Strip(http.Header{"Connection": {"close, Upgrade"}}) {
		t.Error("what belongs to each connection counts as nominated")
	}
}
