package upstream

// Error is how a dispatch, a body or a passed-through request went wrong. Its text
// holds no content of request or answer.
type Error struct {
	Class ErrorClass
	// Text says it in words.
	Text string
}

// Error returns the class and the text.
func (e *Error) Error() string { return "upstream: " + string(e.Class) + ": " + e.Text }
