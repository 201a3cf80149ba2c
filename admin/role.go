package admin

// Role is what the holder of a token may do. Each role may do what the one
// before it may. The zero value may do nothing.
type Role string

const (
	// RoleNone needs no token (routes only).
	RoleNone Role = ""
	// RoleViewer reads.
	RoleViewer Role = "viewer"
	// RoleHost opens, keeps and ends runs too: a scheduler's role.
	RoleHost Role = "host"
	// RoleOperator decides too.
	RoleOperator Role = "operator"
)

// rank orders roles; 0 for one that is not known.
func (r Role) rank() int {
	switch r {
	case RoleViewer:
		return 1
	case RoleHost:
		return 2
	case RoleOperator:
		return 3
	case RoleNone:
		return 0
	}
	return 0
}

// may reports whether a holder of r may use what needs the role need. An
// unknown role may do nothing, and nobody may do what needs an unknown one.
func (r Role) may(need Role) bool {
	return need.rank() > 0 && r.rank() >= need.rank()
}
