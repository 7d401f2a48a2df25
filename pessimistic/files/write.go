package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"

	"github.com/azconc/azconc/pessimistic"
)

// writer writes new content into a file under a lease, a few ranges at a time. Each request may be repeated: under the
// lease nobody else writes, a late request is refused once the lease is over, and all requests of one writer write
// different bytes, or the same ones.
type writer struct {
	client *file.Client
	call   *call
	lease  string
	size   int64 // of the new content
	single bool  // the whole write is one request

	begun   bool  // something has been, or may have been, written
	doubt   bool  // whether the outcome of the last request is unknown
	written int64 // bytes confirmed, from the start of the file
	ranges  int   // ranges written

	flying []<-chan put // in the order of their offsets
	failed error        // of the first range, by offset, that was not written
}

// put is a range that was sent.
type put struct {
	at, end int64
	unclear bool
	err     error
	settle  func(refusal error) (unclear bool, err error) // see call
}

// resize sets the file's new size. The service clears every HTTP header that is not sent (REST: "Set File Properties"),
// so all are sent, except the content hash.
func (w *writer) resize(ctx context.Context, was look) error {
	unclear, err := w.call.send(ctx, "Set File Properties", func(ctx context.Context) error {
		_, err := w.client.SetHTTPHeaders(ctx, &file.SetHTTPHeadersOptions{
			FileContentLength: &w.size, HTTPHeaders: &was.headers, LeaseAccessConditions: leasedBy(w.lease)})
		return err
	})
	w.begun, w.doubt = w.begun || err == nil || unclear, err != nil && unclear
	return err
}

// put starts to write one range, or waits for it if nothing was written yet: a refusal of all then costs one request. An error
// is that of an earlier range. A range of zeros is cleared, which transfers nothing and frees its space.
func (w *writer) put(ctx context.Context, at int64, part []byte) error {
	for len(w.flying) >= w.call.many {
		w.land()
	}
	if w.failed != nil {
		return w.failed
	}
	request := func(ctx context.Context) error {
		_, err := w.client.UploadRange(ctx, at, streaming.NopCloser(bytes.NewReader(part)), &file.UploadRangeOptions{LeaseAccessConditions: leasedBy(w.lease)})
		return err
	}
	if int64(len(part)) == w.call.span && zeros(part) {
		request = func(ctx context.Context) error {
			_, err := w.client.ClearRange(ctx, file.HTTPRange{Offset: at, Count: int64(len(part))}, &file.ClearRangeOptions{LeaseAccessConditions: leasedBy(w.lease)})
			return err
		}
	}
	landed := make(chan put, 1)
	w.flying = append(w.flying, landed)
	go func() {
		p := put{at: at, end: at + int64(len(part)), settle: func(refusal error) (bool, error) { return w.call.settle(ctx, "Put Range", refusal, request) }}
		p.unclear, p.err = w.call.repeat(ctx, "Put Range", request)
		landed <- p
	}()
	if !w.begun {
		return w.finish()
	}
	return nil
}

// land waits for the first of the ranges in flight, and for SMB clients that prevent it.
func (w *writer) land() {
	p := <-w.flying[0]
	w.flying = w.flying[1:]
	if w.failed == nil {
		again, err := p.settle(p.err)
		p.unclear, p.err = p.unclear || again, err
		w.written, w.failed, w.doubt = p.at, p.err, p.err != nil && p.unclear
	}
	w.begun = w.begun || p.err == nil || p.unclear
	if p.err == nil {
		w.ranges++
		if w.failed == nil {
			w.written = p.end
		}
	}
}

// finish waits for all ranges in flight. They are not cancelled when one fails: each that is answered is one less in doubt.
func (w *writer) finish() error {
	for len(w.flying) > 0 {
		w.land()
	}
	return w.failed
}

// update writes the ranges in which content differs from the old content.
func (w *writer) update(ctx context.Context, was look, old, content []byte) error {
	differ := differing(old, content, int(w.call.span))
	resized := len(old) != len(content)
	w.single = len(differ) == 1 && !resized || len(differ) == 0
	if resized {
		if err := w.resize(ctx, was); err != nil {
			return err
		}
	}
	for _, at := range differ {
		if err := w.put(ctx, at, content[at:min(at+w.call.span, w.size)]); err != nil {
			break
		}
	}
	return w.finish()
}

// differing returns the offsets of the ranges that have to be written. Behind its old content a file that has grown is zeros.
func differing(old, content []byte, span int) (at []int64) {
	for begin := 0; begin < len(content); begin += span {
		end := min(begin+span, len(content))
		same := max(begin, min(end, len(old)))
		if !zeros(content[same:end]) || same > begin && !bytes.Equal(old[begin:same], content[begin:same]) {
			at = append(at, int64(begin))
		}
	}
	return at
}

func (w *writer) upload(ctx context.Context, was look, content io.Reader) error {
	defer func() { _ = w.finish() }() // if content panics
	err := w.stream(ctx, was, content)
	if failed := w.finish(); failed != nil {
		return failed // of an earlier range, and why the content was read no further
	}
	return err
}

func (w *writer) stream(ctx context.Context, was look, content io.Reader) error {
	resized := was.size != w.size
	w.single = w.size == 0 || !resized && w.size <= w.call.span
	parts := &parts{from: content, left: w.size}
	for at := int64(0); ; {
		part, err := parts.next(min(w.call.span, w.size)) // before the first write, so that unreadable content changes nothing
		if err != nil {
			return err
		}
		if at == 0 && resized {
			if err := w.resize(ctx, was); err != nil {
				return err
			}
		}
		grown := at >= was.size && zeros(part) // the file has grown by zeros
		if len(part) > 0 && !grown {
			if err := w.put(ctx, at, part); err != nil {
				return err
			}
		}
		if at += int64(len(part)); at >= w.size {
			return nil
		}
	}
}

// zeros reports whether a range has no other byte.
func zeros(part []byte) bool {
	return len(part) == 0 || part[0] == 0 && bytes.Equal(part[1:], part[:len(part)-1])
}

// outcome converts a failure to a typed error, by what it has left behind.
func (w *writer) outcome(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	refusal := w.call.refusal(ctx, "write", false, err)
	switch {
	case !w.begun:
		return refusal
	case w.single && w.doubt:
		return &pessimistic.UnknownError{Op: "write", Resource: w.call.path, Err: refusal}
	}
	return &TornError{Resource: w.call.path, Written: w.written, Size: w.size, Err: refusal}
}

// parts splits content of a given size into ranges.
type parts struct {
	from io.Reader
	left int64
}

// next reads the next range, and checks that the content ends after the last one. Only io.EOF is the end; io.ReadFull
// would report it as io.ErrUnexpectedEOF, which is also what a reader of a truncated gzip or of a broken connection
// returns.
func (p *parts) next(most int64) ([]byte, error) {
	part := make([]byte, min(p.left, most))
	for n := 0; n < len(part); {
		m, err := p.from.Read(part[n:])
		n += m
		p.left -= int64(m)
		switch {
		case err == io.EOF && p.left > 0:
			return nil, fmt.Errorf("the content ended %d bytes before its stated size", p.left)
		case err != nil && err != io.EOF:
			return nil, err
		}
	}
	if p.left > 0 {
		return part, nil
	}
	var beyond [1]byte
	switch n, err := io.ReadFull(p.from, beyond[:]); {
	case n > 0:
		return nil, errors.New("the content is longer than its stated size")
	case err != io.EOF:
		return nil, err
	}
	return part, nil
}
