package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/script"
)

// codeUnknown is run's exit code for a run that an unknown outcome stopped.
const codeUnknown = 75

// settleTimeout bounds how long an act waits until the proxy knows again.
const settleTimeout = 2 * time.Minute

// variables tell the script what to do.
func (s *stage) variables(reference, notice string) []string {
	env := []string{
		"DEMO_BANK=" + s.bank.URL(), "DEMO_QUOTES=" + s.quotes.URL(),
		fmt.Sprintf(`DEMO_TRANSFER={"from":"alice","to":"bob","amount":10000,"currency":"EUR","reference":%q}`, reference),
	}
	if notice != "" {
		env = append(env, fmt.Sprintf(`DEMO_NOTICE={"to":"bob","text":"100 EUR are on their way","reference":%q}`, notice))
	}
	return env
}

// through runs the script as a managed run.
func (s *stage) through(ctx context.Context, item string, env []string, flags ...string) (int, error) {
	given := append([]string{"run", "--workflow", "payments", "--item", item}, flags...)
	s.sayf("  $ keep-proxy %s -- sh pay.sh", strings.Join(given, " "))
	args := append([]string{s.o.Self}, given...)
	args = append(args, "--config", s.config, "--")
	return s.command(ctx, env, append(args, s.script...)...)
}

// act1 shows the problem.
func (s *stage) act1(ctx context.Context) error {
	s.sayf("Act 1: without keep-proxy. The bank books the transfer and drops the connection; the script tries again.\n")
	if err := s.bank.ArmNamed("commit-close"); err != nil {
		return err
	}
	s.sayf("  $ sh pay.sh")
	env := append(s.variables("R-1", ""), "SSL_CERT_FILE="+s.caFile, "CURL_CA_BUNDLE="+s.caFile)
	if err := succeeds(s.command(ctx, env, s.script...)); err != nil {
		return err
	}
	return s.books("transfer:R-1", 2)
}

// act2 shows the same through keep-proxy.
func (s *stage) act2(ctx context.Context) error {
	s.sayf("\nAct 2: the same script and the same bank, through keep-proxy.\n")
	if err := s.startProxy(ctx); err != nil {
		return err
	}
	if err := s.bank.ArmNamed("commit-close"); err != nil {
		return err
	}
	env := s.variables("R-2", "")
	if err := succeeds(s.through(ctx, "invoice-2", env, "--keep-open")); err != nil {
		return err
	}
	s.sayf("\nThe bank dropped the connection again. keep-proxy asked once more under the transfer's own key, by which")
	s.sayf("the bank knows what it has booked, and got the answer. Somebody runs the script again; its item was kept")
	s.sayf("open. The recorded answer is given, and nothing is sent.\n")
	if err := succeeds(s.through(ctx, "invoice-2", env)); err != nil {
		return err
	}
	s.sayf("\nAnd once more. Without --keep-open the item is done with its command, which isn't even started.\n")
	if err := succeeds(s.through(ctx, "invoice-2", env)); err != nil {
		return err
	}
	return s.books("transfer:R-2", 1)
}

// act3 kills the proxy while it waits for the bank's answer.
func (s *stage) act3(ctx context.Context) error {
	s.sayf("\nAct 3: the proxy is killed with SIGKILL after the bank booked, before it answered.\n")
	const gate = "act-3"
	err := s.bank.Arm(script.Fault{Steps: []script.Step{{Do: script.Commit}, {Do: script.Wait, Hold: gate}, {Do: script.Close}}})
	if err != nil {
		return err
	}
	defer s.bank.Release(gate)
	env := s.variables("R-3", "")
	ended := make(chan error, 1)
	go func() {
		code, err := s.through(ctx, "invoice-3", env)
		ended <- stopped(code, err)
	}()
	if err := s.booked(ctx, "transfer:R-3"); err != nil {
		return err
	}
	s.proxy.kill()
	if err := s.startProxy(ctx); err != nil {
		return err
	}
	if err := <-ended; err != nil {
		return err
	}
	s.sayf("\nThe proxy is back. It asks the bank by the transfer's own key what became of it …\n")
	if err := s.settled(ctx); err != nil {
		return err
	}
	if err := succeeds(s.through(ctx, "invoice-3", env)); err != nil {
		return err
	}
	return s.books("transfer:R-3", 1)
}

// booked waits until the bank's log holds an effect.
func (s *stage) booked(ctx context.Context, identity string) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	_, err := oracle.Wait(ctx, filepath.Join(s.dir, "bank.log"), func(t oracle.Tally) bool { return t.Effects(identity) > 0 })
	return err
}

// settled waits until status says that nothing is unknown any more, and shows that.
func (s *stage) settled(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	quiet := &stage{o: Options{Self: s.o.Self, Out: io.Discard}, config: s.config}
	for {
		if code, err := quiet.keep(limit, "status"); err != nil {
			return err
		} else if code == 0 {
			return succeeds(s.keep(ctx, "status"))
		}
		select {
		case <-limit.Done():
			return errors.New("the outcome is still unknown")
		case <-poll.C:
		}
	}
}

// act4 shows an API that can't be asked, and a person who can.
func (s *stage) act4(ctx context.Context) error {
	s.sayf("\nAct 4: before it pays, the script sends a notice, and the bank can't be asked about notices.\n")
	if err := s.bank.ArmNamed("commit-close"); err != nil {
		return err
	}
	env := s.variables("R-4", "N-4")
	if err := stopped(s.through(ctx, "invoice-4", env)); err != nil {
		return err
	}
	s.sayf("\nNothing is guessed: the work stands still, and this is what a person sees:\n")
	if _, err := s.keep(ctx, "resolve"); err != nil {
		return err
	}
	s.sayf("\nBob says that the notice arrived.\n")
	answer := filepath.Join(s.dir, "answer.json")
	content, err := json.Marshal(map[string]any{
		"status": 202, "headers": map[string]string{"Content-Type": "application/json"}, "body": `{"status":"queued"}`,
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(answer, content, 0o600); err != nil {
		return err
	}
	err = succeeds(s.keep(ctx, "resolve", "--all", "--connector", "demo-bank", "--happened", "--result", answer, "--reason", "Bob has it"))
	if err != nil {
		return err
	}
	s.sayf("\nThe script is run again, and goes on where it stood.\n")
	if err := succeeds(s.through(ctx, "invoice-4", env)); err != nil {
		return err
	}
	if err := s.books("notice:N-4", 1); err != nil {
		return err
	}
	tally, err := s.bank.Tally()
	if err == nil && tally.Effects("transfer:R-4") != 1 {
		err = errors.New("the transfer behind the notice was not made once")
	}
	return err
}

// succeeds wants exit code 0.
func succeeds(code int, err error) error { return ends(0, code, err) }

// stopped wants the exit code of a run that an unknown outcome stopped.
func stopped(code int, err error) error { return ends(codeUnknown, code, err) }

func ends(want, code int, err error) error {
	if err == nil && code != want {
		err = fmt.Errorf("a command of the demo ended with code %d, and its act promises %d", code, want)
	}
	return err
}
