package optimistic

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/retry"
)

var (
	// ErrFull says that an append blob has no room: MaxSize would be passed, or the service's limit of 50,000 blocks is
	// reached. Nothing was appended; start another blob.
	ErrFull = errors.New("full")

	// ErrSealed says that an append blob is sealed: nothing was appended, and nothing ever will be.
	ErrSealed = errors.New("sealed")
)

// maxAppendBlock is what one Append Block may carry (REST: "Append Block", since version 2022-11-02).
const maxAppendBlock = 100 << 20

// AppendOptions tunes Append and AppendRecord. The zero value is the default.
type AppendOptions struct {
	// Conditions hold beyond the position, and one that fails is final. An IfNoneMatch of "*" never holds here: see Create.
	// Defaults to none.
	Conditions Conditions

	// Position is where the caller believes the blob to end, such as AppendResult.End of its last append; it saves the
	// request that asks, and a wrong belief costs a conflict. Defaults to 0: ask.
	Position int64

	// Pinned makes Position (0 too) a demand: if the blob ends elsewhere, that is a final *ConflictError. Defaults to
	// false: append wherever it ends.
	Pinned bool

	// MaxSize is how long the blob may become, in bytes; beyond it is ErrFull. Defaults to 0: no bound.
	MaxSize int64

	// Create makes the blob, with HTTPHeaders, if it is missing. Defaults to false: ErrNotFound.
	Create      bool
	HTTPHeaders *blob.HTTPHeaders

	// Unique says that no other append to this blob ever carries the same bytes, because they hold an id or a time of
	// their own. Then finding them at their position after a lost answer is proof. AppendRecord sees to it by itself.
	// Defaults to false.
	Unique bool

	// CPK and EncryptionScope are passed with every request.
	CPK             *blob.CPKInfo
	EncryptionScope *blob.CPKScopeInfo

	// Attempts bounds how often another position is tried; negative means no bound. Defaults to 64: with many appenders,
	// losing is normal.
	Attempts int

	// Elapsed bounds the time spent on conflicts; negative means no bound. Defaults to 30 s.
	Elapsed time.Duration

	// Backoff spaces the attempts after a conflict. Defaults to full jitter of 20 ms, doubling, at most 2 s.
	Backoff retry.Backoff

	Sending

	_ struct{}
}

func (o *AppendOptions) withDefaults() (AppendOptions, error) {
	var out AppendOptions
	if o != nil {
		out = *o
	}
	out.Attempts = cmp.Or(out.Attempts, 64)
	out.Elapsed = cmp.Or(out.Elapsed, 30*time.Second)
	out.Backoff = orBackoff(out.Backoff, 20*time.Millisecond, 2*time.Second)
	c := out.Conditions
	if c.IfNoneMatch == azcore.ETagAny {
		return out, errors.New(`AppendOptions.Conditions.IfNoneMatch: "*" never holds for a blob that is appended to; Create makes one`)
	}
	if err := c.validate(); err != nil {
		return out, err
	}
	if out.Position < 0 {
		return out, fmt.Errorf("AppendOptions.Position: %d is negative", out.Position)
	}
	if out.MaxSize < 0 {
		return out, fmt.Errorf("AppendOptions.MaxSize: %d is negative", out.MaxSize)
	}
	var err error
	out.Sending, err = out.Sending.withDefaults()
	return out, err
}

// AppendResult tells where an append went and what it took.
type AppendResult struct {
	Result

	Offset int64  // where the appended bytes begin
	End    int64  // where they end; the Position of the next append
	ID     string // the record's id; empty for Append
}

// Append adds data, at most 100 MiB, as one block at the end of an append blob, exactly once. Every request is
// conditional on the position at which the data is to begin, so that it cannot be carried out twice, and a blob that has
// grown meanwhile is a conflict: Append asks where it ends now and tries there.
//
// When an answer was lost and the position is taken, the bytes at the position decide. Others there: not appended, and
// never to be, for the position is past. The very same bytes: with Unique they are ours. Without it they may be those of
// another appender who had the same to say, and the outcome is ErrOutcomeUnknown, though the bytes stand there.
//
// Errors are those of Update, besides ErrFull and ErrSealed. A block that an intermediary delivers twice, without any
// sign of trouble, reads as a conflict: with Unique that is seen through, without it the data is appended again. A blob
// that is deleted and created anew while an answer is outstanding may get the data in both incarnations.
//
// Cost: 2 requests, 1 with the right Position; 2 more per conflict. It is safe for concurrent use, by many processes on
// one blob.
func Append(ctx context.Context, client *appendblob.Client, data []byte, opts *AppendOptions) (AppendResult, error) {
	return appendTo(ctx, client, "", data, opts)
}

func appendTo(ctx context.Context, client *appendblob.Client, id string, data []byte, opts *AppendOptions) (AppendResult, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return AppendResult{}, err
	}
	if len(data) == 0 || len(data) > maxAppendBlock {
		return AppendResult{}, fmt.Errorf("append: %d bytes are not 1 to %d", len(data), maxAppendBlock)
	}
	a := &appending{
		call: newCall("append", resource.Path(client.URL()), o.Sending, nil), client: client, data: data, o: o, unique: o.Unique || id != "",
	}
	at, err := a.run(ctx)
	res := AppendResult{Result: a.finish()}
	if err == nil {
		res.Offset, res.End, res.ID = at, at+int64(len(data)), id
		res.Changed = true
	}
	return res, err
}

// appending is one append under way.
type appending struct {
	*call
	client *appendblob.Client
	data   []byte
	o      AppendOptions
	unique bool

	created bool
	version azcore.ETag // of the blob when it was last looked at
	twin    bool        // the bytes are there, and may be another's
}

func (a *appending) run(ctx context.Context) (int64, error) {
	budget := retry.Budget{Attempts: a.o.Attempts, Elapsed: a.o.Elapsed, Backoff: a.o.Backoff}.Start()
	at, known := a.o.Position, a.o.Pinned || a.o.Position > 0
	for {
		if !known {
			var err error
			if at, err = a.end(ctx); err != nil {
				return 0, err
			}
		}
		if a.o.MaxSize > 0 && at+int64(len(a.data)) > a.o.MaxSize {
			return 0, a.final(ErrFull, fmt.Errorf("%d bytes at %d would pass the %d allowed", len(a.data), at, a.o.MaxSize))
		}
		a.res.Attempts++
		etag, err := a.commit(ctx, a.write(at))
		if err == nil {
			a.settle(etag)
			return at, nil
		}
		if err = a.translate(err); a.over(err) {
			return 0, err
		}
		a.res.Conflicts++
		surrender := a.o.Pinned
		if !surrender {
			if wait := budget.Next(ctx, 0); ctx.Err() != nil {
				return 0, a.fail(wait)
			} else if wait != nil {
				surrender = true
			}
		}
		known = false
		if a.unique {
			// The answer says that the position is taken. It is by us if something on the way delivered the block twice;
			// asking for the bytes there tells that and the new end at once.
			now, look := again(ctx, a.call, func(ctx context.Context) (tail, error) { return a.tail(ctx, at) })
			if look == nil && now.ours {
				a.res.Resolved++
				a.settle("")
				return at, nil
			}
			if look == nil && now.exists {
				at, known = now.end, true
			}
		}
		if surrender {
			return 0, err
		}
	}
}

// over tells whether an error ends the append: only a position that is taken is worth another try.
func (a *appending) over(err error) bool {
	conflict, ok := errors.AsType[*ConflictError](err)
	return !ok || conflict.Reason != azerr.Position && !(conflict.Reason == azerr.Gone && a.o.Create && !a.o.Pinned)
}

// settle notes the version that the append led to: what the service said, or what the blob had when the append was
// found in it, which is a later version if others have appended since.
func (a *appending) settle(etag azcore.ETag) {
	a.res.Created = a.created
	if etag = realETag(etag); etag == "" {
		etag = a.version
	}
	a.res.ETag = etag
}

// write is the append at one position. For the ambiguity protocol the position plays the version: each is taken once.
func (a *appending) write(at int64) write {
	opts := appendblob.AppendBlockOptions{
		AppendPositionAccessConditions: &appendblob.AppendPositionAccessConditions{AppendPosition: &at},
		AccessConditions:               accessConditions(a.o.Conditions),
		CPKInfo:                        a.o.CPK,
		CPKScopeInfo:                   a.o.EncryptionScope,
	}
	if a.o.MaxSize > 0 {
		opts.AppendPositionAccessConditions.MaxSize = &a.o.MaxSize
	}
	w := write{base: State{Exists: true, ETag: positionTag(at)}, id: newWriteID(a.writer)}
	w.send = func(ctx context.Context) (azcore.ETag, error) {
		CountRequest(ctx)
		allowFor(ctx, int64(len(a.data)))
		o := opts
		resp, err := a.client.AppendBlock(ctx, streaming.NopCloser(bytes.NewReader(a.data)), &o)
		return deref(resp.ETag), err
	}
	w.look = func(ctx context.Context) (State, error) { return a.look(ctx, at, w.id) }
	return w
}
