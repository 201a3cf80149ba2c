package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAnEditStaysWithinItsDeclaration(t *testing.T) {
	t.Parallel()
	const text = "package a\n\nvar table = []int{1}\n\ntype T struct{}\n\nfunc (*T) do() int { return 1 }\n\nfunc do() int { return 1 }\n"
	for _, c := range []struct {
		edit        edit
		want, wrong string
	}{
		{edit: edit{"a table", "1", "2"}, want: "{2}"},
		{edit: edit{"a T.do", "1", "2"}, want: "(*T) do() int { return 2 }"},
		{edit: edit{"a do", "1", "2"}, want: "\nfunc do() int { return 2 }\n"},
		{edit: edit{"a do", "return", ""}, want: "{  1 }\n"},
		{edit: edit{"a T.do", "var", ""}, wrong: "0 times"},
		{edit: edit{"a gone", "1", "2"}, wrong: "declares no gone"},
	} {
		root := t.TempDir()
		file := filepath.Join(root, "a", "a.go")
		if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := c.edit.apply(root)
		got, readErr := os.ReadFile(file)
		switch {
		case readErr != nil:
			t.Fatal(readErr)
		case c.wrong != "":
			if err == nil || !strings.Contains(err.Error(), c.wrong) || string(got) != text {
				t.Errorf("%v: %v\n%s", c.edit, err, got)
			}
		case err != nil || strings.Count(string(got), c.want) != 1:
			t.Errorf("%v: %v\n%s", c.edit, err, got)
		}
	}
}
