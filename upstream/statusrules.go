package upstream

// Reasons of verdicts. ReasonRule is followed by the rule's own words, ReasonCut
// and ReasonTooLarge follow the reason of a success.
const (
	ReasonContradiction  = "the evidence contradicts itself: bytes were written, yet nothing was sent"
	ReasonNotSent        = "nothing was sent"
	ReasonRefused        = "the upstream declared that it did not process the request"
	ReasonNoHead         = "no complete answer head was read after bytes had been sent"
	ReasonRule           = "by the rule: "
	ReasonNoClass        = "the rule says failed without a class of failure"
	ReasonUnknownOpinion = "the rule's opinion is unknown"
	ReasonOtherwise      = "no condition of the rule hit, and it closes the default table"
	ReasonGRPC           = "gRPC: the HTTP status does not tell the outcome"
	ReasonGoneOnDelete   = "not found or gone, which may be this deletion's own work"
	ReasonSuccess        = "success status"
	ReasonOther2xx       = "a 2xx status that does not say what happened"
	ReasonRedirect       = "redirected with method and body kept; not done at this host, and not followed"
	ReasonOther3xx       = "a redirect that does not say what happened"
	ReasonPermission     = "the upstream denies permission"
	ReasonPrecondition   = "the upstream refuses under present circumstances"
	ReasonLogic          = "the upstream refuses the request as it is"
	ReasonBusy           = "the upstream asks to try again later"
	ReasonAmbiguous      = "a status that a gateway may give after the upstream committed"
	ReasonUnknownStatus  = "unknown status"
	ReasonCut            = ", but the answer's body was cut"
	ReasonTooLarge       = ", but the answer's body is over the limit"
)

// statusRule is one row of the default table.
type statusRule struct {
	statuses  []int
	kind      VerdictKind
	class     Class
	notDelete bool // on DELETE the row says nothing: uncertain
	reason    string
}

// statusRules is the default table for complete final heads. A status in no row is
// uncertain: 408, 409, 412, 499 and 5xx come from gateways, too, which may have
// retried inside, so that a first 409 can be our own write.
var statusRules = []statusRule{
	{statuses: []int{200, 201, 202, 204, 303}, kind: Applied, reason: ReasonSuccess},
	{statuses: []int{307, 308}, kind: Failed, class: ClassLogic, reason: ReasonRedirect},
	{statuses: []int{401, 403, 407}, kind: Failed, class: ClassPermission, reason: ReasonPermission},
	{statuses: []int{402, 422}, kind: Failed, class: ClassPrecondition, reason: ReasonPrecondition},
	{statuses: []int{404, 410}, kind: Failed, class: ClassPrecondition, notDelete: true, reason: ReasonPrecondition},
	{
		statuses: []int{400, 405, 406, 411, 413, 414, 415, 416, 417, 421, 424, 426, 428, 431, 451, 501, 505, 511},
		kind:     Failed, class: ClassLogic, reason: ReasonLogic,
	},
	{statuses: []int{425, 429}, kind: Failed, class: ClassTransient, reason: ReasonBusy},
	{statuses: []int{408, 409, 412, 499}, kind: Uncertain, reason: ReasonAmbiguous},
}

// rulesByStatus is statusRules by their statuses.
var rulesByStatus = func() map[int]statusRule {
	m := map[int]statusRule{}
	for _, r := range statusRules {
		for _, s := range r.statuses {
			m[s] = r
		}
	}
	return m
}()

// ruleOf returns the row of a final status.
func ruleOf(status int) statusRule {
	if r, ok := rulesByStatus[status]; ok {
		return r
	}
	switch status / 100 {
	case 2:
		return statusRule{reason: ReasonOther2xx}
	case 3:
		return statusRule{reason: ReasonOther3xx}
	case 5:
		return statusRule{reason: ReasonAmbiguous}
	}
	return statusRule{reason: ReasonUnknownStatus}
}
