package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"keep-proxy/config"
)

// Lines of level info wait for others; what follows a warning or an error does not.
func TestTheJSONLogIsGathered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log, lines := newLog(config.Log{Level: config.LevelInfo, Format: config.FormatAuto}, &out)
		written := func(want ...string) {
			t.Helper()
			synctest.Wait()
			lines.mu.Lock()
			defer lines.mu.Unlock()
			var got []string
			for line := range strings.Lines(out.String()) {
				_, message, _ := strings.Cut(line, `"message":"`)
				got = append(got, strings.TrimSuffix(message, "\"}\n"))
			}
			if strings.Join(got, ",") != strings.Join(want, ",") {
				t.Errorf("%v is written, want %v", got, want)
			}
		}
		log.Info().Msg("a")
		log.Warn().Msg("b")
		written()
		lines.begin([]byte(`{"message":"first"}` + "\n"))
		written("first", "a", "b")
		log.Info().Msg("c")
		log.Info().Msg("d")
		written("first", "a", "b")
		time.Sleep(logDelay)
		written("first", "a", "b", "c", "d")
		out.Reset()
		log.Info().Msg("e")
		log.Warn().Msg("f")
		written("e", "f")
		log.Info().Msg("g")
		log.Error().Msg("h")
		written("e", "f", "g", "h")
		log.Info().Msg("i")
		lines.flush()
		written("e", "f", "g", "h", "i")
		out.Reset()
		log.Info().Msg(strings.Repeat("j", fullLog))
		if out.Len() < fullLog {
			t.Error("more than what is gathered waits")
		}
	})
}

// A start that is slow or fails doesn't keep its lines.
func TestTheLogOfAStartIsWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log, lines := newLog(config.Log{Level: config.LevelInfo, Format: config.FormatJSON}, &out)
		log.Warn().Msg("slow")
		time.Sleep(firstDelay)
		synctest.Wait()
		if !strings.Contains(out.String(), "slow") {
			t.Error("what a slow start says isn't written")
		}
		out.Reset()
		log.Info().Msg("before")
		log.Error().Msg("failed")
		if got := out.String(); !strings.Contains(got, "before") || !strings.Contains(got, "failed") {
			t.Errorf("an error of the start isn't written at once: %q", got)
		}
		lines.flush()
	})
}

// Both formats tell the zone.
func TestBothFormatsHaveTheWholeTime(t *testing.T) {
	t.Parallel()
	var text, object bytes.Buffer
	console, gathers := newLog(config.Log{Level: config.LevelInfo, Format: config.FormatConsole}, &text)
	if gathers != nil {
		t.Error("the log for people waits")
	}
	console.Info().Msg("x")
	at, _, _ := strings.Cut(text.String(), " ")
	if _, err := time.Parse(time.RFC3339, at); err != nil {
		t.Errorf("console: %v", err)
	}
	log, lines := newLog(config.Log{Level: config.LevelInfo, Format: config.FormatJSON}, &object)
	log.Info().Msg("x")
	lines.flush()
	_, at, _ = strings.Cut(object.String(), `"time":"`)
	at, _, _ = strings.Cut(at, `"`)
	if _, err := time.Parse(time.RFC3339, at); err != nil {
		t.Errorf("json: %v", err)
	}
}

// BenchmarkLog writes the line of a request into a file.
func BenchmarkLog(b *testing.B) {
	for _, format := range []config.LogFormat{config.FormatConsole, config.FormatJSON, "json without a buffer"} {
		b.Run(string(format), func(b *testing.B) {
			file, err := os.Create(filepath.Join(b.TempDir(), "log"))
			if err != nil {
				b.Fatal(err)
			}
			defer file.Close()
			log, lines := newLog(config.Log{Level: config.LevelInfo, Format: format}, file)
			if format != config.FormatConsole && format != config.FormatJSON {
				log, lines = logTo(file), nil
			}
			for b.Loop() {
				log.Info().Str("method", "POST").Str("host", "api.example.com").Str("path", "/v1/payments").Int("status", 201).Int64("body_bytes", 1024).
					Dur("duration_ms", 1234*time.Microsecond).Bool("delivered", true).Str("effect", "mutation").Str("workflow", "payouts").
					Str("item", "invoice-18").Str("run", "r4xvabcdefghijklmnopqrstuv").Str("connector", "api").Str("operation", "pay").
					Str("mutation", "m-0123456789abcdef").Str("state", "applied").Str("decision", "dispatch").Msg("request")
			}
			if lines != nil {
				lines.flush()
			}
		})
	}
}
