package proxy

import (
	"net/http"
	"strconv"
)

const headerMaxForwards = "Max-Forwards"

// lastHop counts Max-Forwards of an OPTIONS request down (RFC 9110 §7.6.2) and reports
// whether it ends here. Other methods may carry the field, and it means nothing there;
// nor does what is no number.
func lastHop(r *http.Request) bool {
	if r.Method != http.MethodOptions || len(r.Header[headerMaxForwards]) != 1 {
		return false
	}
	text := r.Header.Get(headerMaxForwards)
	left, err := strconv.ParseUint(text, 10, 31)
	if err != nil || !digits(text) {
		return false
	}
	if left == 0 {
		return true
	}
	r.Header.Set(headerMaxForwards, strconv.FormatUint(left-1, 10))
	return false
}
