package wire

// List is one page of a listing, newest first.
type List[T any] struct {
	// Items is never null.
	Items []T `json:"items"`
	// Next continues the listing as the cursor parameter; it is absent at the end.
	Next string `json:"next,omitzero"`
}
