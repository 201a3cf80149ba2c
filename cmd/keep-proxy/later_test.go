package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestCommandsOfLaterVersionsAreRefusedByName(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range laterCommands {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			root := newRoot(streams{strings.NewReader(""), &out, &out})
			root.SetArgs([]string{name, "list", "--json"})
			err := root.Execute()
			if err == nil || !strings.Contains(err.Error(), name+" is not yet built") || !strings.Contains(err.Error(), meanwhile) {
				t.Errorf("got %v", err)
			}
		})
	}
}
