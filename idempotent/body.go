package idempotent

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/azconc/azconc/idempotent/internal/format"
	"github.com/azconc/azconc/pkg/azerr"
)

// excused is an error that keeps a handler from running and is not the message's fault: neither the attempt nor the
// delivery counts.
type excused struct{ err error }

func (e *excused) Error() string { return e.err.Error() }
func (e *excused) Unwrap() error { return e.err }

// resolve loads the body of a message that does not contain it. The error determines what happens to the message, as a
// handler's does.
func (d *delivery) resolve(ctx context.Context) error {
	c, p := d.c, d.e.Packed
	var err error
	switch k := c.o.ClaimCheck; {
	case p.Blob == "":
		if d.m.Body, err = p.Unpack(p.Gzip, true); err != nil {
			err = &bodyLost{err}
		}
	case k == nil:
		err = fmt.Errorf("%w: %s/%s", ErrNoClaimCheck, p.Container, p.Blob)
	case k.path != p.Container:
		err = fmt.Errorf("%w: %s/%s is not in container %s", ErrNoClaimCheck, p.Container, p.Blob, k.path)
	default:
		if d.m.Body, err = k.fetch(ctx, *p); err != nil {
			err = k.failed(*p, err)
		}
		if noSuchBlob(err) && c.o.Applied != nil {
			// A body is deleted after the effect, so the answer is final.
			switch applied, asked := c.o.Applied(ctx, d.m); {
			case asked != nil:
				err = asked
			case applied:
				return fmt.Errorf("%w: %s, whose body is gone", ErrAlreadyApplied, d.m.Key)
			}
		}
	}
	if _, lost := errors.AsType[*bodyLost](err); lost {
		return Poison(err)
	}
	if err == nil || ctx.Err() != nil { // the end of ctx is dealt with elsewhere
		return err
	}
	return &excused{err}
}

// failed marks an error of the container as not the message's fault.
func (k *ClaimCheck) failed(p format.Packed, err error) error {
	if _, lost := errors.AsType[*bodyLost](err); lost {
		return err
	}
	return &outage{err, func(ctx context.Context) error {
		_, err := k.container.NewBlobClient(p.Blob).GetProperties(ctx, nil)
		if noSuchBlob(err) || azerr.Classify(err).Code == "" && azerr.Classify(err).Status == http.StatusNotFound { // HEAD has no body, and a proxy no code
			return nil
		}
		return azerr.Clean(err)
	}}
}
