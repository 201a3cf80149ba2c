package reconcilers

import "keep-proxy/internal/fault"

// Instants at which losing the process must do no harm.
var (
	beforeObserve  = fault.New("reconcilers.before_observe")
	resendRecorded = fault.New("reconcilers.resend_recorded")
	resendAnswered = fault.New("reconcilers.resend_answered")

	redispatchRecorded = fault.New("reconcilers.redispatch_recorded")
	redispatchAnswered = fault.New("reconcilers.redispatch_answered")
)
