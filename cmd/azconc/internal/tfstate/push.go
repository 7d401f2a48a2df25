package tfstate

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
)

// ErrMoved means that another run has written the state since the run that could not store its own had read it.
var ErrMoved = errors.New("another run has changed the state since")

// Push stores a state that a run was left with, under a lock of its own, and only over the state that this run had read: a state that
// another run has written meanwhile describes resources that this one does not. The client's own push compares serials alone, which each
// refused write raises, and would remove them. already is set if the state was stored before. Errors: ErrMoved; otherwise what the answer to
// the client would have been. It must be the only use of the Session. Cost: 8 requests.
func (s *Session) Push(read, state []byte, who string) (already bool, err error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	info := Info{ID: uuid.NewString(), Operation: "azconc tf push", Who: who, Version: "azconc", Created: time.Now().UTC().Format(time.RFC3339Nano)}
	if a := s.lock(info.json()); a.status == http.StatusLocked {
		return false, errors.New("another run holds the lock")
	} else if a.status != http.StatusOK {
		return false, a.err()
	}
	defer func() {
		if a := s.unlock(s.held); err == nil && a.status != http.StatusOK {
			s.opts.Note("%s: %v", s.opts.Name, a.err()) // the write was under the lease
		}
	}()
	current := s.read()
	switch {
	case current.status != http.StatusOK && current.status != http.StatusNotFound:
		return false, current.err()
	case bytes.Equal(current.body, state):
		return true, nil
	case !bytes.Equal(current.body, read):
		return false, ErrMoved
	}
	if a := s.tryWrite(info.ID, state); a.status != http.StatusOK {
		return false, a.err()
	}
	return false, nil
}

// err returns a refusal as an error.
func (a answer) err() error { return errors.New(strings.TrimSpace(string(a.body))) }
