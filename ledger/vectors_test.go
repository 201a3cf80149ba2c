package ledger

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
)

// vectors are published, so that a third party can compute a key. They must
// never change: a changed key meets no past.
var vectors = []struct {
	name, array string
	parts       KeyParts
}{
	{
		name: "a payment",
		parts: KeyParts{
			Workflow: "payouts", Item: "invoice-17", Attempt: 1, Connector: "bank", Operation: "transfer",
			Account: "acme", HostGroup: "bank", Identity: map[string]string{"reference": `"INV-17"`},
		},
		array: `["keep/v1","payouts","invoice-17",1,"bank","transfer","acme",["bank",{}],{"reference":"INV-17"},""]`,
	},
	{
		name: "its second attempt",
		parts: KeyParts{
			Workflow: "payouts", Item: "invoice-17", Attempt: 2, Connector: "bank", Operation: "transfer",
			Account: "acme", HostGroup: "bank", Identity: map[string]string{"reference": `"INV-17"`},
		},
		array: `["keep/v1","payouts","invoice-17",2,"bank","transfer","acme",["bank",{}],{"reference":"INV-17"},""]`,
	},
	{
		name: "host variables, a subkey, names out of order, integers beyond 2^53, text beyond ASCII",
		parts: KeyParts{
			Workflow: "störung", Item: "7", Attempt: 3, Connector: "shop", Operation: "ship", Account: "",
			HostGroup: "shop", HostVars: map[string]string{"region": "eu", "cell": "4"},
			Identity: map[string]string{"order": "9007199254740993", "lines": `[ {"b":1,"a":1.50} ]`}, Subkey: "parcel-2",
		},
		array: `["keep/v1","störung","7",3,"shop","ship","",["shop",{"cell":"4","region":"eu"}],` +
			`{"lines":[{"a":1.5,"b":1}],"order":9007199254740993},"parcel-2"]`,
	},
	{
		name: "no identity, as a rule with identity: none has it",
		parts: KeyParts{
			Workflow: "w", Item: "i", Attempt: 1, Connector: "c", Operation: "o", Account: "a", HostGroup: "c",
		},
		array: `["keep/v1","w","i",1,"c","o","a",["c",{}],{},""]`,
	},
}

func TestMutationKeyPageHoldsTheVectors(t *testing.T) {
	var b strings.Builder
	for _, v := range vectors {
		k, err := MutationKey(v.parts)
		if err != nil {
			t.Fatalf("%s: %v", v.name, err)
		}
		if sum := Key(sha256.Sum256([]byte(v.array))); k != sum {
			t.Errorf("%s: the key is not the digest of the array: %s, want %s", v.name, k, sum)
		}
		fmt.Fprintf(&b, "**%s**\n\n```\n%s\n```\n\n| | |\n| --- | --- |\n", v.name, v.array)
		fmt.Fprintf(&b, "| key | `%s` |\n| id | `%s` |\n| marker | `%s` |\n", k, k.ID(), Marker(k))
		for i, format := range []string{KeyUUID, KeyUUID4, KeyHex, KeyToken} {
			vendor, err := VendorKey(k, i+1, format, 0)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "| vendor key, generation %d, `%s` | `%s` |\n", i+1, format, vendor)
		}
		b.WriteString("\n")
	}
	holds(t, "../docs/mutation-key.md", map[string]string{"vectors": strings.TrimSuffix(b.String(), "\n")})
}
