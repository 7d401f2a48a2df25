package tf

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/azconc/azconc/cmd/azconc/internal/proc"
)

// signals decides which signals the command gets. The first INT, TERM or HUP makes Terraform stop in its own way, store its state and
// unlock; a second one makes it exit at once. TERM ends its plugins, which ignore INT, so it gets INT instead.
type signals struct {
	in    chan os.Signal
	out   chan os.Signal // to the command
	done  chan struct{}
	ended chan struct{}
	once  sync.Mutex
	asked bool // guarded by once: the command has been asked to stop
}

// catchSignals begins to pass signals on. Those that azconc was started to ignore stay ignored.
func catchSignals() *signals {
	s := &signals{in: make(chan os.Signal, 8), out: make(chan os.Signal, 8), done: make(chan struct{}), ended: make(chan struct{})}
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(sig) {
			signal.Notify(s.in, sig)
		}
	}
	go func() {
		defer close(s.ended)
		for {
			select {
			case sig := <-s.in:
				if sig == os.Interrupt {
					s.typed()
				} else {
					s.interrupt()
				}
			case <-s.done:
				return
			}
		}
	}()
	return s
}

// typed passes an INT on, which may come from a key that has reached the command too: then proc does not pass it on.
func (s *signals) typed() {
	s.once.Lock()
	defer s.once.Unlock()
	s.asked = true
	s.send(syscall.SIGINT)
}

// interrupt asks the command to stop, unless that has been done.
func (s *signals) interrupt() {
	s.once.Lock()
	defer s.once.Unlock()
	if !s.asked {
		s.asked = true
		s.send(proc.Sent(syscall.SIGINT))
	}
}

// send does not wait: out is full only if the command does not exist yet, or does not any more.
func (s *signals) send(sig os.Signal) {
	select {
	case s.out <- sig:
	default:
	}
}

func (s *signals) stop() {
	signal.Stop(s.in)
	close(s.done)
	<-s.ended
}
