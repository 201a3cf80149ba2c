package admin_test

import (
	"context"
	"net/http"
	"testing"

	"keep-proxy/admin"
	"keep-proxy/admin/wire"
)

func TestAReloadIsRecordedWithItsTokensHolder(t *testing.T) {
	t.Parallel()
	actor := ""
	w := newWorld(t, func(c *admin.Config) {
		c.Reload = func(_ context.Context, by string) (wire.Reloaded, error) {
			actor = by
			return wire.Reloaded{}, nil
		}
	})
	for token, want := range map[string]string{"": "person:operator", "second-operator-token": "person:night-shift"} {
		if got := w.do(ask{method: http.MethodPost, path: "/v1/reload", token: token}); got.status != http.StatusOK || actor != want {
			t.Errorf("%d by %q, want %q", got.status, actor, want)
		}
	}
}
