package upstream

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// What net/http's transport sends shows its interim responses, too, but not without end.
func TestInterimResponsesToWhatNetHTTPSends(t *testing.T) {
	t.Parallel()
	hint := "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
	for name, c := range map[string]struct {
		sent, want int
		ok         bool
	}{
		"a few":    {3, 3, true},
		"the most": {mostInterims, mostInterims, true},
		"one more": {mostInterims + 1, mostInterims, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := serve(t, nil, answeringAll(strings.Repeat(hint, c.sent)+ok))
			var shown seen
			r := posting(t, u.url("http", "/"), "in ", "pieces")
			status, _, _, err := readAll(passer(t, Config{Dial: opaqueDial}), r.WithContext(context.WithValue(r.Context(), InterimsKey{}, &shown)))
			if c.ok != (err == nil && status == http.StatusOK) {
				t.Errorf("got %d, %v", status, err)
			}
			if want := slices.Repeat([]string{"Early Hints </a>"}, c.want); !slices.Equal(shown, want) {
				t.Errorf("%d interim responses, want %d", len(shown), c.want)
			}
		})
	}
}
