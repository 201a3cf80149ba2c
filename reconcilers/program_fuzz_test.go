package reconcilers

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"keep-proxy/ledger"
)

// FuzzProgramAnswer holds what a program may answer to what another parser makes of it: what
// is taken must mean the same to both, and say no more than its kind can.
func FuzzProgramAnswer(f *testing.F) {
	f.Add([]byte(`{"seen":"applied","objects":["t1"],"result":{"status":201,"headers":{"Etag":"1"},"body":{"id":1}}}`))
	f.Add([]byte(`{"seen":"retry","seen":"applied","objects":["t1"]}`))
	f.Fuzz(func(t *testing.T, out []byte) {
		a, err := decodeAnswer(out)
		if err != nil {
			return
		}
		var other programAnswer
		d := json.NewDecoder(bytes.NewReader(out))
		d.DisallowUnknownFields()
		if err := d.Decode(&other); err != nil || !reflect.DeepEqual(a, &other) {
			t.Fatalf("%q is %+v, and %+v to another parser (%v)", out, a, other, err)
		}
		switch seen := ledger.Seen(a.Seen); {
		case seen == ledger.SeenApplied && len(a.Objects) != 1, seen == ledger.SeenDuplicate && len(a.Objects) < 2,
			(seen == ledger.SeenAbsent || seen == ledger.SeenRetry) && (len(a.Objects) > 0 || a.Result != nil):
			t.Fatalf("%q is taken as %+v", out, a)
		}
	})
}
