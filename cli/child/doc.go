// Package child runs one command as a managed run's own process group, so that
// the whole of it can be ended.
//
// On a terminal the group is put in the foreground, as a shell does with a job:
// Ctrl-C goes to the command alone, and Ctrl-Z stops the command and then this
// process, until the shell continues both. A command whose output goes elsewhere, or which
// was started in the background, is lent the terminal when it asks for it and we are in the
// foreground; until then it waits. Ctrl-Z stops it with us. Elsewhere signals reach the command only through Signal.
//
// Stop sends SIGTERM to the group, and SIGKILL after a grace. On Linux it also
// ends processes that left the group: the command starts in a control group (cgroup v2)
// of its own where one can be made, and this process adopts the orphans of its
// children (prctl PR_SET_CHILD_SUBREAPER). Elsewhere those survive; the run's
// token is dead by then, so that the proxy refuses whatever they ask. Confinement says
// which of these holds here.
//
// On Linux the command is killed when this process ends, however that comes (prctl
// PR_SET_PDEATHSIG); what the command started isn't.
//
// # Failure
//
// A command that can't be started is a [*StartError] with a shell's code, and nothing of it
// is left. One whose end can't be learned counts as killed, never as a success. What can't
// be signalled or killed, as another user's may be, isn't waited for.
//
// # Caveats
//
// A process may run one command at a time, and start no others meanwhile: Stop
// takes every child that was not there at Start for the command's.
package child
