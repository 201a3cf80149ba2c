package config_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"keep-proxy/config"
)

// TestConfigurationsInTheDocumentsLoad takes every block that is fenced as
// "yaml config" in the README and in docs.
func TestConfigurationsInTheDocumentsLoad(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	fence := regexp.MustCompile("(?s)```yaml config\n(.*?)```")
	blocks := 0
	for _, page := range append(pages, "../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range fence.FindAllSubmatch(text, -1) {
			blocks++
			file := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(file, block[1], 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := config.Load(config.Options{File: file, Environ: []string{"HOME=" + t.TempDir()}}); err != nil {
				t.Errorf("%s: %v\n%s", page, err, block[1])
			}
		}
	}
	if blocks == 0 {
		t.Error("the documents hold no configuration")
	}
}
