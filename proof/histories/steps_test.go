package histories

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// prepare makes a draft, which has no effect.
func (a *api) prepare(c net.Conn, br *bufio.Reader, q asked) bool {
	f, _ := a.next("prepare "+q.Reference, a.others)
	if think(c, br, f.think) {
		return false
	}
	body := "{}"
	if f.commits {
		a.mu.Lock()
		a.drafts = append(a.drafts, &draft{asked: q})
		body = fmt.Sprintf(`{"draft":"%d"}`, len(a.drafts))
		a.mu.Unlock()
	}
	return answer(c, f, "", body)
}

// undo takes an object back, now or late.
func (a *api) undo(c net.Conn, br *bufio.Reader, id string) bool {
	a.expect(undoing(id), 1)
	defer a.expect(undoing(id), -1)
	f, _ := a.next("undo", a.others)
	gone := think(c, br, f.think)
	if gone {
		f.answer = "lost"
	}
	late := gone || f.answer == "lost" || f.answer == "torn" || f.answer == "after 503"
	there := true
	if f.commits && !late {
		there = a.remove(id)
	}
	if f.answer == "ok" && !there {
		f.answer = "404"
	}
	on := !gone && answer(c, f, "", "{}")
	if !on {
		_ = c.Close()
	}
	if f.commits && late {
		if a.watcher != nil {
			a.watcher.delays(id)
		}
		wait(f.late)
		a.remove(id)
	}
	return on
}

// remove takes an object back, and reports whether it was there.
func (a *api) remove(id string) bool {
	o := a.object(id)
	if o == nil {
		return false
	}
	if a.watcher != nil {
		a.watcher.undoes(o)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	there := !o.gone
	o.gone = true
	return there
}

// read answers what can be seen now.
func (a *api) read(c net.Conn, r *http.Request, what, rest string) bool {
	if token := r.URL.Query().Get("by"); token != "" && a.watcher != nil {
		a.watcher.looks(token)
	}
	a.mu.Lock()
	a.reads++
	f := good
	if !a.calm {
		f = a.plan.fate("read", a.reads)
	}
	age := time.Duration(0)
	if !a.calm {
		age = a.plan.world.age(a.plan, a.reads, time.Since(a.begun))
	}
	then := time.Now().Add(-age)
	found := a.shown(what, rest, r.URL.Query(), then)
	text, err := json.Marshal(found)
	head := "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + a.plan.world.date(then) + a.plan.world.aged(age)
	a.mu.Unlock()
	if err != nil {
		return false
	}
	switch f.answer {
	case "lost", "torn":
		return false
	case "cut":
		_, _ = fmt.Fprintf(c, "%sContent-Length: %d\r\n\r\n%s", head, len(text), text[:len(text)/2])
		return false
	case "500", "503", "429", "after 503":
		head = strings.Replace(head, "200 OK", strings.TrimPrefix(f.answer, "after ")+" no", 1)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%sContent-Length: %d\r\n\r\n%s", head, len(text), text)
	if strings.Contains(head, "200 OK") {
		a.shows(found) // Ahead of it, as whoever reads it may answer a script at once.
	}
	_, err = c.Write(b.Bytes())
	return err == nil && f.keep
}

// shows notes the objects of a page that a reader gets whole.
func (a *api) shows(found any) {
	page, _ := found.(map[string]any)
	objects, _ := page["items"].([]*object)
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, o := range objects {
		a.showed[o.KeepID] = time.Now()
	}
}

// shown is what a read of a moment finds.
func (a *api) shown(what, rest string, q url.Values, now time.Time) any {
	switch what {
	case "drafts":
		d := a.draft(rest)
		return map[string]any{"id": rest, "sent": !d.sent.IsZero() && !d.shows.After(now)}
	case "jobs":
		n, err := strconv.Atoi(strings.TrimPrefix(rest, "j"))
		if err != nil || n < 1 || n > len(a.jobs) {
			return map[string]any{"state": "nothing"}
		}
		return map[string]any{"state": a.jobs[n-1].state}
	default:
		return a.page(q, now)
	}
}

// since leaves out what was created before a time, by the API's clock.
func since(all []*object, text string) []*object {
	from, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(o *object) bool {
		created, err := time.Parse(time.RFC3339Nano, o.CreatedAt)
		return err != nil || created.Before(from)
	})
}

// page is one object of those that can be seen of a reference at a moment, newest first, so that what
// is made meanwhile shifts the pages that follow. Some are other people's.
func (a *api) page(q url.Values, now time.Time) map[string]any {
	reference := q.Get("reference")
	r := drawn(a.plan.seed, "others "+reference, 0)
	var all []*object
	for n := range r.IntN(3) {
		all = append(all, &object{
			ID: fmt.Sprintf("other-%s-%d", reference, n), Reference: reference, KeepID: others,
			CreatedAt: a.begun.Add(time.Hour).UTC().Format(time.RFC3339Nano), // Newer than what is asked for.
		})
	}
	older := r.IntN(len(all) + 1)
	ours := []*object{}
	for _, o := range slices.Backward(a.objects) {
		if o.Reference == reference && !o.visible.After(now) && !o.gone {
			ours = append(ours, o)
		}
	}
	all = since(slices.Concat(all[older:], ours, all[:older]), q.Get("since"))
	at, err := strconv.Atoi(q.Get("cursor"))
	if err != nil {
		at = 0
	}
	all = a.plan.world.lists(a, reference, all, at)
	at = min(at, len(all))
	end := min(at+1, len(all))
	return map[string]any{"items": append([]*object{}, all[at:end]...), "more": end < len(all), "next": strconv.Itoa(end)}
}
