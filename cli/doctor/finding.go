package doctor

// Verdict is what an examination came to. The zero value is none and counts as Broken.
type Verdict string

const (
	// Sound needs nothing.
	Sound Verdict = "sound"
	// Advice works, and could be safer.
	Advice Verdict = "advice"
	// Unknown could not be found out here.
	Unknown Verdict = "unknown"
	// Broken breaks a promise, or keeps the proxy from working.
	Broken Verdict = "broken"
)

// Finding is what one examination found.
type Finding struct {
	// Name is what was examined, in a few words.
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	// Detail says what was seen.
	Detail string `json:"detail"`
	// Fix says what to do; empty for what is sound.
	Fix string `json:"fix,omitempty"`
}

// Failed reports whether anything is broken.
func Failed(findings []Finding) bool {
	for _, f := range findings {
		switch f.Verdict {
		case Sound, Advice, Unknown:
		default:
			return true
		}
	}
	return false
}

func sound(name, detail string) Finding { return Finding{name, Sound, detail, ""} }

func advice(name, detail, fix string) Finding { return Finding{name, Advice, detail, fix} }

func unknown(name, detail, fix string) Finding { return Finding{name, Unknown, detail, fix} }

func broken(name, detail, fix string) Finding { return Finding{name, Broken, detail, fix} }
