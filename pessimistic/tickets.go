package pessimistic

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/wire"
)

// waitersSuffix follows the name of a lock in the name of the blob in which its waiters sign up.
const waitersSuffix = ".azconc-waiters"

// ticket is a waiter's place. The zero ticket is none.
type ticket struct {
	number int64 // from 1; 0 if there is none
	fresh  bool  // it was issued by a blob that is younger than the record: its numbers begin again
}

// rank returns how many tickets come before t. A waiter whose ticket has been passed over is not behind anybody, and neither
// is one without a ticket, where none can be had.
func (t ticket) rank(o order) int64 {
	place := t.number - 1
	switch {
	case t.number == 0:
		return 0
	case place < o.next && t.fresh:
		return place // the record still counts the tickets of the blob before
	}
	return max(place-o.next, 0)
}

// hidden reports whether the record shows neither t, which was passed over, nor another waiter: the next to come does
// not know then that anybody waits.
func (t ticket) hidden(o order) bool {
	return t.number > 0 && t.number <= o.next && !t.fresh && o.waiting() == 0
}

// ticketBlob is the append blob in which the waiters of a lock sign up. The service orders what is appended, and appends never
// conflict. It exists from the first wait on, until a holder or a garbage collection finds that nobody waits.
type ticketBlob struct {
	client *appendblob.Client
	wire   wire.Wire
}

// ticketTry bounds one request.
const ticketTry = time.Second

// ticketSize is that of a ticket, a line with the mark and the name of the waiter. Since all are equally long, the offset of a ticket
// says its number. What takes a ticket back is a line with a "-" and the mark, and so short that it hardly changes the numbers.
const ticketSize = 64

func ticketLine(mark, owner string) []byte {
	line := mark + " " + url.PathEscape(owner)
	return fmt.Appendf(nil, "%-*s\n", ticketSize-1, line[:min(len(line), ticketSize-1)])
}

// take signs up. next is the number of tickets that the record knows to have had their turn. Requests: 1, or 3 if the blob has to be
// created.
func (b ticketBlob) take(ctx context.Context, mark, owner string, next int64) (ticket, error) {
	number, err := b.append(ctx, ticketLine(mark, owner))
	if bloberror.HasCode(err, bloberror.BlobNotFound, bloberror.BlockCountExceedsLimit) {
		if err = b.create(ctx, err); err == nil {
			number, err = b.append(ctx, ticketLine(mark, owner))
		}
	}
	return ticket{number: number, fresh: number <= next}, err
}

// append returns the number of the line, if it is a ticket.
func (b ticketBlob) append(ctx context.Context, line []byte) (number int64, err error) {
	err = b.wire.Once(ctx, "Append Block", ticketTry, func(ctx context.Context) error {
		r, err := b.client.AppendBlock(ctx, streaming.NopCloser(bytes.NewReader(line)), nil)
		if err != nil {
			return err
		}
		var offset int64
		if _, err := fmt.Sscan(ptr.Value(r.BlobAppendOffset), &offset); err != nil || offset < 0 || offset/ticketSize >= mostTickets {
			return fmt.Errorf("append offset %q is not a number of bytes", ptr.Value(r.BlobAppendOffset))
		}
		number = offset/ticketSize + 1
		return nil
	})
	return number, err
}

// create creates the blob, if it does not exist, or replaces one that is full. The numbers begin again then.
func (b ticketBlob) create(ctx context.Context, why error) error {
	var access blob.ModifiedAccessConditions
	if bloberror.HasCode(why, bloberror.BlobNotFound) {
		access.IfNoneMatch = ptr.Optional(azcore.ETagAny)
	}
	err := b.wire.Once(ctx, "Put Blob", ticketTry, func(ctx context.Context) error {
		_, err := b.client.Create(ctx, &appendblob.CreateOptions{AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &access}})
		return err
	})
	if azerr.Classify(err).Kind == azerr.Conflict {
		return nil // another waiter has created it
	}
	return err
}

// waiter is one who has not taken his ticket back.
type waiter struct {
	number     int64
	mark, name string
}

// waiters are those whose numbers are greater than that of the last turn.
type waiters struct {
	all     []waiter
	next    int64       // the first that may still wait, as in an order
	issued  int64       // the last that may still wait, as in an order; next if nobody waits
	version azcore.ETag // of the blob
}

// mostRead bounds what is read at a time, to a thousand tickets.
const mostRead = 1000 * ticketSize

// read returns who has signed up and not had a turn, or who has signed up at all if the blob is younger than next. Requests: 1, or 2 if
// it is younger.
func (b ticketBlob) read(ctx context.Context, next int64) (w waiters, err error) {
	var text []byte
	from := max(next-1, 0) * ticketSize // it is shorter only if it is younger
	err = b.wire.Once(ctx, "Get Blob", ticketTry, func(ctx context.Context) error {
		r, err := b.client.DownloadStream(ctx, &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: from}})
		if err != nil {
			return err
		}
		defer func() { _ = r.Body.Close() }()
		w.version, w.issued = ptr.Value(r.ETag), (from+ptr.Value(r.ContentLength))/ticketSize
		text, err = io.ReadAll(io.LimitReader(r.Body, mostRead))
		return err
	})
	if next > 0 && bloberror.HasCode(err, bloberror.InvalidRange) {
		return b.read(ctx, 0)
	}
	at, back := 0, map[string]bool{}
	if next > 0 { // behind the line that ends there
		at = ticketSize + max(0, bytes.IndexByte(text[min(ticketSize-1, len(text)):min(2*ticketSize-1, len(text))], '\n'))
	}
	for at < len(text) {
		line, size := text[at:], ticketSize
		if line[0] == '-' {
			size = bytes.IndexByte(line, '\n') + 1
			back[string(line[1:max(size, 2)-1])] = true
		} else if len(line) >= size {
			mark, name, _ := strings.Cut(strings.TrimRight(string(line[:size]), " \n"), " ")
			if plain, err := url.PathUnescape(name); err == nil {
				name = plain
			}
			w.all = append(w.all, waiter{(from+int64(at))/ticketSize + 1, mark, name})
		}
		if size == 0 || len(line) < size {
			break
		}
		at += size
	}
	w.next = (from + int64(at)) / ticketSize
	if w.all = slices.DeleteFunc(w.all, func(one waiter) bool { return back[one.mark] }); len(w.all) > 0 {
		if w.next == w.issued {
			w.issued = w.all[len(w.all)-1].number
		}
		w.next = w.all[0].number - 1
	}
	return w, err
}

// find returns the ticket with a mark; none if there is none. Requests: those of read.
func (b ticketBlob) find(ctx context.Context, mark string, next int64) (ticket, error) {
	of, err := b.read(ctx, next)
	for _, one := range of.all {
		if one.mark == mark {
			return ticket{number: one.number, fresh: one.number <= next}, nil
		}
	}
	if azerr.Has(err, "BlobNotFound") {
		err = nil
	}
	return ticket{}, err
}

// collected is the number of tickets from which on a blob without a waiter is deleted.
const collected = 1000

// remove deletes the blob, if it has that version, which is known: nobody has signed up since. Requests: 1.
func (b ticketBlob) remove(ctx context.Context, version azcore.ETag) error {
	if version == "" {
		return errors.New("the version is not known")
	}
	return b.wire.Once(ctx, "Delete Blob", ticketTry, func(ctx context.Context) error {
		_, err := b.client.Delete(ctx, &blob.DeleteOptions{AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: &version}}})
		return err
	})
}
