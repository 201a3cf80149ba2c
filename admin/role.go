package admin

import (
	"slices"
	"strings"
)

// Role is what the holder of a token may do. The zero value may do nothing.
type Role string

const (
	// RoleViewer reads, contents of requests and answers included.
	RoleViewer Role = "viewer"
	// RoleHost opens, keeps and ends runs, and reads what became of them, without
	// contents: a scheduler's role.
	RoleHost Role = "host"
	// RoleOperator reads, runs and decides.
	RoleOperator Role = "operator"
)

// Who may use a route.
var (
	operators = []Role{RoleOperator}
	hosts     = []Role{RoleHost, RoleOperator}
	readers   = []Role{RoleViewer, RoleOperator}
	everybody = []Role{RoleViewer, RoleHost, RoleOperator}
)

// known reports whether r is a role at all.
func (r Role) known() bool { return slices.Contains(everybody, r) }

// may reports whether a holder of r may use what one of the roles may. An unknown role
// may do nothing.
func (r Role) may(one []Role) bool { return r.known() && slices.Contains(one, r) }

// orRoles is "host or operator".
func orRoles(roles []Role) string {
	words := make([]string, 0, len(roles))
	for _, r := range roles {
		words = append(words, string(r))
	}
	return strings.Join(words, " or ")
}
