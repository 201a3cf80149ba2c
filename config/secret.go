package config

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// Redacted is what a [Secret] prints as.
const Redacted = "<secret>"

// Secret is a credential's value with its ${env:NAME} and ${file:PATH}
// references unresolved. It prints as <secret> with every fmt verb, in JSON,
// YAML and text; only [Secret.Resolve] gives the value. The zero Secret is
// empty and resolves to an error.
type Secret struct {
	// The pointer to a pointer keeps the parts from printers that cannot call a method. For an unexported field fmt
	// can't. It follows one pointer, and writes the second as an address.
	parts **[]secretPart
}

type secretPart struct {
	kind partKind
	text string // the literal, the variable's name, or the path
}

type partKind int

const (
	partLiteral partKind = iota + 1
	partEnv
	partFile
)

// Sources gives [Secret.Resolve] what references point to.
type Sources struct {
	// LookupEnv is as os.LookupEnv.
	LookupEnv func(name string) (string, bool)
	// ReadFile is as os.ReadFile.
	ReadFile func(path string) ([]byte, error)
}

// ParseSecret reads a template. Outside ${…} everything is literal; ${ always
// begins a reference. Errors never quote the text.
func ParseSecret(s string) (Secret, error) {
	if s == "" {
		return Secret{}, errors.New("empty")
	}
	var parts []secretPart
	for s != "" {
		literal, rest, found := strings.Cut(s, "${")
		if literal != "" {
			parts = append(parts, secretPart{partLiteral, literal})
		}
		if !found {
			break
		}
		reference, after, closed := strings.Cut(rest, "}")
		if !closed {
			return Secret{}, errors.New("a ${ has no closing }")
		}
		part, err := parseReference(reference)
		if err != nil {
			return Secret{}, err
		}
		parts = append(parts, part)
		s = after
	}
	inner := &parts
	return Secret{parts: &inner}, nil
}

func parseReference(s string) (secretPart, error) {
	kind, name, _ := strings.Cut(s, ":")
	if name == "" {
		return secretPart{}, errors.New("a reference is ${env:NAME} or ${file:PATH}")
	}
	switch kind {
	case "env":
		if !isEnvName(name) {
			return secretPart{}, errors.New("the name in ${env:NAME} is not a variable's name")
		}
		return secretPart{partEnv, name}, nil
	case "file":
		return secretPart{partFile, name}, nil
	default:
		return secretPart{}, errors.New("a reference is ${env:NAME} or ${file:PATH}")
	}
}

func isEnvName(s string) bool {
	for i, r := range s {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}

// Resolve returns the value with every reference replaced. One line ending at the end of a file is dropped. A variable
// that is unset or empty, and a file that can't be read or is empty, are errors. So is a value with a line break or
// NUL, which no header field can hold (RFC 9110 §5.5). Errors name the reference, never the value.
func (s Secret) Resolve(from Sources) (string, error) {
	if s.parts == nil {
		return "", errors.New("no value is configured")
	}
	var b strings.Builder
	for _, part := range s.list() {
		text, err := part.resolve(from)
		if err != nil {
			return "", err
		}
		b.WriteString(text)
	}
	if strings.ContainsAny(b.String(), "\r\n\x00") {
		return "", errors.New("the resolved value holds a line break or NUL, which no header field can carry")
	}
	return b.String(), nil
}

func (p secretPart) resolve(from Sources) (string, error) {
	switch p.kind {
	case partLiteral:
		return p.text, nil
	case partEnv:
		if v, ok := from.LookupEnv(p.text); ok && v != "" {
			return v, nil
		}
		return "", fmt.Errorf("${env:%s}: the variable is unset or empty", p.text)
	case partFile:
		data, err := from.ReadFile(p.text)
		if err != nil {
			return "", fmt.Errorf("${file:%s}: %w", p.text, err)
		}
		v := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
		if v == "" {
			return "", fmt.Errorf("${file:%s}: the file is empty", p.text)
		}
		return v, nil
	default:
		return "", fmt.Errorf("unknown kind of reference %d", p.kind)
	}
}

// EnvNames returns the variables that the secret names, so that they can be
// kept from a child process.
func (s Secret) EnvNames() []string { return s.texts(partEnv) }

// files returns the paths that the secret names.
func (s Secret) files() []string { return s.texts(partFile) }

func (s Secret) texts(kind partKind) []string {
	var texts []string
	for _, part := range s.list() {
		if part.kind == kind {
			texts = append(texts, part.text)
		}
	}
	return texts
}

func (s Secret) list() []secretPart {
	if s.parts == nil {
		return nil
	}
	return **s.parts
}

// IsZero reports whether no value is configured.
func (s Secret) IsZero() bool { return s.parts == nil }

// String returns <secret>.
func (Secret) String() string { return Redacted }

// Format writes <secret> for every verb and flag.
func (Secret) Format(f fmt.State, _ rune) {
	// A fmt.State reports write errors to the caller of the print function.
	_, _ = io.WriteString(f, Redacted)
}

// MarshalText returns <secret>.
func (Secret) MarshalText() ([]byte, error) { return []byte(Redacted), nil }

// MarshalJSON returns "<secret>".
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + Redacted + `"`), nil }

// MarshalYAML returns <secret>.
func (Secret) MarshalYAML() (any, error) { return Redacted, nil }

// LogValue returns <secret>.
func (Secret) LogValue() slog.Value { return slog.StringValue(Redacted) }
