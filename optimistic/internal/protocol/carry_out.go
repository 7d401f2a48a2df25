package protocol

import (
	"context"
	"errors"

	"github.com/azconc/azconc/pkg/azerr"
)

// CarryOut commits a single write and makes a conflict final.
func (c *Call) CarryOut(ctx context.Context, w Change) error {
	c.Res.Attempts = 1
	etag, err := c.Commit(ctx, w)
	if err == nil {
		c.Applied(w, etag)
		return nil
	}
	conflict, ok := errors.AsType[*ConflictError](err)
	if !ok {
		return UnlessPerformed(err)
	}
	c.Res.Conflicts++
	err = c.Surrender(ctx, w, conflict)
	if gone, ok := errors.AsType[*ConflictError](err); ok && w.Remove && w.AnyBase && gone.Reason == azerr.Gone {
		return &NotFoundError{Op: c.Op, Resource: c.Resource, Err: gone.Err}
	}
	return err
}
