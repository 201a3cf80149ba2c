package admin_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"keep-proxy/admin"
)

func TestOperatorTokenIsMintedOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "operator-token")
	minted, isNew, err := admin.OperatorToken(path, newCounter())
	if err != nil || !isNew || len(minted) != 43 {
		t.Fatalf("first start: %q, new %t, %v", minted, isNew, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	content, err := os.ReadFile(path)
	if err != nil || string(content) != minted+"\n" {
		t.Errorf("file holds %q, %v; want the token and a newline", content, err)
	}
	again, isNew, err := admin.OperatorToken(path, newCounter())
	if err != nil || isNew || again != minted {
		t.Errorf("second start: %q, new %t, %v; want the same token", again, isNew, err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("files left behind: %v, %v", left, err)
	}
}

func TestOperatorTokenOfAFile(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 32)
	for _, c := range []struct {
		name, content string
		mode          os.FileMode
		want, refusal string
	}{
		{"as an editor leaves it", long + " \r\n\n", 0o600, long, ""},
		{"read-only", long, 0o400, long, ""},
		{"readable by the group", long, 0o640, "", "can be read by others (mode 0640): run chmod 600"},
		{"empty", "\n", 0o600, "", "fewer than 32 characters"},
		{"a guessable word", "secret\n", 0o600, "", "fewer than 32 characters"},
		{"two tokens", long + "\n" + long, 0o600, "", "more than one word"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "operator-token")
			if err := os.WriteFile(path, []byte(c.content), c.mode); err != nil {
				t.Fatal(err)
			}
			got, isNew, err := admin.OperatorToken(path, newCounter())
			if got != c.want || isNew {
				t.Errorf("token %q, new %t; want %q", got, isNew, c.want)
			}
			if (err == nil) != (c.refusal == "") || err != nil && !strings.Contains(err.Error(), c.refusal) {
				t.Errorf("error %v, want %q", err, c.refusal)
			}
			if err != nil && strings.Contains(err.Error(), long) {
				t.Errorf("the error shows the token: %v", err)
			}
		})
	}
}

func TestOperatorTokenNeedsItsFolder(t *testing.T) {
	t.Parallel()
	_, _, err := admin.OperatorToken(filepath.Join(t.TempDir(), "gone", "operator-token"), newCounter())
	if err == nil || !strings.Contains(err.Error(), "token file") {
		t.Errorf("got %v", err)
	}
}

func TestNewReportsEveryFault(t *testing.T) {
	t.Parallel()
	_, err := admin.New(admin.Config{OperatorToken: "short", Tokens: []admin.Token{
		{Name: "operator", Role: admin.RoleViewer, SHA256: digest("x")},
		{Name: "a", Role: "king", SHA256: digest("x")},
		{Name: "b", Role: admin.RoleHost, SHA256: "abc"},
	}})
	if err == nil {
		t.Fatal("a configuration without anything was accepted")
	}
	for _, want := range []string{
		"Ledger is missing", "Environment is missing", "Explainer is missing", "Now is missing", "Random is missing",
		"shorter than 32 bytes", `a name of its own, not "operator"`, `token a: unknown role "king"`, "token b: sha256 wants 64 hex digits",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q isn't reported in:\n%v", want, err)
		}
	}
}
