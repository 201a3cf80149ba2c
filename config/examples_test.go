package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	yaml "go.yaml.in/yaml/v4"
)

// manifests are the files of examples/ that hold a configuration of keep-proxy's, and
// where in them.
var manifests = []struct {
	file string
	at   []string
}{
	{"kubernetes/job.yaml", []string{"data", "config.yaml"}},
	{"kubernetes/proxy.yaml", []string{"data", "config.yaml"}},
	{"compose/compose.yaml", []string{"configs", "keep-proxy", "content"}},
}

// pods are the files of examples/ that hold pods.
var pods = []string{"kubernetes/job.yaml", "kubernetes/ledger-init.yaml", "kubernetes/proxy.yaml"}

func TestTheExamplesConfigurationsLoad(t *testing.T) {
	t.Parallel()
	for _, m := range manifests {
		found := false
		for _, document := range documents(t, m.file) {
			text, ok := member(document, m.at...).(string)
			if !ok {
				continue
			}
			found = true
			r := newReport()
			decodeFile(r, m.file, []byte(text))
			for _, p := range r.problems {
				t.Error(p)
			}
			// Without it an empty volume is a first start.
			if c := parsed(t, text); member(c, "ledger", "id") == nil {
				t.Errorf("%s sets no ledger.id", m.file)
			}
		}
		if !found {
			t.Errorf("%s holds no %s", m.file, strings.Join(m.at, "."))
		}
	}
}

func TestTheExamplesNameVolumesThatExist(t *testing.T) {
	t.Parallel()
	compose := documents(t, "compose/compose.yaml")[0]
	volumes := keysOf(member(compose, "volumes"))
	for service, s := range member(compose, "services").(map[string]any) {
		for _, v := range member(s, "volumes").([]any) {
			if name, _, _ := strings.Cut(v.(string), ":"); !slices.Contains(volumes, name) {
				t.Errorf("compose: %s mounts %s of %v", service, name, volumes)
			}
		}
	}
	for _, file := range pods {
		for _, document := range documents(t, file) {
			pod, ok := member(document, "spec", "template", "spec").(map[string]any)
			if !ok {
				continue
			}
			var volumes []string
			for _, v := range pod["volumes"].([]any) {
				volumes = append(volumes, member(v, "name").(string))
			}
			first, _ := pod["initContainers"].([]any)
			for _, c := range slices.Concat(first, pod["containers"].([]any)) {
				for _, mount := range member(c, "volumeMounts").([]any) {
					if name := member(mount, "name").(string); !slices.Contains(volumes, name) {
						t.Errorf("%s: %v mounts %s of %v", file, member(c, "name"), name, volumes)
					}
				}
			}
		}
	}
}

// TestTheExamplesUnitAndCrontabNameTheirLedger: without a name an empty folder is a first start.
func TestTheExamplesUnitAndCrontabNameTheirLedger(t *testing.T) {
	t.Parallel()
	for file, line := range map[string]string{"systemd/keep-proxy.service": "\nEnvironment=KEEP_LEDGER_ID=", "cron/crontab": "\nKEEP_LEDGER_ID="} {
		text, err := os.ReadFile("../examples/" + file)
		if err != nil || !strings.Contains(string(text), line) {
			t.Errorf("%s has no line %q: %v", file, line, err)
		}
	}
}

// TestTheExamplesComposeListensInTheSandboxAlone: whoever is on the network that leads out reaches no proxy.
func TestTheExamplesComposeListensInTheSandboxAlone(t *testing.T) {
	t.Parallel()
	compose := documents(t, "compose/compose.yaml")[0]
	text, _ := member(compose, manifests[2].at...).(string)
	for _, address := range member(parsed(t, text), "proxy", "listen").([]any) {
		host, _, _ := strings.Cut(address.(string), ":")
		if own := member(compose, "services", "keep-proxy", "networks", "sandbox", "ipv4_address"); host != own {
			t.Errorf("the proxy listens on %v, its address in the sandbox is %v", address, own)
		}
	}
	if member(compose, "networks", "sandbox", "internal") != true {
		t.Error("the sandbox's network leads out")
	}
}

// TestTheExamplesPolicyIsOfPodsThatThereAre: one that selects no pod leaves all ways open.
func TestTheExamplesPolicyIsOfPodsThatThereAre(t *testing.T) {
	t.Parallel()
	policy := documents(t, "kubernetes/networkpolicy.yaml")[0]
	egress := member(policy, "spec", "egress").([]any)[0]
	to := member(egress, "to").([]any)[0]
	for _, labels := range []any{member(policy, "spec", "podSelector", "matchLabels"), member(to, "podSelector", "matchLabels")} {
		selects := func(d any) bool {
			return reflect.DeepEqual(member(d, "spec", "template", "metadata", "labels"), labels)
		}
		if !slices.ContainsFunc(documents(t, "kubernetes/proxy.yaml"), selects) {
			t.Errorf("no pod has the labels %v", labels)
		}
	}
}

// TestTheExamplesJobMountsWhatItsConfigurationNames: a folder of connectors that isn't there is an error,
// and the proxy doesn't start.
func TestTheExamplesJobMountsWhatItsConfigurationNames(t *testing.T) {
	t.Parallel()
	var named, mounted []string
	for _, document := range documents(t, "kubernetes/job.yaml") {
		if text, ok := member(document, "data", "config.yaml").(string); ok {
			configuration := parsed(t, text)
			named = append(named, member(configuration, "ledger", "dir").(string), filepath.Dir(member(configuration, "proxy", "ca", "bundle_out").(string)))
			for _, folder := range member(configuration, "connectors", "dirs").([]any) {
				named = append(named, folder.(string))
			}
		}
		containers, _ := member(document, "spec", "template", "spec", "initContainers").([]any)
		for _, c := range containers {
			for _, mount := range member(c, "volumeMounts").([]any) {
				mounted = append(mounted, member(mount, "mountPath").(string))
			}
		}
	}
	for _, folder := range named {
		if !slices.Contains(mounted, folder) {
			t.Errorf("job: the configuration names %s, and only %v are mounted", folder, mounted)
		}
	}
}

// TestTheExamplesJobKeepsTheModesOfItsVolume: by default each mount gives the group all of what is in
// the volume, and the proxy refuses a token that others can read.
func TestTheExamplesJobKeepsTheModesOfItsVolume(t *testing.T) {
	t.Parallel()
	for _, file := range pods {
		for _, document := range documents(t, file) {
			pod, ok := member(document, "spec", "template", "spec", "securityContext").(map[string]any)
			if ok && pod["fsGroup"] != nil && pod["fsGroupChangePolicy"] != "OnRootMismatch" {
				t.Errorf("%s: fsGroupChangePolicy is %v: the next pod's proxy would find its token readable by a group", file, pod["fsGroupChangePolicy"])
			}
		}
	}
}

// TestTheExamplesUnitIsStartedAgainUnlessAPersonIsNeeded: 75 and 78 pass with time, as where the proxy isn't
// up yet, or is paused; 76 and 77 don't.
func TestTheExamplesUnitIsStartedAgainUnlessAPersonIsNeeded(t *testing.T) {
	t.Parallel()
	unit, err := os.ReadFile("../examples/systemd/payouts@.service")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(unit), "\nRestartPreventExitStatus=")
	codes, _, _ := strings.Cut(rest, "\n")
	if want := []string{"76", "77"}; !found || !slices.Equal(strings.Fields(codes), want) {
		t.Errorf("not started again after %q, want %q", codes, want)
	}
}

// TestTheExamplesCrontabFindsTheProgram: cron's own PATH is /usr/bin:/bin, and the program where the units have it.
func TestTheExamplesCrontabFindsTheProgram(t *testing.T) {
	t.Parallel()
	crontab, err := os.ReadFile("../examples/cron/crontab")
	if err != nil {
		t.Fatal(err)
	}
	unit, err := os.ReadFile("../examples/systemd/keep-proxy.service")
	if err != nil {
		t.Fatal(err)
	}
	_, program, _ := strings.Cut(string(unit), "\nExecStart=")
	program, _, _ = strings.Cut(program, " ")
	_, rest, _ := strings.Cut("\n"+string(crontab), "\nPATH=")
	path, _, _ := strings.Cut(rest, "\n")
	if folder := filepath.Dir(program); !slices.Contains(filepath.SplitList(path), folder) {
		t.Errorf("PATH=%s has no %s", path, folder)
	}
}

func TestEveryManifestOfTheExamplesIsYAML(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../examples/*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if len(documents(t, strings.TrimPrefix(file, "../examples/"))) == 0 {
			t.Errorf("%s is empty", file)
		}
	}
}

// TestEachExampleSaysWhatItIs: by a README of its own, to which that of all leads.
func TestEachExampleSaysWhatItIs(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile("../examples/README.md")
	if err != nil {
		t.Fatal(err)
	}
	folders, err := os.ReadDir("../examples")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		if !folder.IsDir() {
			continue
		}
		name := folder.Name()
		text, err := os.ReadFile(filepath.Join("..", "examples", name, "README.md"))
		if err != nil || len(text) == 0 || !bytes.Contains(list, []byte("]("+name+")")) {
			t.Errorf("%s: %v; README.md of examples/ has to name it", name, err)
		}
	}
}

// TestTheExamplesJobIsOneOfKubernetes lets kubectl read the Job into Kubernetes' own types:
// what it doesn't know, it leaves out.
func TestTheExamplesJobIsOneOfKubernetes(t *testing.T) {
	t.Parallel()
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("there is no kubectl here")
	}
	cmd := exec.CommandContext(t.Context(), kubectl, "set", "image", "--local", "-f", "-", "payouts=payouts:2", "-o", "json")
	for _, d := range documents(t, "kubernetes/job.yaml") {
		if member(d, "kind") != "Job" {
			continue
		}
		text, err := yaml.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdin = bytes.NewReader(text)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("kubectl: %v: %s", err, out)
		}
		var read any
		if err := yaml.Unmarshal(out, &read); err != nil {
			t.Fatal(err)
		}
		for _, lost := range missing("", d, read) {
			t.Errorf("kubectl knows no %s", lost)
		}
		return
	}
	t.Error("there is no Job")
}

// TestTheExamplesObjectsAreThoseOfKubernetes lets kubectl merge each object with itself, for
// which it looks up the fields that hold others in Kubernetes' own types.
func TestTheExamplesObjectsAreThoseOfKubernetes(t *testing.T) {
	t.Parallel()
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("there is no kubectl here")
	}
	merge := func(object any) error {
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), kubectl, "patch", "--local", "-f", "-", "--type", "strategic", "-p", string(text), "-o", "json")
		cmd.Stdin = bytes.NewReader(text)
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("kubectl: %w: %s", err, out)
		}
		return nil
	}
	for _, file := range append(slices.Clone(pods), "kubernetes/networkpolicy.yaml") {
		for _, d := range documents(t, file) {
			if err := merge(d); err != nil {
				t.Errorf("%s, %v: %v", file, member(d, "kind"), err)
			}
			spec, ok := member(d, "spec").(map[string]any)
			if !ok {
				continue
			}
			spec["selectr"] = map[string]any{"role": "script"}
			if merge(d) == nil {
				t.Errorf("%v with a field that there isn't: no error", member(d, "kind"))
			}
		}
	}
}

// missing are the names in want that got doesn't have.
func missing(at string, want, got any) (names []string) {
	switch want := want.(type) {
	case map[string]any:
		have, _ := got.(map[string]any)
		for name, v := range want {
			if h, ok := have[name]; ok || v == "" { // An empty text is left out.
				names = append(names, missing(at+"."+name, v, h)...)
			} else {
				names = append(names, at+"."+name)
			}
		}
	case []any:
		have, _ := got.([]any)
		for i, v := range want {
			if i >= len(have) {
				return append(names, fmt.Sprintf("%s[%d]", at, i))
			}
			names = append(names, missing(fmt.Sprintf("%s[%d]", at, i), v, have[i])...)
		}
	}
	return names
}

func documents(t *testing.T, name string) (all []any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "examples", name))
	if err != nil {
		t.Fatal(err)
	}
	for d := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var v any
		err := d.Decode(&v)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, v)
	}
}

func parsed(t *testing.T, text string) (v any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func member(v any, path ...string) any {
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

func keysOf(v any) (all []string) {
	for name := range v.(map[string]any) {
		all = append(all, name)
	}
	return all
}
