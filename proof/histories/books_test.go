package histories

import (
	"slices"
	"strconv"
	"time"
)

// object is what one effect made.
type object struct {
	ID        string `json:"id"`
	Reference string `json:"reference"`
	KeepID    string `json:"keep_id"`
	Amount    int    `json:"amount"`
	CreatedAt string `json:"created_at"`

	operation, place, by string
	created, visible     time.Time
	// twin says that the API made it by itself, gone that it was taken back, and lost when it
	// vanished otherwise.
	twin, gone bool
	lost       time.Time
}

// draft is what a preparing step made.
type draft struct {
	asked asked
	// sent is when it took effect, and shows when that can be read.
	sent, shows time.Time
}

// job is what was accepted, and is done later.
type job struct {
	asked asked
	state string
}

// effect is what comes of a request that commits; the id of a job if it is only accepted.
func (a *api) effect(q asked, f fate) (accepted string) {
	if q.operation != "watched" {
		a.commit(q, f)
		return ""
	}
	a.mu.Lock()
	j := &job{asked: q, state: "working"}
	a.jobs = append(a.jobs, j)
	accepted = "j" + strconv.Itoa(len(a.jobs))
	a.undecided[q.KeepID]++
	a.mu.Unlock()
	a.working.Go(func() {
		wait(f.job)
		end := "failed"
		if !f.fails {
			end = "done"
			a.commit(q, f)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		j.state = end
		a.undecided[q.KeepID]--
	})
	return accepted
}

// commit takes effect, unless the vendor key did before.
func (a *api) commit(q asked, f fate) {
	if a.watcher != nil {
		a.watcher.takes(q)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if q.key != "" && a.remembers(q.key) {
		return
	}
	if q.Draft != "" {
		d := a.draft(q.Draft)
		if !d.sent.IsZero() {
			return
		}
		d.sent, d.shows = time.Now(), time.Now().Add(f.shows)
	}
	o := a.makes(q, f.shows)
	if q.key != "" {
		a.keys[q.key] = o
	}
	if (q.operation == "doubled" || q.operation == "owed") && f.twin > 0 {
		a.undecided[q.KeepID]++
		a.working.Go(func() {
			wait(f.twin)
			a.mu.Lock()
			defer a.mu.Unlock()
			a.makes(q, f.shows).twin = true
			a.undecided[q.KeepID]--
		})
	}
}

// remembers reports whether the API still knows a vendor key.
func (a *api) remembers(key string) bool {
	o := a.keys[key]
	if o != nil && a.plan.world.hasForgotten(o.created) {
		delete(a.keys, key)
		return false
	}
	return o != nil
}

// makes adds an object to the books.
func (a *api) makes(q asked, shows time.Duration) *object {
	now := time.Now()
	o := &object{
		ID: "o" + strconv.Itoa(len(a.objects)+1), Reference: q.Reference, KeepID: q.KeepID, Amount: q.Amount,
		CreatedAt: a.plan.world.created(now).UTC().Format(time.RFC3339Nano), operation: q.operation, place: q.place, by: q.by,
		created: now, visible: now.Add(shows),
	}
	a.objects = append(a.objects, o)
	return o
}

// effects counts what was made under a marker, apart from what the API made by itself, and
// what may still come.
func (a *api) effects(marker string) (made, undecided int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, o := range a.objects {
		if o.KeepID == marker && !o.twin {
			made++
		}
	}
	return made, a.undecided[marker]
}

// total counts what was made for a reference, whatever the marker; with a window the most that
// were made in less than it.
func (a *api) total(reference string, window time.Duration) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	var at []time.Time
	most, first := 0, 0
	for _, o := range a.objects {
		if o.Reference != reference || o.twin {
			continue
		}
		at = append(at, o.created)
		for window > 0 && o.created.Sub(at[first]) >= window {
			first++
		}
		most = max(most, len(at)-first)
	}
	return most
}

// madeSince counts what was made under a marker since a time, apart from twins.
func (a *api) madeSince(marker string, since time.Time) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, o := range a.objects {
		if o.KeepID == marker && !o.twin && o.created.After(since) {
			n++
		}
	}
	return n
}

// amounts are those of what was made, or is worked on, under a marker.
func (a *api) amounts(marker string) []int {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []int
	for _, o := range a.objects {
		if o.KeepID == marker {
			out = append(out, o.Amount)
		}
	}
	for _, j := range a.jobs {
		if j.asked.KeepID == marker {
			out = append(out, j.asked.Amount)
		}
	}
	return out
}

// made are the objects of a marker, the oldest first.
func (a *api) made(marker string) []*object {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []*object
	for _, o := range a.objects {
		if o.KeepID == marker {
			out = append(out, o)
		}
	}
	slices.SortStableFunc(out, func(a, b *object) int { return a.created.Compare(b.created) })
	return out
}

// object is the one with an id, nil for none.
func (a *api) object(id string) *object {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.find(id)
}

func (a *api) find(id string) *object {
	i := slices.IndexFunc(a.objects, func(o *object) bool { return o.ID == id })
	if i < 0 {
		return nil
	}
	return a.objects[i]
}

// isGone reports whether an object was taken back, and whether it may still be.
func (a *api) isGone(id string) (gone, undecided bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := a.find(id)
	return o != nil && o.gone, a.undecided[undoing(id)] > 0
}

func undoing(id string) string { return "undo " + id }

// draft is the one with an id; the zero one for none.
func (a *api) draft(id string) *draft {
	n, err := strconv.Atoi(id)
	if err != nil || n < 1 || n > len(a.drafts) {
		return &draft{}
	}
	return a.drafts[n-1]
}

// drafted is what the commit of a draft asks for.
func (a *api) drafted(id string) asked {
	a.mu.Lock()
	defer a.mu.Unlock()
	q := a.draft(id).asked
	q.operation, q.Draft = "drafted", id
	return q
}
