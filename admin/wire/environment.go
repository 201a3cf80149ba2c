package wire

// Environment is how a script without a run finds the proxy: it works where an
// unmanaged scope is configured.
type Environment struct {
	ProxyURL string            `json:"proxy_url"`
	CAPEM    string            `json:"ca_pem"`
	Env      map[string]string `json:"env"`
}
