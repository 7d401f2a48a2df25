package change

import (
	"context"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/aymanbagabas/go-udiff"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/azerr"
)

// Guarded checks the version that a write is based on against conditions that the write itself cannot carry, because
// its If-Match takes their place. Together they are as strict as the headers: the version that was checked is the
// version that is replaced. Seen is that version, for the change function.
type Guarded[T any] struct {
	optimistic.Target[T]
	Op         string
	Conditions optimistic.Conditions
	Seen       *optimistic.Version[T]
}

// Unwrap returns the inner target, so that one --op-id on content and on metadata stands for two operations.
func (g *Guarded[T]) Unwrap() any { return g.Target }

func (g *Guarded[T]) Read(ctx context.Context) (*optimistic.Version[T], error) {
	v, err := g.Target.Read(ctx)
	g.Seen = v
	return v, err
}

func (g *Guarded[T]) Prepare(base *optimistic.Version[T], value T, l optimistic.Lineage, c optimistic.Conditions) (optimistic.Write, error) {
	if err := Holds(g.Op, g.Resource(), g.Conditions, base.State, base.LastModified); err != nil {
		return nil, err
	}
	return g.Target.Prepare(base, value, l, c)
}

// Holds evaluates If-None-Match and the dates. Package optimistic evaluates If-Match.
func Holds(op, resource string, c optimistic.Conditions, now optimistic.State, modified time.Time) error {
	if !now.Exists {
		return nil
	}
	conflict := &optimistic.ConflictError{Op: op, Resource: resource, Reason: azerr.Changed, Current: now.ETag}
	switch {
	case c.IfNoneMatch == azcore.ETagAny:
		conflict.Reason = azerr.Exists
	case c.IfNoneMatch != "" && c.IfNoneMatch == now.ETag:
		conflict.Base = now.ETag
	case !c.IfModifiedSince.IsZero() && !modified.After(c.IfModifiedSince):
		conflict.Base = now.ETag
	case !c.IfUnmodifiedSince.IsZero() && modified.After(c.IfUnmodifiedSince):
	default:
		return nil
	}
	return conflict
}

// Carried returns the conditions that package optimistic sends with the write.
func Carried(c optimistic.Conditions) optimistic.Conditions {
	return optimistic.Conditions{IfMatch: c.IfMatch, IfTags: c.IfTags, LeaseID: c.LeaseID}
}

// UpdateHint adds a hint to the error of an update.
func UpdateHint(err error, c optimistic.Conditions, created bool) error {
	conflict, ok := errors.AsType[*optimistic.ConflictError](err)
	switch {
	case errors.Is(err, optimistic.ErrNotFound) && !created && c.IfMatch == "" && azerr.Absent(err) == "":
		return fail.WithHint(err, "--create creates it")
	case !ok || errors.Is(err, optimistic.ErrExists):
		return err
	case c.IfMatch != "" && conflict.Current != "":
		return fail.WithHint(err, "read the current version and give its ETag, or omit --if-match to change whichever version is current")
	case conflict.Attempts > 1:
		return fail.WithHint(err, "it has many writers: try again, or give a larger --max-attempts")
	}
	return err
}

// PrintDiff prints a dry run. The diff is content, so it is not redacted.
func PrintDiff(f *cli.Factory, r cli.WriteResult, before, after []byte) error {
	from, to := "a/"+r.Resource, "b/"+r.Resource
	if r.Created {
		from = "/dev/null"
	}
	switch {
	case !utf8.Valid(before) || !utf8.Valid(after):
		if string(before) != string(after) {
			r.Diff = "binary content of " + r.Resource + " differs\n"
		}
	default:
		r.Diff = udiff.Unified(from, to, string(before), string(after))
	}
	if f.JSON() {
		return f.Print(r)
	}
	_, err := f.Content().Write([]byte(r.Diff))
	return err
}
