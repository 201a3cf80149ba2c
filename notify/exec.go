package notify

import (
	"context"
	"os"

	"keep-proxy/internal/program"
)

// Exec runs a command for each message, with the message as JSON on its standard input.
type Exec struct {
	name    string
	command []string
}

// NewExec makes a destination. The command runs with PATH and HOME of this process, and KEEP_NOTIFY_TYPE,
// KEEP_NOTIFY_ID and KEEP_NOTIFY_MUTATION. No other variable reaches it, since some are secrets. It is killed after
// Timeout. What it writes is dropped. What it leaves running when it exits with 0 continues: that may send the message.
func NewExec(name string, command []string) *Exec { return &Exec{name: name, command: command} }

// Name implements Destination.
func (e *Exec) Name() string { return e.name }

// Deliver implements Destination.
func (e *Exec) Deliver(ctx context.Context, m Message, body []byte) error {
	s := program.Spec{Args: e.command, Stdin: append(body, '\n'), Timeout: Timeout, Unheard: true}
	for _, name := range []string{"PATH", "HOME"} {
		if value, ok := os.LookupEnv(name); ok {
			s.Env = append(s.Env, name+"="+value)
		}
	}
	s.Env = append(s.Env, "KEEP_NOTIFY_TYPE="+m.Type, "KEEP_NOTIFY_ID="+m.ID, "KEEP_NOTIFY_MUTATION="+m.Data.Mutation)
	_, err := program.Run(ctx, s)
	return err
}
