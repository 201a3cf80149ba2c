package rules

import "net/http"

// Response is an answer as far as it was read.
type Response struct {
	// Status is the final status; 1xx answers are not shown to rules.
	Status int
	// Header holds the answer's fields by their canonical names.
	Header http.Header
	// Trailer holds its trailer fields, which no condition reads.
	Trailer http.Header
	// Body is what was read; when Complete is false no condition may read it.
	Body []byte
	// Complete says that the whole body was read and is in Body.
	Complete bool
}
