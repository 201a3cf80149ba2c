package fault

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
)

var (
	pointOne = New("fault.test_one")
	pointTwo = New("fault.test_two")
)

func TestUnarmedPointDoesNothing(t *testing.T) {
	pointOne.Pass()
	if got := pointOne.Name(); got != "fault.test_one" {
		t.Errorf("Name() = %q, want fault.test_one", got)
	}
}

func TestNamesListsEveryPointSorted(t *testing.T) {
	names := Names()
	if !slices.IsSorted(names) {
		t.Errorf("Names() = %q, not sorted", names)
	}
	for _, want := range []string{"fault.test_one", "fault.test_two"} {
		if !slices.Contains(names, want) {
			t.Errorf("Names() = %q, without %q", names, want)
		}
	}
}

func TestDoRunsOnceAtTheNthPassing(t *testing.T) {
	runs := 0
	disarm, err := Do("fault.test_one", 3, func() { runs++ })
	if err != nil {
		t.Fatal(err)
	}
	defer disarm()
	for passing, want := range []int{0, 0, 1, 1, 1} {
		pointOne.Pass()
		if runs != want {
			t.Errorf("after passing %d: %d runs, want %d", passing+1, runs, want)
		}
	}
}

func TestDisarmLeavesALaterArmingAlone(t *testing.T) {
	first, err := Do("fault.test_one", 1, func() { t.Error("the replaced function ran") })
	if err != nil {
		t.Fatal(err)
	}
	ran := false
	second, err := Do("fault.test_one", 1, func() { ran = true })
	if err != nil {
		t.Fatal(err)
	}
	first()
	pointOne.Pass()
	if !ran {
		t.Error("the later function did not run")
	}
	second()
	pointOne.Pass()
}

func TestArmingRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ spec, want string }{
		"an unknown name":              {"fault.nowhere", `unknown point "fault.nowhere"`},
		"an empty name":                {"", `unknown point ""`},
		"a count of zero":              {"fault.test_one:0", "must be a number, 1 or more"},
		"a count that is no number":    {"fault.test_one:x", "must be a number, 1 or more"},
		"an empty count":               {"fault.test_one:", "must be a number, 1 or more"},
		"one unknown name among known": {"fault.test_one,fault.nowhere", `unknown point "fault.nowhere"`},
	} {
		t.Run(name, func(t *testing.T) {
			err := Arm(tc.spec)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("Arm(%q) = %v, want an error with %q", tc.spec, err, tc.want)
			}
			pointOne.Pass() // would kill the test if anything had been armed
		})
	}
	if _, err := Do("fault.test_one", 0, func() {}); err == nil {
		t.Error("Do took a passing of 0")
	}
	if _, err := Do("fault.nowhere", 1, func() {}); err == nil {
		t.Error("Do took an unknown name")
	}
}

func TestNewRefusesBadAndTakenNames(t *testing.T) {
	for name, point := range map[string]string{
		"no package":    "one",
		"empty package": ".one",
		"empty rest":    "fault.",
		"upper case":    "fault.One",
		"two dots":      "fault.one.two",
		"taken":         "fault.test_one",
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Errorf("New(%q) did not panic", point)
				}
			}()
			New(point)
		})
	}
}

func TestEnvironmentKillsAtTheNthPassing(t *testing.T) {
	const child = "KEEP_FAULT_TEST_CHILD"
	if os.Getenv(child) != "" {
		if err := ArmFromEnv(); err != nil {
			os.Stdout.WriteString(err.Error())
			os.Exit(3)
		}
		for range 2 {
			pointTwo.Pass()
			os.Stdout.WriteString("passed\n")
		}
		os.Exit(0)
	}
	run := func(spec string) (string, error) {
		cmd := exec.Command(os.Args[0], "-test.run=^TestEnvironmentKillsAtTheNthPassing$")
		cmd.Env = append(os.Environ(), child+"=1", EnvVar+"="+spec)
		out, err := cmd.Output()
		return string(out), err
	}

	out, err := run("fault.test_two:2")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("armed for the second passing: %v, want death by SIGKILL", err)
	}
	if out != "passed\n" {
		t.Errorf("armed for the second passing: printed %q, want one passing", out)
	}
	if out, err := run(""); err != nil || out != "passed\npassed\n" {
		t.Errorf("not armed: %q, %v, want two passings", out, err)
	}
	if out, err := run("fault.nowhere"); err == nil || !strings.Contains(out, "KEEP_FAULT: fault: unknown point") {
		t.Errorf("unknown name: %q, %v, want a refusal that names the variable", out, err)
	}
}
