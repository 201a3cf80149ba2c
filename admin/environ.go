package admin

import (
	"net"
	"net/url"
	"strconv"

	"keep-proxy/ledger"
)

// proxyUser is the user name of proxy credentials; the token is the password.
const proxyUser = "run"

// door is where a run's requests go in: an address, and the credentials for it.
type door struct {
	// address is the host:port as sandboxes see it.
	address string
	// token is empty for the unmanaged scope, and at a run's own listener.
	token string
}

// url is the door as proxy variables take it.
func (d door) url() string {
	u := url.URL{Scheme: "http", Host: d.address}
	if d.token != "" {
		u.User = url.UserPassword(proxyUser, d.token)
	}
	return u.String()
}

// environ returns the variables by which the common clients find the proxy and
// trust its CA. Names of proxies are given in upper and in lower case, since
// clients differ in which they read. NO_PROXY is emptied: an inherited list
// would lead around the proxy.
//
// Most CA variables replace a client's own roots and take the combined bundle;
// NODE_EXTRA_CA_CERTS and DENO_CERT add to them and take the CA alone.
//
// Java and Node before 22.21 read none of these; they need the proxy in their
// own settings.
func environ(e Environment, d door) map[string]string {
	address := d.url()
	env := map[string]string{
		"HTTP_PROXY": address, "http_proxy": address,
		"HTTPS_PROXY": address, "https_proxy": address,
		"ALL_PROXY": address, "all_proxy": address,
		"NO_PROXY": "", "no_proxy": "",
		"NODE_USE_ENV_PROXY": "1",
		"UV_NATIVE_TLS":      "1",

		"NODE_EXTRA_CA_CERTS": e.CAFile(),
		"DENO_CERT":           e.CAFile(),
	}
	for _, name := range []string{
		"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "GIT_SSL_CAINFO",
		"AWS_CA_BUNDLE", "CARGO_HTTP_CAINFO", "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
	} {
		env[name] = e.BundleFile()
	}
	addCloudSDK(env, d)
	return env
}

// addCloudSDK adds the proxy as gcloud takes it: in parts.
func addCloudSDK(env map[string]string, d door) {
	host, port, err := net.SplitHostPort(d.address)
	if err != nil {
		return
	}
	env["CLOUDSDK_PROXY_TYPE"] = "http"
	env["CLOUDSDK_PROXY_ADDRESS"] = host
	env["CLOUDSDK_PROXY_PORT"] = port
	if d.token != "" {
		env["CLOUDSDK_PROXY_USERNAME"] = proxyUser
		env["CLOUDSDK_PROXY_PASSWORD"] = d.token
	}
}

// runEnviron is environ and the run's own names.
func runEnviron(e Environment, r *ledger.Run, d door) map[string]string {
	env := environ(e, d)
	env["KEEP_RUN_ID"] = r.ID
	env["KEEP_WORKFLOW"] = r.Workflow
	env["KEEP_ITEM"] = r.Item
	env["KEEP_ATTEMPT"] = ""
	if !r.Many() {
		env["KEEP_ATTEMPT"] = strconv.Itoa(r.Attempt)
	}
	env["KEEP_ITEM_DONE"] = "0"
	if r.ItemDone {
		env["KEEP_ITEM_DONE"] = "1"
	}
	return env
}
