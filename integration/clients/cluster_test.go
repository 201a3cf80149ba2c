package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/server"
)

var kubectl = client{
	name: "kubectl", trade: configuring{},
	argv:    []string{"kubectl", "--kubeconfig={home}/kubeconfig", "--certificate-authority={ca}"},
	version: []string{"kubectl", "version", "--client"},
	note:    "`--certificate-authority=\"$SSL_CERT_FILE\"`; see below",
}

// configuring is the trade of kubectl: it lists config maps and creates them. Its
// configuration trusts another authority, as that of a real cluster does.
type configuring struct{}

func (configuring) read(t *testing.T, w *world) errand {
	t.Helper()
	kubeconfig(t, w)
	return errand{on: w.cluster, args: []string{"get", "configmaps", "--namespace=kept", "--output=name"}}
}

func (configuring) change(t *testing.T, w *world, word string) errand {
	t.Helper()
	return create(t, w, "kept", word)
}

func (configuring) halt(t *testing.T, w *world, word string) errand {
	t.Helper()
	return create(t, w, "silent", word)
}

func create(t *testing.T, w *world, namespace, word string) errand {
	t.Helper()
	kubeconfig(t, w)
	return errand{on: w.cluster, counts: "configmap:" + namespace + "/" + word,
		args: []string{"create", "configmap", word, "--from-literal=word=" + word, "--namespace=" + namespace}}
}

func (configuring) content(d done, what string) bool {
	return d.code == 0 && (what == "read" || strings.Contains(d.text, " created"))
}

func (configuring) refused(d done) bool { return d.code != 0 && strings.Contains(d.text, "424") }

// clusterConnector puts our program where its connector says.
func clusterConnector(t *testing.T, w *world, dir string) {
	t.Helper()
	name := filepath.Join(dir, "cluster.yaml")
	text, err := os.ReadFile(name)
	must(t, err)
	program, err := filepath.Abs("testdata/configmap.py")
	must(t, err)
	fill := strings.NewReplacer("PROGRAM", program, "ROOTS", filepath.Join(w.dir, "upstreams.pem"))
	must(t, os.WriteFile(name, []byte(fill.Replace(string(text))), 0o600))
}

// kubeconfig writes the file by which kubectl finds the cluster.
func kubeconfig(t *testing.T, w *world) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(w.home, "kubeconfig"), []byte(`apiVersion: v1
kind: Config
current-context: tried
clusters: [{name: tried, cluster: {server: "`+w.site(w.cluster)+`", certificate-authority: "`+filepath.Join(w.dir, "upstreams.pem")+`"}}]
users: [{name: tried, user: {token: example}}]
contexts: [{name: tried, context: {cluster: tried, user: tried}}]
`), 0o600))
}

// cluster is a cluster's API with config maps and nothing else. Identity in the log:
// configmap:NAMESPACE/NAME.
type cluster struct {
	mu   sync.Mutex
	maps map[string]map[string]any
}

func newCluster() *cluster { return &cluster{maps: map[string]map[string]any{}} }

func (*cluster) Name() string                 { return "cluster" }
func (*cluster) Restore([]oracle.Event) error { return nil }

// configMap is what a request creates. kubectl before 1.32 sends JSON.
func configMap(r *server.Request) (place string, object map[string]any) {
	namespace, ok := strings.CutSuffix(strings.TrimPrefix(r.Path, "/api/v1/namespaces/"), "/configmaps")
	if r.Method != http.MethodPost || !ok {
		return "", nil
	}
	if packed, ok := bytes.CutPrefix(r.Body, []byte("k8s\x00")); ok {
		object = unpacked(packed)
	} else if json.Unmarshal(r.Body, &object) != nil {
		return "", nil
	}
	meta, _ := object["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	return namespace + "/" + name, object
}

// unpacked reads a config map with a name and words from its envelope of protobuf.
func unpacked(packed []byte) map[string]any {
	data, name := map[string]any{}, ""
	members(packed, 2, func(object []byte) {
		members(object, 1, func(meta []byte) {
			members(meta, 1, func(text []byte) { name = string(text) })
		})
		members(object, 2, func(entry []byte) {
			var key, value string
			members(entry, 1, func(text []byte) { key = string(text) })
			members(entry, 2, func(text []byte) { value = string(text) })
			data[key] = value
		})
	})
	return map[string]any{"kind": "ConfigMap", "apiVersion": "v1", "metadata": map[string]any{"name": name}, "data": data}
}

// members calls do for each field of a message with this number.
func members(message []byte, number protowire.Number, do func([]byte)) {
	for len(message) > 0 {
		n, kind, size := protowire.ConsumeTag(message)
		if size < 0 {
			return
		}
		message = message[size:]
		if n == number && kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(message)
			do(value)
		}
		if size = protowire.ConsumeFieldValue(n, kind, message); size < 0 {
			return
		}
		message = message[size:]
	}
}

func (*cluster) Identity(r *server.Request) string {
	if place, object := configMap(r); object != nil {
		return "configmap:" + place
	}
	return ""
}

// discovery is what kubectl asks before it asks for what it was told to.
var discovery = map[string]string{
	"/version":                           `{"major":"1","minor":"32","gitVersion":"v1.32.4"}`,
	"/api":                               `{"kind":"APIVersions","versions":["v1"]}`,
	"/apis":                              `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
	"/api/v1":                            `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"configmaps","singularName":"configmap","namespaced":true,"kind":"ConfigMap","verbs":["create","get","list"],"shortNames":["cm"]}]}`,
	"/api/v1/namespaces/kept/configmaps": `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`,
}

func (k *cluster) Serve(ctx context.Context, c *server.Call) (*server.Answer, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	place, object := configMap(c.Request)
	if object != nil {
		return k.create(ctx, c, place, object)
	}
	if c.Method == http.MethodGet {
		if text, ok := discovery[c.Path]; ok {
			return server.JSON(http.StatusOK, json.RawMessage(text)), nil
		}
		found := k.maps[strings.Replace(strings.TrimPrefix(c.Path, "/api/v1/namespaces/"), "/configmaps/", "/", 1)]
		if found != nil {
			return server.JSON(http.StatusOK, found), nil
		}
	}
	return failure(http.StatusNotFound, "NotFound"), nil
}

func (k *cluster) create(ctx context.Context, c *server.Call, place string, object map[string]any) (*server.Answer, error) {
	if k.maps[place] != nil {
		return failure(http.StatusConflict, "AlreadyExists"), nil
	}
	if err := c.Pause(ctx); err != nil || c.NoEffect {
		return c.Own, err
	}
	if err := c.Commit("configmap:"+place, object, nil); err != nil {
		return nil, err
	}
	k.maps[place] = object
	if c.Own != nil {
		return c.Own, nil
	}
	return server.JSON(http.StatusCreated, object), nil
}

func failure(status int, reason string) *server.Answer {
	return server.JSON(status, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": status, "message": reason})
}
