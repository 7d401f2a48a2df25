package appends

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/anyblob"
	"github.com/azconc/azconc/optimistic/internal/begin"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

var (
	// ErrFull means that an append blob has no room: its length would exceed MaxSize, or it has the service's limit of
	// 50,000 blocks. Nothing was appended; a Log goes on in another blob.
	ErrFull = errors.New("full")

	// ErrSealed means that an append blob is sealed: nothing was appended, and nothing can be.
	ErrSealed = errors.New("sealed")
)

// maxAppendBlock is the most that one Append Block can send (REST: "Append Block", since version 2022-11-02).
const maxAppendBlock = 100 << 20

// AppendOptions tunes Append and AppendRecord. The zero value is the default.
type AppendOptions struct {
	// Conditions are checked in addition to the position. If one fails, the error is final. An IfNoneMatch of "*" is
	// refused: see Create. Defaults to none.
	Conditions optimistic.Conditions

	// Position is where the caller expects the blob to end, such as AppendResult.End of the last append. A right
	// Position saves the request that asks where the blob ends; a wrong one costs a conflict. Defaults to 0: ask.
	Position int64

	// Pinned requires the blob to end at Position, even if that is 0: if it ends elsewhere, the error is a
	// *ConflictError. Defaults to false: append wherever the blob ends.
	Pinned bool

	// MaxSize is the largest length that the blob may get, in bytes. An append beyond it fails with ErrFull. Defaults
	// to 0: no bound.
	MaxSize int64

	// Create creates the blob, with HTTPHeaders, if it does not exist. Defaults to false: ErrNotFound.
	Create      bool
	HTTPHeaders *blob.HTTPHeaders

	// Unique says that no other append to this blob has the same bytes, for example because they contain an id. Then
	// finding the bytes at their position after a lost response proves that they were appended. AppendRecord always
	// sets it. Defaults to false.
	Unique bool

	// Attempts bounds how many positions are tried; negative means no bound. Defaults to 64, because with many
	// appenders conflicts are normal.
	Attempts int

	// Elapsed bounds the time spent on conflicts; negative means no bound. Defaults to 30 s.
	Elapsed time.Duration

	optimistic.SendOptions

	end bool // Position is where the blob ends, even if that is 0, as far as a Log knows

	_ struct{}
}

// expects reports whether the caller has named a position.
func (o AppendOptions) expects() bool { return o.Pinned || o.Position > 0 || o.end }

func (o *AppendOptions) withDefaults() (AppendOptions, error) {
	out := ptr.Value(o)
	out.Attempts = cmp.Or(out.Attempts, 64)
	c := out.Conditions
	if c.IfNoneMatch == azcore.ETagAny {
		return out, errors.New(`AppendOptions.Conditions.IfNoneMatch: "*" never holds for a blob that is appended to; Create makes one`)
	}
	if err := c.Validate(); err != nil {
		return out, err
	}
	if out.Position < 0 {
		return out, fmt.Errorf("AppendOptions.Position: %d is negative", out.Position)
	}
	if out.MaxSize < 0 {
		return out, fmt.Errorf("AppendOptions.MaxSize: %d is negative", out.MaxSize)
	}
	return out, nil
}

// AppendResult describes an append: the position of the data, and the cost.
type AppendResult struct {
	optimistic.Result

	Offset int64  // where the appended bytes begin
	End    int64  // where they end: the Position of the next append
	ID     string // the record's id; empty for Append
}

// Append appends data, at most 100 MiB, as one block to an append blob, exactly once. Every request is conditional on
// the position at which the data begins, so it cannot be carried out twice. If the blob has grown meanwhile, that is a
// conflict: Append asks where the blob ends now and tries that position.
//
// If a response is lost and the position is taken, the bytes at the position decide. Other bytes prove that the data
// was not appended and never will be, because the position is taken. The same bytes are a proof only with Unique.
// Without Unique another appender may have written them, and the error is ErrOutcomeUnknown.
//
// Errors are those of Update, ErrFull and ErrSealed. A block that an intermediary silently delivers twice looks like a
// conflict: with Unique Append recognizes it, without Unique it appends the data again. If a blob is deleted and
// created again while a response is outstanding, both may get the data.
//
// A caller that may append and not read, such as one with a SAS that grants a alone, gives up the condition: the block is appended
// wherever the blob ends, and sent once. If its response is lost, the error is ErrOutcomeUnknown.
//
// Cost: 2 requests, 1 with the right Position; 2 more per conflict. Append is safe for concurrent use, by any number of
// processes on one blob.
func Append(ctx context.Context, client *appendblob.Client, data []byte, opts *AppendOptions) (AppendResult, error) {
	return appendTo(ctx, client, "", data, opts)
}

func appendTo(ctx context.Context, client *appendblob.Client, id string, data []byte, opts *AppendOptions) (_ AppendResult, err error) {
	o, err := opts.withDefaults()
	if err != nil {
		return AppendResult{}, err
	}
	if len(data) == 0 || len(data) > maxAppendBlock {
		return AppendResult{}, fmt.Errorf("append: %d bytes are not 1 to %d", len(data), maxAppendBlock)
	}
	record := ""
	if id != "" {
		record = "Record"
	}
	ctx, call, end, err := begin.On(ctx, o.SendOptions, "appends.Append"+record, "append", client)
	if err != nil {
		return AppendResult{}, err
	}
	defer end(&err)
	a := &appending{
		Loop:   protocol.Loop{Call: call, Budget: protocol.ConflictBudget(o.Attempts, o.Elapsed, retry.Backoff{Base: 20 * time.Millisecond})},
		client: client, data: data, o: o, unique: o.Unique || id != "", at: o.Position, known: o.expects(),
	}
	a.Next, a.Refused, a.Surrender = a.next, a.refused, a.surrender
	err = a.Run(ctx)
	if a.sent && (errors.Is(err, ErrFull) || errors.Is(err, ErrSealed)) {
		// It may be the response to a second delivery, by an intermediary, of a block that was the last one that the blob took.
		if landed, unread := a.landed(ctx, false); landed || unread != nil {
			err = unread
		}
	}
	res := AppendResult{Result: optimistic.Result(a.Finish())}
	if err == nil {
		res.Offset, res.End, res.ID = a.at, a.at+int64(len(data)), id
		res.Changed = true
	}
	return res, err
}

// appending is one append in progress.
type appending struct {
	protocol.Loop
	client *appendblob.Client
	data   []byte
	o      AppendOptions
	unique bool

	blind   bool  // the blob may not be read, so the append has no position to be conditional on, and is sent once
	at      int64 // the position
	known   bool  // and whether it is the end, as far as is known
	full    bool  // the service has said that the blob takes no more blocks
	sent    bool  // the latest round has sent the append
	created bool
	version azcore.ETag // of the blob at the latest look
	twin    bool        // the bytes are there, but another appender may have written them
}

// next finds the position, and returns the append at it.
func (a *appending) next(ctx context.Context, open *protocol.Refusal) (*protocol.Change, error) {
	a.sent = false
	if open != nil {
		a.known = false
		if landed, err := a.landed(ctx, true); landed || err != nil {
			return nil, err
		}
	}
	if !a.known {
		var err error
		a.at, err = a.end(ctx)
		if a.blind = anyblob.Unreadable(err); a.blind {
			err = nil
			if a.o.Create {
				err = a.create(ctx)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	if a.o.MaxSize > 0 && a.at+int64(len(a.data)) > a.o.MaxSize {
		return nil, a.final(ErrFull, fmt.Errorf("%d bytes at %d would pass the %d allowed", len(a.data), a.at, a.o.MaxSize))
	}
	a.Res.Attempts++
	w := a.write(a.at)
	return &w, nil
}

func (a *appending) refused(w protocol.Change, err error) (open *protocol.Refusal, again bool, cause error) {
	if err = a.translate(err); a.over(err) {
		return nil, false, err
	}
	conflict, _ := errors.AsType[*optimistic.ConflictError](err)
	return &protocol.Refusal{Change: w, Conflict: conflict}, !a.o.Pinned, err
}

func (a *appending) surrender(ctx context.Context, open *protocol.Refusal) error {
	if landed, err := a.landed(ctx, true); landed || err != nil {
		return err
	}
	return open.Conflict
}

// landed reports whether the position is taken by our own block, which an intermediary may have delivered twice. One read
// of the bytes there shows that, and the new end as well, for which it asks if the blob ends there. It proves nothing if others may append
// the same bytes, or without the right to read.
func (a *appending) landed(ctx context.Context, goesOn bool) (bool, error) {
	if !a.unique {
		return false, nil
	}
	now, err := protocol.Again(ctx, a.Call, func(ctx context.Context) (tail, error) { return a.tail(ctx, a.at, goesOn) })
	switch {
	case anyblob.Unreadable(err), azerr.Has(err, "InvalidRange"):
	case err != nil:
		return false, a.Unknown(a.write(a.at), "what is at its position could not be read", err)
	case now.ours:
		a.Resolved(ctx)
		a.settle("")
		return true, nil
	case now.exists:
		a.at, a.known = now.end, true
	}
	return false, nil
}

// over reports whether an error ends the append. Only a taken position is worth another attempt.
func (a *appending) over(err error) bool {
	conflict, ok := errors.AsType[*optimistic.ConflictError](err)
	return !ok || conflict.Reason != azerr.Position && !(conflict.Reason == azerr.Gone && a.o.Create && !a.o.Pinned)
}

// settle records the version after the append: the one in the response, or the blob's if a look found the data. The
// latter is a later version if others have appended since.
func (a *appending) settle(etag azcore.ETag) {
	a.Res.Created, a.Res.ETag = a.created, cmp.Or(etag, a.version)
}

// write returns the append at one position. The position takes the place of the version, because each is taken only
// once.
func (a *appending) write(at int64) protocol.Change {
	opts := appendblob.AppendBlockOptions{
		AppendPositionAccessConditions: &appendblob.AppendPositionAccessConditions{AppendPosition: &at, MaxSize: ptr.Optional(a.o.MaxSize)},
		AccessConditions:               anyblob.AccessConditions(a.o.Conditions),
	}
	w := protocol.Change{Base: protocol.State{Exists: true, ETag: positionTag(at)}}
	if a.blind {
		opts.AppendPositionAccessConditions.AppendPosition = nil
		w.Base = protocol.State{} // it is not repeated after a lost response, as a create is not
	}
	w.Won = a.settle
	w.Send = func(ctx context.Context) (azcore.ETag, error) {
		protocol.AllowFor(ctx, int64(len(a.data)))
		o := opts
		a.sent = true
		resp, err := wire.Request(ctx, "Append Block", func(ctx context.Context) (appendblob.AppendBlockResponse, error) {
			return a.client.AppendBlock(ctx, anyblob.Lend(a.data), &o)
		})
		a.full = azerr.Has(err, "BlockCountExceedsLimit")
		if a.blind {
			var offset string
			offset, err = protocol.Sent("x-ms-blob-append-offset", resp.BlobAppendOffset, err)
			a.at, _ = strconv.ParseInt(offset, 10, 64)
		}
		return ptr.Value(resp.ETag), err
	}
	w.Look = func(ctx context.Context) (protocol.State, error) { return a.look(ctx, at) }
	return w
}
