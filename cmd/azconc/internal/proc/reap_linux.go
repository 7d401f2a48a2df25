package proc

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// waited is how long an ended child is left for its parent to reap. Only this process can reap the orphans that it
// adopted.
const waited = time.Second

// Reap reaps orphans that become children of this process until stop is called: as the first process of a container it
// gets those of everything that runs there.
func Reap() (stop func()) {
	children, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(children, syscall.SIGCHLD)
	var loop sync.WaitGroup
	loop.Go(func() {
		seen := map[id]bool{}
		var again <-chan time.Time
		for {
			select {
			case <-children:
				if again == nil {
					seen = reapOrphans(seen)
					again = time.After(waited)
				}
			case <-again:
				again = nil
				if seen = reapOrphans(seen); len(seen) > 0 {
					again = time.After(waited)
				}
			case <-done:
				return
			}
		}
	})
	return func() {
		signal.Stop(children)
		close(done)
		loop.Wait()
	}
}

// reapOrphans reaps the ended children that are already in seen, and returns the others that have ended.
func reapOrphans(seen map[id]bool) (fresh map[id]bool) {
	self := os.Getpid()
	fresh = map[id]bool{}
	all, _ := processes(func() {}) // what is missing is reaped when it is seen
	for _, p := range all {
		switch {
		case p.parent != self || !p.zombie():
		case seen[p.id()]:
			var status syscall.WaitStatus
			_, _ = syscall.Wait4(p.pid, &status, syscall.WNOHANG, nil)
		default:
			fresh[p.id()] = true
		}
	}
	return fresh
}
