package appends

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/begin"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
)

// Position is a place in a Log, between two records. The zero value is the beginning.
type Position struct {
	Blob   int   // the number of the blob, from 1 on; 0 for the beginning of the log
	Offset int64 // in the blob
}

// String returns the form that UnmarshalText reads: 000002:1234.
func (p Position) String() string { return fmt.Sprintf("%06d:%d", p.Blob, p.Offset) }

// MarshalText implements encoding.TextMarshaler.
func (p Position) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Position) UnmarshalText(text []byte) error {
	var q Position
	_, err := fmt.Sscanf(string(text), "%d:%d", &q.Blob, &q.Offset)
	if err != nil || q.String() != string(text) || q.check() != nil {
		return fmt.Errorf("%q is not a position in a log, such as 000002:1234", text)
	}
	*p = q
	return nil
}

func (p Position) check() error {
	if p.Blob < 0 || p.Blob > maxParts || p.Offset < 0 || p.Blob == 0 && p.Offset > 0 {
		return fmt.Errorf("there is no position %s: blobs are numbered from 1 to %d, and offsets are not negative", p, maxParts)
	}
	return nil
}

// LogRecord is one record of a Log.
type LogRecord struct {
	ID       string // LogResult.ID of its append
	Data     []byte // the caller owns it
	Position Position
	Next     Position // after it: reading from there goes on with the next record
}

// RecordsOptions tunes Log.Records. The zero value is the default.
type RecordsOptions struct {
	// Follow waits for more records at the end of the log, and for a log that does not exist yet, until ctx ends. Defaults to
	// ending there.
	Follow bool

	// Poll is how often Follow asks for more, with 1 request. Defaults to 1 s.
	Poll time.Duration

	_ struct{}
}

// Records reads the records of the log from a position on: each once, and each writer's in its order. Reading that goes on later, from
// the Next of the last record, misses none and repeats none.
//
// From the zero Position on, reading begins with the first blob that exists. If the blob of a position does not exist any more, or
// the log does not exist at all, the error is ErrNotFound. The sequence ends with the first error; that is the cause of ctx if ctx
// ends.
//
// Cost: 1 request for each 8 MiB, at least 1 for each blob; 1 for the beginning of the log; and 1 for each Poll.
func (l *Log) Records(ctx context.Context, from Position, opts *RecordsOptions) iter.Seq2[LogRecord, error] {
	return func(yield func(LogRecord, error) bool) {
		if err := l.read(ctx, from, ptr.Value(opts), yield); err != nil {
			yield(LogRecord{}, err)
		}
	}
}

// reading is one call of Records.
type reading struct {
	*protocol.Call
	l      *Log
	o      RecordsOptions
	at     Position
	coming bool // the blob of at may not have been begun yet
	yield  func(LogRecord, error) bool
}

func (l *Log) read(ctx context.Context, from Position, o RecordsOptions, yield func(LogRecord, error) bool) (err error) {
	if o.Poll < 0 {
		return fmt.Errorf("RecordsOptions.Poll: %v is negative", o.Poll)
	}
	if err := from.check(); err != nil {
		return err
	}
	call, err := begin.Call(l.o.SendOptions, "read", l.path)
	if err != nil {
		return err
	}
	ctx, end := call.Start(ctx, "appends.Log.Records")
	defer end(&err)
	r := reading{Call: call, l: l, o: o, at: from, coming: from.Blob == 0, yield: yield}
	for {
		more, err := r.part(ctx)
		switch {
		case errors.Is(err, errStopped):
			return nil
		case err != nil || !more && !o.Follow:
			return err
		case !more:
			if err := retry.Sleep(ctx, cmp.Or(o.Poll, time.Second)); err != nil {
				return r.Fail(err)
			}
		}
	}
}

// errStopped means that the caller wants no more records.
var errStopped = errors.New("stopped")

// part reads what there is of one blob. more means that the blob is finished, and that there is another one, or will be.
func (r *reading) part(ctx context.Context) (more bool, err error) {
	if r.at.Blob == 0 {
		return r.missing(ctx)
	}
	var got blobs.DownloadResult
	var download sync.WaitGroup
	content, to := io.Pipe()
	client, o := r.l.part(r.at.Blob).BlobClient(), blobs.DownloadOptions{Offset: r.at.Offset, SendOptions: r.l.o.SendOptions}
	download.Go(func() {
		var err error
		got, err = blobs.Download(ctx, client, to, &o)
		to.CloseWithError(err)
	})
	defer download.Wait()
	defer func() { _ = content.Close() }()
	for in := bufio.NewReader(content); ; {
		record, size, err := readRecord(in)
		switch at := r.at; {
		case ended(err) && got.Sealed:
			r.at, r.coming = Position{Blob: at.Blob + 1}, true
			return true, nil
		case ended(err):
			return false, nil
		case errors.Is(err, optimistic.ErrNotFound):
			return r.missing(ctx)
		case err != nil:
			return false, r.Fail(fmt.Errorf("from %s on: %w", at, err))
		default:
			r.at.Offset += size
			if !r.yield(LogRecord{record.ID, record.Data, at, r.at}, nil) {
				return false, errStopped
			}
		}
	}
}

// missing decides what follows if the blob does not exist: the log goes on elsewhere, or the blob is still to come.
func (r *reading) missing(ctx context.Context) (more bool, err error) {
	parts, err := r.l.parts(ctx, r.Call)
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(parts, func(p part) bool { return p.number >= r.at.Blob })
	switch {
	case i < 0 && r.coming && (r.at.Blob > 0 || r.o.Follow):
		return false, nil
	case i < 0 && r.at.Blob == 0:
		return false, r.Fail(fmt.Errorf("%w: no blob of such a log exists", optimistic.ErrNotFound))
	case i < 0:
		return false, r.Fail(fmt.Errorf("%w: the log has no blob at or after %s", optimistic.ErrNotFound, r.at))
	case r.at.Blob == 0 || r.at.Blob == parts[i].number:
		r.at.Blob = parts[i].number
		return true, nil
	}
	return false, r.Fail(fmt.Errorf("%w: the blob of %s was deleted, and the log goes on at %s", optimistic.ErrNotFound, r.at, Position{Blob: parts[i].number}))
}
