package wire

import (
	"errors"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
)

// Missing says why a body's content isn't shown.
type Missing string

const (
	// MissingDropped: retention removed the content.
	MissingDropped Missing = "dropped"
	// MissingOmitted: listings leave content out, and so does a record whose
	// body is too long to show, or can't be read now; the body can be fetched by itself.
	MissingOmitted Missing = "omitted"
	// MissingDamaged: what is stored isn't whole any more, or not there.
	MissingDamaged Missing = "damaged"
)

// Body is the content of a request or an answer. In JSON it is a string if it is
// valid UTF-8, {"base64": …} if not, and {"missing", "sha256", "size"} where
// the content isn't shown.
type Body struct {
	Content []byte
	// Missing is empty where Content is the whole content.
	Missing Missing
	// SHA256 is the hex digest, given with Missing only.
	SHA256 string
	// Size is in bytes, given with Missing only.
	Size int64
}

// Text returns a body with this content.
func Text(s string) Body { return Body{Content: []byte(s)} }

// reference and encoded are the two object forms of a Body.
type (
	reference struct {
		Missing Missing `json:"missing"`
		SHA256  string  `json:"sha256"`
		Size    int64   `json:"size"`
	}
	encoded struct {
		Base64 []byte `json:"base64"`
	}
)

// MarshalJSON writes one of the three forms.
func (b Body) MarshalJSON() ([]byte, error) {
	switch {
	case b.Missing != "":
		return json.Marshal(reference{b.Missing, b.SHA256, b.Size})
	case utf8.Valid(b.Content):
		return json.Marshal(string(b.Content))
	default:
		return json.Marshal(encoded{b.Content})
	}
}

// UnmarshalJSON reads any of the three forms, and null as no content.
func (b *Body) UnmarshalJSON(raw []byte) error {
	var text *string
	if json.Unmarshal(raw, &text) == nil {
		*b = Body{}
		if text != nil {
			b.Content = []byte(*text)
		}
		return nil
	}
	var enc encoded
	if json.Unmarshal(raw, &enc, json.RejectUnknownMembers(true)) == nil && enc.Base64 != nil {
		*b = Body{Content: enc.Base64}
		return nil
	}
	var ref reference
	if json.Unmarshal(raw, &ref, json.RejectUnknownMembers(true)) == nil && ref.Missing != "" {
		*b = Body{Missing: ref.Missing, SHA256: ref.SHA256, Size: ref.Size}
		return nil
	}
	return errors.New(`a body is a string or {"base64": "…"}`)
}
