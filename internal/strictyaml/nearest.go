package strictyaml

import "strings"

// Nearest is the known name that a misspelt one probably means, whatever the case; "" if none is near:
// at most a third of the name's length away, and at least 2. Of equals the first wins. A name over
// 64 bytes has none, since the time to find it grows with its length.
func Nearest(name string, known []string) string {
	if len(name) > 64 {
		return ""
	}
	best, limit := "", max(2, len(name)/3)
	for _, k := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d <= limit && d < max(len(name), len(k)) {
			best, limit = k, d-1
		}
	}
	return best
}

// distance counts the insertions, deletions, substitutions and swaps of neighbours that turn a into
// b.
func distance(a, b string) int {
	width := len(b) + 1
	rows := make([]int, (len(a)+1)*width)
	for i := range len(a) + 1 {
		rows[i*width] = i
	}
	for j := range width {
		rows[j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j < width; j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d := min(rows[(i-1)*width+j]+1, rows[i*width+j-1]+1, rows[(i-1)*width+j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[(i-2)*width+j-2]+1)
			}
			rows[i*width+j] = d
		}
	}
	return rows[len(rows)-1]
}
