package script

import "sync"

// Gates are the named gates of one upstream. The zero Gates is ready. A gate is
// shut until it is released, and stays open until it is shut.
type Gates struct {
	mu   sync.Mutex
	open map[string]chan struct{}
}

// Shut shuts every gate that the fault names.
func (g *Gates) Shut(f Fault) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, step := range f.Steps {
		if step.Hold == "" {
			continue
		}
		select {
		case <-g.channel(step.Hold):
			delete(g.open, step.Hold)
		default:
		}
	}
}

// Release opens the gate of this name for those who wait and those who come.
func (g *Gates) Release(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.channel(name)
	select {
	case <-c:
	default:
		close(c)
	}
}

// Opened returns a channel that is closed once the gate is released.
func (g *Gates) Opened(name string) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.channel(name)
}

func (g *Gates) channel(name string) chan struct{} {
	if g.open == nil {
		g.open = map[string]chan struct{}{}
	}
	if g.open[name] == nil {
		g.open[name] = make(chan struct{})
	}
	return g.open[name]
}
