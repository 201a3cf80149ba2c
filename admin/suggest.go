package admin

import (
	"fmt"
	"slices"
	"strings"
)

// suggest says which name was probably meant: the nearest one, if it is at most
// a third of its length away, else all of them.
func suggest(name string, known []string) string {
	best, distance := "", len(name)+1
	for _, k := range known {
		if d := editDistance(strings.ToLower(name), k); d < distance {
			best, distance = k, d
		}
	}
	if best != "" && distance <= max(1, len(best)/3) {
		return fmt.Sprintf("did you mean %q?", best)
	}
	sorted := slices.Clone(known)
	slices.Sort(sorted)
	return "known are " + strings.Join(sorted, ", ")
}

// maxSuggest bounds the names that are compared; the time grows with its square.
const maxSuggest = 64

// editDistance counts the single characters to insert, delete or change that
// turn a into b. Names over maxSuggest are far from everything.
func editDistance(a, b string) int {
	if len(a) > maxSuggest || len(b) > maxSuggest {
		return max(len(a), len(b))
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
