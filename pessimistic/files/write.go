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

// writer writes new content into a file under a lease, request by request. Each request may be repeated: under the
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
}

// send sends one request that changes the file.
func (w *writer) send(ctx context.Context, name string, request func(ctx context.Context) error) error {
	unclear, err := w.call.send(ctx, name, request)
	w.begun, w.doubt = w.begun || err == nil || unclear, err != nil && unclear
	return err
}

// resize sets the file's new size. The service clears every HTTP header that is not sent (REST: "Set File Properties"),
// so all are sent, except the content hash.
func (w *writer) resize(ctx context.Context, was look) error {
	return w.send(ctx, "Set File Properties", func(ctx context.Context) error {
		_, err := w.client.SetHTTPHeaders(ctx, &file.SetHTTPHeadersOptions{
			FileContentLength: &w.size, HTTPHeaders: &was.headers, LeaseAccessConditions: leasedBy(w.lease)})
		return err
	})
}

// put writes one range.
func (w *writer) put(ctx context.Context, at int64, part []byte) error {
	err := w.send(ctx, "Put Range", func(ctx context.Context) error {
		_, err := w.client.UploadRange(ctx, at, streaming.NopCloser(bytes.NewReader(part)), &file.UploadRangeOptions{LeaseAccessConditions: leasedBy(w.lease)})
		return err
	})
	if err == nil {
		w.written, w.ranges = at+int64(len(part)), w.ranges+1
	}
	return err
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
		w.written = at // what comes before is there already
		if err := w.put(ctx, at, content[at:min(at+w.call.span, w.size)]); err != nil {
			return err
		}
	}
	return nil
}

// differing returns the offsets of the ranges that have to be written.
func differing(old, content []byte, span int) (at []int64) {
	for begin := 0; begin < len(content); begin += span {
		end := min(begin+span, len(content))
		if end > len(old) || !bytes.Equal(old[begin:end], content[begin:end]) {
			at = append(at, int64(begin))
		}
	}
	return at
}

// upload writes content while reading it.
func (w *writer) upload(ctx context.Context, was look, content io.Reader) error {
	resized := was.size != w.size
	w.single = w.size == 0 || !resized && w.size <= w.call.span
	parts := newParts(content, w.size, w.call.span)
	for at := int64(0); ; {
		part, err := parts.next() // before the first write, so that unreadable content changes nothing
		if err != nil {
			return err
		}
		if at == 0 && resized {
			if err := w.resize(ctx, was); err != nil {
				return err
			}
		}
		if len(part) > 0 {
			if err := w.put(ctx, at, part); err != nil {
				return err
			}
		}
		if at += int64(len(part)); at >= w.size {
			return nil
		}
	}
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
	from   io.Reader
	left   int64
	buffer []byte // of one range
}

func newParts(from io.Reader, size, span int64) *parts {
	return &parts{from: from, left: size, buffer: make([]byte, min(size, span))}
}

// next returns the next range, and checks that the content ends after the last one. Only io.EOF is the end; io.ReadFull
// would report it as io.ErrUnexpectedEOF, which is also what a reader of a truncated gzip or of a broken connection
// returns.
func (p *parts) next() ([]byte, error) {
	part := p.buffer[:min(p.left, int64(len(p.buffer)))]
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
