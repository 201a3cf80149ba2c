package badgerstore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"keep-proxy/internal/fault"
	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// childMode tells the test binary to be the process that is killed; the ledger is in
// its working folder. As onlyRecords it writes no long bodies; as twoLives it comes to an
// end by itself.
const (
	childMode   = "KEEP_TEST_LEDGER_CHILD"
	onlyRecords = "records"
	twoLives    = "lives"
)

func TestMain(m *testing.M) {
	if mode := os.Getenv(childMode); mode != "" {
		claim := claimForEver
		if mode == twoLives {
			claim = claimInTwoLives
		}
		if err := claim("."); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if keys := os.Getenv(linearVar); keys != "" {
		if err := commandForEver(keys); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	code := m.Run()
	_ = os.RemoveAll(crash.dir)
	os.Exit(code)
}

// claimForEver claims from four goroutines and prints the number of each record
// after it was acknowledged.
func claimForEver(dir string) error {
	if err := fault.ArmFromEnv(); err != nil {
		return err
	}
	c := testConfig(dir)
	c.ring = 256 << 10 // So that Badger is given something every now and then.
	if os.Getenv(childMode) == onlyRecords {
		c.ring = 4 << 20
	}
	s, err := Open(context.Background(), c)
	if err != nil {
		return err
	}
	start := rand.Uint32()
	var out sync.Mutex
	var wg sync.WaitGroup
	for w := range uint32(4) {
		wg.Go(func() {
			for n := start + w; ; n += 4 {
				m := ledgertest.SampleMutation(strconv.Itoa(int(n)), ledger.InFlight, 0)
				switch {
				case os.Getenv(childMode) == onlyRecords:
					m.Reason = strings.Repeat("x", 20<<10)
				case n/4%8 == 0:
					// Long enough for a file.
					content := strings.Repeat(strconv.Itoa(int(n)), ledger.InlineBody)
					var err error
					if m.Request.Body, err = s.WriteBody(context.Background(), strings.NewReader(content)); err != nil {
						return
					}
				}
				err := s.Update(context.Background(), func(tx ledger.Tx) error {
					tx.Append(ledger.Event{What: "claim", Mutation: m.ID})
					return tx.PutMutation(m)
				})
				if err != nil {
					return
				}
				out.Lock()
				fmt.Println(n)
				out.Unlock()
			}
		})
	}
	wg.Wait()
	return nil
}

// claimInTwoLives creates a ledger, claims, some of it with long bodies, closes it, which
// writes a table, and does so once more. It prints what was acknowledged.
func claimInTwoLives(dir string) error {
	for life := range 2 {
		c := testConfig(dir)
		c.ring = 256 << 10
		s, err := Open(context.Background(), c)
		if err != nil {
			return err
		}
		for n := range 6 {
			name := strconv.Itoa(life*6 + n)
			m := ledgertest.SampleMutation(name, ledger.InFlight, 0)
			if n%3 == 2 {
				content := strings.NewReader(strings.Repeat(name, 1+ledger.InlineBody/len(name)))
				if m.Request.Body, err = s.WriteBody(context.Background(), content); err != nil {
					return errors.Join(err, s.Close())
				}
			}
			err := s.Update(context.Background(), func(tx ledger.Tx) error {
				tx.Append(ledger.Event{What: "claim", Mutation: m.ID})
				return tx.PutMutation(m)
			})
			if err != nil {
				return errors.Join(err, s.Close())
			}
			fmt.Println(name)
		}
		if err := s.Close(); err != nil {
			return err
		}
	}
	fmt.Println(allWritten)
	return nil
}

// allWritten is the last line of who came to its end.
const allWritten = "all"

// runChild runs the child until it was killed, by a fault point or after so many
// acknowledged records, and returns what it acknowledged.
func runChild(t *testing.T, dir, faultSpec string, killAfter int) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), childMode+"=1", fault.EnvVar+"="+faultSpec)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(5*time.Minute, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	var acknowledged []string
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		acknowledged = append(acknowledged, lines.Text())
		if len(acknowledged) == killAfter {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != -1 {
		t.Fatalf("the child was not killed: %v\n%s", err, stderr.String())
	}
	return acknowledged
}

// holds opens the folder after a kill and looks for what was acknowledged.
func holds(t *testing.T, dir string, acknowledged []string) {
	t.Helper()
	s, err := Open(context.Background(), testConfig(dir))
	if err != nil {
		t.Fatalf("after a kill the ledger must open: %v", err)
	}
	var bodies []ledger.Body
	err = s.View(context.Background(), func(v ledger.View) error {
		for _, n := range acknowledged {
			m, err := v.Mutation(ledgertest.SampleMutation(n, ledger.InFlight, 0).Key)
			if err != nil {
				return fmt.Errorf("acknowledged record %s: %w", n, err)
			}
			if m.Request.Body.Size > ledger.InlineBody {
				bodies = append(bodies, m.Request.Body)
			}
		}
		return nil
	})
	for _, b := range bodies {
		_, readErr := readAll(t, s, b)
		err = errors.Join(err, readErr)
	}
	if left := names(t, testConfig(dir).spoolDir()); len(left) > 0 {
		t.Errorf("spool/ holds %v", left)
	}
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
}

// proving says that make proof runs these tests: in their long forms.
func proving() bool { return os.Getenv("KEEP_PROOF") != "" }

func TestNothingAcknowledgedIsLostWhenKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(3, 4))
	kills, longest := 3, 120
	if proving() {
		kills, longest = 8, 400
	}
	var all []string
	for range kills {
		all = append(all, runChild(t, dir, "", 1+random.IntN(longest))...)
		holds(t, dir, all)
	}
	if _, err := Verify(context.Background(), testConfig(dir), nil); err != nil {
		t.Error(err)
	}
}

func TestKilledAtEachPoint(t *testing.T) {
	t.Parallel()
	for _, point := range []string{
		"badgerstore.before_commit", "badgerstore.before_log", "badgerstore.after_log", "badgerstore.after_fold",
		"badgerstore.after_publish",
		"badgerstore.body_chunk", "badgerstore.body_done",
	} {
		for _, passing := range []int{1, 2, 25} {
			t.Run(fmt.Sprintf("%s, passing %d", point, passing), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				got := runChild(t, dir, fmt.Sprintf("%s:%d", point, passing), 0)
				if passing == 25 && len(got) == 0 {
					t.Error("nothing was acknowledged before the point")
				}
				holds(t, dir, got)
			})
		}
	}
	t.Run("in the middle of a first start", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		runChild(t, dir, "badgerstore.creating", 0)
		holds(t, dir, nil)
	})
}
