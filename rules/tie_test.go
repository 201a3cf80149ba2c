package rules

import "testing"

func TestOnlyAVendorKeyOrAMarkerIsAStrongTie(t *testing.T) {
	t.Parallel()
	for tie, strong := range map[Tie]bool{TieVendorKey: true, TieMarker: true, TieUnique: false, TieContent: false, "": false, "other": false} {
		if tie.Strong() != strong {
			t.Errorf("%q: strong %t", tie, !strong)
		}
	}
}
