package reconcilers

import (
	"maps"
	"net/http"
	"slices"
	"testing"
)

func TestStoredAnswersKeepEndToEndFieldsOnly(t *testing.T) {
	t.Parallel()
	in := http.Header{
		"Connection": {"keep-alive, X-Hop"}, "X-Hop": {"1"}, "Keep-Alive": {"timeout=5"}, "Transfer-Encoding": {"chunked"},
		"Trailer": {"X"}, "Upgrade": {"h2c"}, "Proxy-Authenticate": {"Basic"},
		"Content-Type": {"application/json"}, "Link": {"a", "b"}, "Etag": {`"1"`},
	}
	got := endToEnd(in)
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, []string{"Content-Type", "Etag", "Link"}) {
		t.Errorf("kept %v", names)
	}
	if !slices.Equal(got["Link"], []string{"a", "b"}) {
		t.Errorf("a repeated field became %v", got["Link"])
	}
	if len(in) != 10 {
		t.Error("the answer's own header was changed")
	}
}
