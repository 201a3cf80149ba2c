package admin

// ProblemStatuses are the statuses of every problem of the API, by name.
func ProblemStatuses() map[string]int {
	out := make(map[string]int, len(problemTypes))
	for name, t := range problemTypes {
		out[name] = t.status
	}
	return out
}
