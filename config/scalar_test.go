package config

import (
	"testing"
	"time"
)

func TestReadDuration(t *testing.T) {
	t.Parallel()
	const unit, form = "a duration needs a unit", "not a duration"
	for _, c := range []struct {
		name, text string
		want       time.Duration
		problem    string
	}{
		{"seconds", "10s", 10 * time.Second, ""},
		{"hours and minutes", "1h30m", 90 * time.Minute, ""},
		{"a fraction", "1.5s", 1500 * time.Millisecond, ""},
		{"nothing needs no unit", "0", 0, ""},
		{"a number", "10", 0, unit},
		{"a fraction without a unit", "0.5", 0, unit},
		{"days", "1d", 0, form},
		{"a space", "10 s", 0, form},
		{"nothing at all", "", 0, form},
		{"more than fits", "9999999h", 0, form},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, f := readDuration("", c.text)
			if got != c.want || problemText(f) != c.problem {
				t.Errorf("%q reads as %v with %q, want %v with %q", c.text, got, problemText(f), c.want, c.problem)
			}
		})
	}
}

func TestReadInt(t *testing.T) {
	t.Parallel()
	const problem = "not a whole number"
	for _, c := range []struct {
		name, text string
		want       int
		problem    string
	}{
		{"a number", "42", 42, ""},
		{"nothing", "0", 0, ""},
		{"below nothing", "-5", -5, ""},
		{"a plus", "+5", 0, problem},
		{"octal in YAML 1.1", "010", 0, problem},
		{"octal in YAML 1.1, below nothing", "-010", 0, problem},
		{"hexadecimal", "0x10", 0, problem},
		{"digits in groups", "1_000", 0, problem},
		{"a fraction", "5.0", 0, problem},
		{"no text", "", 0, problem},
		{"more than fits", "99999999999999999999", 0, problem},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, f := readInt("", c.text)
			if got != c.want || problemText(f) != c.problem {
				t.Errorf("%q reads as %v with %q, want %v with %q", c.text, got, problemText(f), c.want, c.problem)
			}
		})
	}
}

func TestReadNumber(t *testing.T) {
	t.Parallel()
	const problem = "not a number"
	for _, c := range []struct {
		name, text string
		want       float64
		problem    string
	}{
		{"a fraction", "0.2", 0.2, ""},
		{"a whole number", "2", 2, ""},
		{"below nothing", "-0.5", -0.5, ""},
		{"not a number", "NaN", 0, problem},
		{"without end", "Inf", 0, problem},
		{"an exponent", "1e3", 0, problem},
		{"hexadecimal", "0x1p4", 0, problem},
		{"a comma", "0,2", 0, problem},
		{"a leading zero", "02", 0, problem},
		{"no text", "", 0, problem},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, f := readNumber("", c.text)
			if got != c.want || problemText(f) != c.problem {
				t.Errorf("%q reads as %v with %q, want %v with %q", c.text, got, problemText(f), c.want, c.problem)
			}
		})
	}
}

func TestReadSizeExplainsEachMistake(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       fault
	}{
		{"no size", "big", fault{"not a size", "write a whole number and a unit, such as 64KiB or 10MiB"}},
		{"a wrong unit", "10M", fault{`not a size: unknown unit "M"`, "use B, KiB, MiB, GiB or TiB (kB, MB, GB and TB are powers of 1000)"}},
		{"octal in YAML 1.1", "010MiB", fault{"not a size: a leading zero", "write the number without it"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, f := readSize("", c.text); f == nil || *f != c.want {
				t.Errorf("%q: %+v, want %+v", c.text, f, c.want)
			}
		})
	}
}

func TestOneOfTakesItsWordsAlone(t *testing.T) {
	t.Parallel()
	read := oneOf("a", "b", "c")
	for text, problem := range map[string]string{"b": "", "B": "not a known value", "": "not a known value"} {
		got, f := read("", text)
		if problemText(f) != problem || problem == "" && got != text || f != nil && f.fix != "use a, b or c" {
			t.Errorf("%q reads as %v with %+v, want the problem %q", text, got, f, problem)
		}
	}
}

func problemText(f *fault) string {
	if f == nil {
		return ""
	}
	return f.text
}
