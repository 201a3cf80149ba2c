package netns

import (
	"errors"
	"os"
	"strings"
	"syscall"
)

// Check says why no namespace can be had here, nil if one can: it makes one. A transparent one has listeners on ports that
// are the system's elsewhere.
func Check(transparent bool) error {
	spec := Spec{TCP: []string{"127.0.0.1:8080"}}
	if transparent {
		spec = Spec{TCP: []string{":80", ":443", ":53"}, UDP: []string{":53"}}
	}
	pid, found, err := Start(spec, "", nil, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: &syscall.SysProcAttr{}})
	if err != nil {
		return err
	}
	found.Close()
	_, _ = syscall.Wait4(pid, nil, 0, nil) // It has nothing more to say.
	return nil
}

// listenOn begins what an Error says of a port.
const listenOn = "listen on "

// switches of the kernel forbid a namespace by a value.
var switches = []struct{ name, value, fix string }{
	{"user.max_user_namespaces", "0", "raise it"},
	{"user.max_net_namespaces", "0", "raise it"},
	{"kernel.unprivileged_userns_clone", "0", "set it to 1, or run as root"},
	{"kernel.apparmor_restrict_unprivileged_userns", "1", "give this program an AppArmor profile with \"userns,\", or run as root"},
}

// Fix says what may forbid it, and what to do; empty where nobody forbids it.
func (e *Error) Fix() string {
	if !errors.Is(e.Err, syscall.EPERM) && !errors.Is(e.Err, syscall.EACCES) && !errors.Is(e.Err, syscall.ENOSPC) {
		return ""
	}
	if strings.HasPrefix(e.What, listenOn) {
		return "SocketBindDeny= of its systemd unit or SELinux may forbid the port"
	}
	for _, s := range switches {
		value, err := os.ReadFile("/proc/sys/" + strings.ReplaceAll(s.name, ".", "/"))
		if err == nil && strings.TrimSpace(string(value)) == s.value {
			return s.name + " is " + s.value + ": " + s.fix
		}
	}
	return "seccomp may forbid it (in a container, or by RestrictNamespaces= of systemd), or an AppArmor profile without \"userns,\""
}
