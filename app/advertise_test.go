package app_test

import (
	"strings"
	"testing"

	"keep-proxy/admin/wire"
)

func TestARunIsGivenTheAdvertisedAddress(t *testing.T) {
	t.Parallel()
	c := plain(t)
	c.Proxy.Advertise = "proxy.sandbox.test:3128"
	a := start(t, c)
	opened, err := operatorOf(t, a).OpenRun(t.Context(), wire.OpenRun{Workflow: "w", Item: "i"}, "")
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]string{"proxy_url": opened.ProxyURL, "HTTPS_PROXY": opened.Env["HTTPS_PROXY"], "http_proxy": opened.Env["http_proxy"]} {
		if !strings.HasSuffix(got, "@proxy.sandbox.test:3128") {
			t.Errorf("%s is %q, which isn't the advertised address", name, got)
		}
	}
}
