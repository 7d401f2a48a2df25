package tfstate

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/google/uuid"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pkg/azerr"
)

// ErrMoved means that another run has written the state since the run that could not store its own had read it.
var ErrMoved = errors.New("another run has changed the state since")

// Pushed is what Push found.
type Pushed struct {
	Stored  bool   // the state is stored
	Already bool   // it was stored before
	Current []byte // the state as it was found
}

// Push stores a state that a run was left with, under a lock of its own, and only over the state that this run had read: a state that
// another run has written meanwhile describes resources that this one does not. The client's own push compares serials alone, which each
// refused write raises, and would remove them. Errors: ErrMoved, with the state as it was found; otherwise what the answer to the client
// would have been. It must be the only use of the Session. Cost: 8 requests.
func (s *Session) Push(read, state []byte, who string) (p Pushed, err error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	info := Info{ID: uuid.NewString(), Operation: "azconc tf push", Who: who, Version: "azconc", Created: time.Now().UTC().Format(time.RFC3339Nano)}
	if a := s.lock(info.json()); a.status == http.StatusLocked {
		return p, errors.New("another run holds the lock")
	} else if a.status != http.StatusOK {
		return p, a.err()
	}
	defer func() {
		if a := s.unlock(s.held); err == nil && a.status != http.StatusOK {
			s.opts.Note("%s: %v", s.opts.Name, a.err()) // the write was under the lease
		}
	}()
	current := s.read()
	if current.status != http.StatusOK && current.status != http.StatusNotFound {
		return p, current.err()
	}
	p.Current = current.body
	switch {
	case bytes.Equal(p.Current, state):
		p.Already = true
		return p, nil
	case !bytes.Equal(p.Current, read):
		return p, ErrMoved
	}
	if a := s.tryWrite(info.ID, state); a.status != http.StatusOK {
		return p, a.err()
	}
	p.Stored = true
	return p, nil
}

// err returns a refusal as an error.
func (a answer) err() error { return errors.New(strings.TrimSpace(string(a.body))) }

// Read returns a state, nil if there is none. Errors: as those of optimistic.Read. Cost: 1 request.
func Read(ctx context.Context, c *container.Client, name string) ([]byte, error) {
	v, err := optimistic.Read(ctx, blobs.NewBytes(c.NewBlockBlobClient(name)), nil)
	if errors.Is(err, optimistic.ErrNotFound) && azerr.Absent(err) == "" {
		return nil, nil
	}
	return v.Value, err
}
