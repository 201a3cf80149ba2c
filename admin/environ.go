package admin

import (
	"net"
	"net/http"
	"net/url"
	"strconv"

	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

// proxyUser is the user name of proxy credentials; the token is the password.
const proxyUser = "run"

// access is where a run's requests go in: an address, and the credentials for it.
type access struct {
	// address is the host:port as sandboxes see it.
	address string
	// token is empty for the unmanaged scope, and at a run's own listener.
	token string
}

// url is the address with the credentials, as proxy variables take it.
func (a access) url() string {
	u := url.URL{Scheme: "http", Host: a.address}
	if a.token != "" {
		u.User = url.UserPassword(proxyUser, a.token)
	}
	return u.String()
}

// proxyVariables hold the proxy. Names are given in upper and in lower case, since
// clients differ in which they read. Those of one client go before the common ones
// where they are inherited, and would lead around the proxy.
var proxyVariables = []string{
	"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy",
	"grpc_proxy", "CARGO_HTTP_PROXY", "ws_proxy", "WS_PROXY", "wss_proxy", "WSS_PROXY",
	"npm_config_proxy", "NPM_CONFIG_PROXY", "npm_config_https_proxy", "NPM_CONFIG_HTTPS_PROXY",
}

// emptiedVariables would lead around the proxy if they were inherited. PIP_PROXY
// is one of them since pip takes an empty one for none, and goes by HTTPS_PROXY.
var emptiedVariables = []string{
	"NO_PROXY", "no_proxy", "no_grpc_proxy", "npm_config_noproxy", "NPM_CONFIG_NOPROXY", "PIP_PROXY",
}

// bundleVariables replace a client's own roots, so that they take the combined
// bundle. A client that follows an inherited one of them wouldn't trust the proxy.
// SSL_CERT_DIR is left as it is: it adds to SSL_CERT_FILE.
var bundleVariables = []string{
	"SSL_CERT_FILE", "NIX_SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "HTTPLIB2_CA_CERTS",
	"PIP_CERT", "TWINE_CERT", "GIT_SSL_CAINFO", "AWS_CA_BUNDLE", "CARGO_HTTP_CAINFO",
	"CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "PERL_LWP_SSL_CA_FILE",
	"npm_config_cafile", "NPM_CONFIG_CAFILE", "BUNDLE_SSL_CA_CERT", "COMPOSER_CAFILE", "HEX_CACERTS_PATH",
}

// environ returns the variables by which the common clients find the proxy and
// trust its CA. NODE_EXTRA_CA_CERTS and DENO_CERT add to a client's roots, and
// take the CA alone.
//
// Java and Node before 22.21 read none of these; they need the proxy in their
// own settings.
func environ(e Environment, a access) map[string]string {
	env := map[string]string{
		"NODE_USE_ENV_PROXY": "1",
		"UV_NATIVE_TLS":      "1",

		"NODE_EXTRA_CA_CERTS": e.CAFile(),
		"DENO_CERT":           e.CAFile(),
	}
	address := a.url()
	for _, name := range proxyVariables {
		env[name] = address
	}
	for _, name := range emptiedVariables {
		env[name] = ""
	}
	for _, name := range bundleVariables {
		env[name] = e.BundleFile()
	}
	addCloudSDK(env, a)
	return env
}

// addCloudSDK adds the proxy as gcloud takes it: in parts.
func addCloudSDK(env map[string]string, a access) {
	host, port, err := net.SplitHostPort(a.address)
	if err != nil {
		return
	}
	env["CLOUDSDK_PROXY_TYPE"] = "http"
	env["CLOUDSDK_PROXY_ADDRESS"] = host
	env["CLOUDSDK_PROXY_PORT"] = port
	// Inherited ones are for another proxy, and refused where none are needed.
	env["CLOUDSDK_PROXY_USERNAME"] = ""
	env["CLOUDSDK_PROXY_PASSWORD"] = a.token
	if a.token != "" {
		env["CLOUDSDK_PROXY_USERNAME"] = proxyUser
	}
}

// runEnviron is environ and the run's own names.
func runEnviron(e Environment, r *ledger.Run, a access) map[string]string {
	env := environ(e, a)
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

// showEnvironment answers GET /v1/environment.
func showEnvironment(s *Server, _ *http.Request) (*wire.Environment, error) {
	e := s.config.Environment
	a := access{address: e.ProxyAddr()}
	return &wire.Environment{ProxyURL: a.url(), CAPEM: string(e.CAPEM()), Env: environ(e, a)}, nil
}
