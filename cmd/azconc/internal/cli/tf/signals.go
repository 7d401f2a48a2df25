package tf

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/lock"
	"github.com/azconc/azconc/cmd/azconc/internal/proc"
)

// signals decides which signals the command gets. The first INT, TERM or HUP makes Terraform stop in its own way, store its state and
// unlock; a second one makes it exit at once. TERM ends its plugins, which ignore INT, so it gets INT instead.
type signals struct {
	in  chan os.Signal
	out chan os.Signal // to the command
}

// catchSignals passes signals on until stop is called.
func catchSignals() (s *signals, stop func()) {
	s = &signals{in: make(chan os.Signal, 8), out: make(chan os.Signal, 8)}
	proc.Notify(s.in, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	passing := lock.Until(func(stopped <-chan struct{}) {
		asked := false // the command has been asked to stop
		for {
			select {
			case sig := <-s.in:
				if sig != os.Interrupt { // which may come from a key that has reached the command too: then proc does not pass it on
					if asked {
						continue
					}
					sig = proc.Sent(syscall.SIGINT)
				}
				asked = true
				select {
				case s.out <- sig:
				default: // the command does not exist yet, or does not any more
				}
			case <-stopped:
				return
			}
		}
	})
	return s, func() {
		signal.Stop(s.in)
		passing()
	}
}

// interrupt asks the command to stop, unless that has been done.
func (s *signals) interrupt() {
	select {
	case s.in <- proc.Sent(syscall.SIGINT):
	default: // it is full of what asks for that
	}
}
