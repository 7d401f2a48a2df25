package appends

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/begin"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/clock"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/wire"
)

// Log is a log of records that goes on when an append blob is full: in the blobs name/000001, name/000002 and so on of a container. Any
// number of processes may append to it and read it.
//
// They agree which blob is the last by the blobs alone. A blob is begun only after the one before it was sealed, and a sealed blob never
// changes again. So a late writer is refused, and looks for the last blob, and a reader that has read a sealed blob to its end has
// missed nothing. A record whose response was lost is resolved in its blob before the writer goes on to the next.
//
// Old blobs may be deleted, except for the last. A writer needs the rights to list, write and read (rlw in a SAS: w includes a and c).
// Without the right to read, a lost response is an unknown outcome. A Log is safe for concurrent use; it appends one record at a time, in
// the order of the calls.
type Log struct {
	client *container.Client
	name   string
	path   string
	o      LogOptions

	turn     chan struct{} // holds a value while a call appends, and guards what follows
	last     part          // the last blob, as far as is known; a number of 0 means that it has to be looked for
	finished int           // the latest blob that has refused a record because it is sealed
}

// part is one blob of a Log.
type part struct {
	number int
	end    int64
	sealed bool
	born   clock.Instant // by this machine's clock; its age is by the service's
}

// maxParts is the most blobs that a Log can have, because the service lists them by name.
const maxParts = 999_999

// LogOptions tunes a Log. The zero value is the default.
type LogOptions struct {
	// MaxSize is the largest length that a blob of the log may get, in bytes, frames of records included. A record that does not
	// fit begins the next. Defaults to 0: no bound but the service's, 50,000 records.
	MaxSize int64

	// MaxAge is the age, by the service's clocks, at which a blob gets no more records. The next record begins another one.
	// Defaults to 0: no bound.
	MaxAge time.Duration

	HTTPHeaders *blob.HTTPHeaders // of the blobs that are created

	optimistic.SendOptions

	_ struct{}
}

// LogResult describes an append to a Log: where the record is, and the cost.
type LogResult struct {
	optimistic.Result // Created: the call has begun a blob

	ID       string
	Position Position // of the record
	Next     Position // after it
}

// NewLog returns the log of this name in a container. It sends nothing.
func NewLog(client *container.Client, name string, opts *LogOptions) (*Log, error) {
	if err := sealed.NotNil("log", "client", client); err != nil {
		return nil, err
	}
	o := ptr.Value(opts)
	switch {
	case name == "" || strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") || len(name) > 1000:
		return nil, fmt.Errorf("the name of a log %q is not 1 to 1000 bytes without a slash at either end", name)
	case o.MaxSize < 0:
		return nil, fmt.Errorf("LogOptions.MaxSize: %d is negative", o.MaxSize)
	case o.MaxAge < 0:
		return nil, fmt.Errorf("LogOptions.MaxAge: %v is negative", o.MaxAge)
	}
	path := resource.Path(client.URL()) + "/" + name
	_, err := begin.Call(o.SendOptions, "log", path)
	return &Log{client: client, name: name, path: path, o: o, turn: make(chan struct{}, 1)}, err
}

// Append appends a record to the last blob of the log, exactly once, or begins the next: if MaxSize or MaxAge says so, or the service
// because the blob has 50,000 records. Conflicts with other writers are waited out until ctx ends.
//
// After an error the record was not appended, unless it is ErrOutcomeUnknown. A log that has 999,999 blobs is ErrFull.
//
// Cost: 1 request, and 2 more per conflict. 1 or 2 more for the first record, to find the last blob or to begin the first. 2
// more to begin another one, or 4 if it was the service that said that the blob is full, and 3 to find that other writers have begun one.
func (l *Log) Append(ctx context.Context, data []byte) (_ LogResult, err error) {
	id := protocol.NewWriteID()
	framed := frame(id, data)
	if most := int64(maxAppendBlock); int64(len(framed)) > most || l.o.MaxSize > 0 && int64(len(framed)) > l.o.MaxSize {
		return LogResult{}, fmt.Errorf("append %s: a record of %d bytes takes %d with its frame, which is more than a request (%d) or a blob of this log (%d) can have",
			l.path, len(data), len(framed), most, l.o.MaxSize)
	}
	call, err := begin.Call(l.o.SendOptions, "append", l.path)
	if err != nil {
		return LogResult{}, err
	}
	ctx, end := call.Start(ctx, "appends.Log.Append")
	defer end(&err)
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return LogResult{}, call.Fail(context.Cause(ctx))
	}
	var r AppendResult
	requests := 0
	for again := true; again && err == nil; requests += r.Requests {
		r, again, err = l.try(ctx, call, id, framed)
		call.Res.Attempts, call.Res.Conflicts = call.Res.Attempts+r.Attempts, call.Res.Conflicts+r.Conflicts
		call.Res.Ambiguous, call.Res.Resolved = call.Res.Ambiguous+r.Ambiguous, call.Res.Resolved+r.Resolved
	}
	call.Res.Changed, call.Res.ETag = r.Changed, r.ETag
	res := LogResult{Result: optimistic.Result(call.Finish())}
	if res.Requests += requests; err == nil {
		res.ID, res.Position, res.Next = id, Position{l.last.number, r.Offset}, Position{l.last.number, r.End}
	}
	return res, err
}

// try appends a record to the last blob. again means that it was not appended, and that there is another last blob, or will be.
func (l *Log) try(ctx context.Context, call *protocol.Call, id string, framed []byte) (r AppendResult, again bool, err error) {
	if l.last.number == 0 {
		if err := l.find(ctx, call); err != nil || l.last.number == 0 {
			return r, true, err
		}
	}
	if l.o.MaxAge > 0 && l.last.end > 0 && l.last.born.Passed() >= l.o.MaxAge {
		return r, true, l.roll(ctx, call)
	}
	r, err = appendTo(ctx, l.part(l.last.number), id, framed, &AppendOptions{
		Position: l.last.end, end: true, MaxSize: l.o.MaxSize, Attempts: -1, Elapsed: -1, SendOptions: l.o.SendOptions,
	})
	conflict, _ := errors.AsType[*optimistic.ConflictError](err)
	switch {
	case err == nil:
		l.last.end = r.End
	case errors.Is(err, optimistic.ErrOutcomeUnknown): // the record stays with its blob
	case errors.Is(err, ErrFull):
		return r, true, l.roll(ctx, call)
	case errors.Is(err, ErrSealed):
		l.finished, l.last = l.last.number, part{}
		return r, true, nil
	case errors.Is(err, optimistic.ErrNotFound), conflict != nil && conflict.Reason == azerr.Gone:
		l.last = part{}
		return r, true, nil
	}
	return r, false, err
}

// roll seals the last blob and begins the next. The seal comes first: with the next there already, a late writer could still append to
// this one, and a reader would not know when it has read it all. Sealing again is no change, so a lost response does no harm.
func (l *Log) roll(ctx context.Context, call *protocol.Call) error {
	n := l.last.number
	_, err := protocol.Again(ctx, call, func(ctx context.Context) (appendblob.SealResponse, error) {
		resp, err := wire.Request(ctx, "Append Blob Seal", func(ctx context.Context) (appendblob.SealResponse, error) {
			return l.part(n).Seal(ctx, nil)
		})
		_, err = protocol.Sent("ETag", resp.ETag, err)
		return resp, err
	})
	if err != nil && !azerr.Has(err, "BlobNotFound") {
		return call.Fail(err)
	}
	l.last = part{}
	if err != nil {
		return nil // it was deleted, as old blobs are: there are later ones
	}
	l.finished = n
	return l.begin(ctx, call, n+1)
}

// begin creates a blob. If another writer has done that, the last blob has to be looked for.
func (l *Log) begin(ctx context.Context, call *protocol.Call, n int) error {
	if n > maxParts {
		return call.Fail(fmt.Errorf("%w: it has %d blobs", ErrFull, maxParts))
	}
	a := &appending{Loop: protocol.Loop{Call: call}, client: l.part(n), o: AppendOptions{HTTPHeaders: l.o.HTTPHeaders}}
	err := a.create(ctx)
	if a.created {
		call.Res.Created, l.last = true, part{number: n, born: clock.Now()}
	}
	return err
}

// find looks for the last blob, and begins another one if that is finished, or if there is none.
func (l *Log) find(ctx context.Context, call *protocol.Call) error {
	parts, err := l.parts(ctx, call)
	if err != nil {
		return err
	}
	last := part{number: l.finished, sealed: true}
	if len(parts) > 0 && parts[len(parts)-1].number > l.finished {
		last = parts[len(parts)-1]
	}
	if last.sealed {
		return l.begin(ctx, call, last.number+1)
	}
	l.last = last
	return nil
}

// parts lists the blobs of the log in their order.
func (l *Log) parts(ctx context.Context, call *protocol.Call) (all []part, err error) {
	prefix := l.name + "/"
	opts := container.ListBlobsFlatOptions{Prefix: &prefix}
	for more := true; more; more = ptr.Value(opts.Marker) != "" {
		page, err := protocol.Again(ctx, call, func(ctx context.Context) (container.ListBlobsFlatResponse, error) {
			page, err := wire.Request(protocol.AsStored(ctx), "List Blobs", l.client.NewListBlobsFlatPager(&opts).NextPage)
			_, err = protocol.Sent("list of blobs", page.Segment, err)
			return page, err
		})
		if azerr.Classify(err).Kind == azerr.NotFound {
			return nil, &optimistic.NotFoundError{Op: call.Op, Resource: l.path, Err: azerr.Clean(err)}
		}
		if err != nil {
			return nil, call.Fail(err)
		}
		opts.Marker = page.NextMarker
		for _, item := range page.Segment.BlobItems {
			p, name := ptr.Value(item.Properties), ptr.Value(item.Name)
			if n, err := strconv.Atoi(strings.TrimPrefix(name, prefix)); err == nil && n > 0 && n <= maxParts && name == l.partName(n) {
				age := ptr.Value(page.Date).Sub(ptr.Value(p.CreationTime))
				all = append(all, part{n, ptr.Value(p.ContentLength), ptr.Value(p.IsSealed), clock.Now().Add(-age)})
			}
		}
	}
	return all, nil
}

func (l *Log) partName(n int) string         { return fmt.Sprintf("%s/%06d", l.name, n) }
func (l *Log) part(n int) *appendblob.Client { return l.client.NewAppendBlobClient(l.partName(n)) }
