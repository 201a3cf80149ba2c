package ledger

import (
	"context"
	"errors"
	"time"

	"keep-proxy/internal/verdict"
)

// Said is whether the world still agrees with a stored result. The zero value is SaidNothing.
type Said string

// What the world said.
const (
	// SaidNothing: it could not be asked, or its answer is no proof.
	SaidNothing Said = "nothing"
	// SaidAgrees: the effect is there.
	SaidAgrees Said = "agrees"
	// SaidDisagrees: the effect is not there any more, or there twice.
	SaidDisagrees Said = "disagrees"
)

// VerifyMode says what follows where it doesn't. The zero value is VerifyOff; an unknown one VerifyStrict.
type VerifyMode string

// The modes.
const (
	VerifyOff    VerifyMode = ""
	VerifyWarn   VerifyMode = "warn"
	VerifyStrict VerifyMode = "strict"
	VerifyHuman  VerifyMode = "human"
)

// Verification is the last time at which the world did not agree with a stored result.
type Verification struct {
	At       time.Time `cbor:"1,keyasint"           json:"at"`
	Said     Said      `cbor:"2,keyasint"           json:"said"`
	Reason   string    `cbor:"3,keyasint,omitempty" json:"reason,omitempty"`
	Evidence string    `cbor:"4,keyasint,omitempty" json:"evidence,omitempty"`
	// Count is how often it did not agree.
	Count int `cbor:"5,keyasint" json:"count"`
	// Acknowledged says that a person wants the stored result replayed all the same.
	Acknowledged bool `cbor:"6,keyasint,omitempty" json:"acknowledged,omitempty"`
}

// Verified tells what the world said of an applied mutation before its result is given.
type Verified struct {
	Key  Key
	Run  string
	Mode VerifyMode
	Said Said
	// Reason and Evidence are readable and free of secrets.
	Reason   string
	Evidence string
	// Objects are set where the effect is there more than once, oldest first. Owed is the undoing of the newer ones.
	Objects []string
	Owed    []Owed
}

// Verified records what the world said before a replay, and reports whether the stored result may be given:
//
//  1. The world agrees, or a person acknowledged that it doesn't: the result may be given.
//  2. With warn it may, and the record tells.
//  3. With strict it may not, and the run is over. That is a definite failure, unless the world said nothing.
//  4. With human a person is asked where the world disagrees. Run and item wait, unless they are over or wait
//     already. Else it is as with strict.
//
// Where the effect is there more than once, a person is asked about that in each of these cases but the first.
//
// A record that isn't applied any more is ErrNotAllowed.
func (l *Ledger) Verified(ctx context.Context, v Verified) (replay bool, m *Mutation, err error) {
	m, err = evaluate(ctx, l, func(c *command) (m *Mutation, err error) {
		replay, m, err = c.verified(&v)
		return m, err
	})
	return replay && err == nil, m, err
}

func (c *command) verified(v *Verified) (bool, *Mutation, error) {
	m, err := c.Mutation(v.Key)
	switch {
	case err != nil:
		return false, nil, err
	case m.State != Applied:
		return false, nil, &NotAllowedError{State: m.State, On: OnRetry, Reason: "only an applied mutation has a result to verify"}
	case v.Said == SaidAgrees || v.Mode == VerifyOff || m.Verification != nil && m.Verification.Acknowledged:
		return true, m, nil
	}
	said := v.Said
	if said != SaidDisagrees {
		said = SaidNothing
	}
	note := &Verification{At: c.now.Wall, Said: said, Reason: v.Reason, Evidence: bound(v.Evidence), Count: 1}
	if m.Verification != nil {
		note.Count = m.Verification.Count + 1
	}
	m.Verification = note
	why := "the world agrees with the stored result no longer: " + v.Reason
	if said == SaidNothing {
		why = "whether the world still agrees with the stored result can't be told: " + v.Reason
	}
	mv := c.at(ActorProxy, why)
	if said == SaidDisagrees && len(v.Objects) > 1 {
		if err := c.openDuplicate(m, v, mv); err != nil {
			return false, nil, err
		}
	}
	asks := v.Mode == VerifyHuman && said == SaidDisagrees
	if asks {
		m.escalate(EscalationVerify, mv)
	}
	if err := c.store(m, m.State, Trigger("verify_"+said), mv, "", v.Evidence); err != nil {
		return false, nil, err
	}
	if v.Mode == VerifyWarn {
		return true, m, nil
	}
	if asks {
		if err := c.needAttention(m, why); err != nil {
			return false, nil, err
		}
	}
	return false, m, c.endUnverified(m, v.Run, said, asks, why)
}

// openDuplicate tells a person once of objects that are there too often. The undoing of the newer ones is owed. It
// waits for a person, with auto too: the mutation was known to be applied before they were seen.
func (c *command) openDuplicate(m *Mutation, v *Verified, mv move) error {
	o := &Observation{Objects: v.Objects}
	told := true
	for _, object := range v.Objects {
		owner, err := c.EvidenceOf(m.Connector, m.Account, object)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		told = told && err == nil && owner == m.Key
	}
	taken, err := c.evidenceTaken(m, o)
	if err != nil || told || taken != "" || o.namesTwice() {
		return err
	}
	if err := c.tie(m, o); err != nil {
		return err
	}
	m.escalate(EscalationDuplicate, mv)
	for i := range v.Owed {
		v.Owed[i].Auto = false
	}
	return c.oweNewer(m, o, v.Owed, mv)
}

// endUnverified ends the run that was refused a replay.
func (c *command) endUnverified(m *Mutation, run string, said Said, asks bool, why string) error {
	r, err := c.runOf(run)
	if err != nil || r == nil || r.State.Ended() {
		return err
	}
	e := ending{state: RunAborted, class: verdict.Precondition, reason: why, cause: m.ID, actor: ActorProxy, failed: true}
	switch {
	case asks:
		e.state, e.failed = RunPausedAttention, false
	case said == SaidNothing:
		e.class, e.failed = verdict.Transient, false
	}
	return c.endBy(r, e, &m.Key)
}
