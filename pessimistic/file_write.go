package pessimistic

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
)

// fileWriter writes a new content into a file under a lease, request by request. Each may be sent again: under the lease
// nobody else writes, a request that is late is refused as soon as the lease is over, and all of one writer's write
// different bytes, or the same.
type fileWriter struct {
	client *file.Client
	call   *fileCall
	lease  string
	size   int64 // of the new content
	single bool  // there is one request in all

	begun   bool  // something is written, or may be
	doubt   bool  // whether the last request was carried out
	written int64 // bytes confirmed, from the beginning on
	ranges  int   // written
}

// send sends one request that changes the file.
func (w *fileWriter) send(ctx context.Context, request func(ctx context.Context) error) error {
	unclear, err := w.call.send(ctx, "write", request)
	w.begun, w.doubt = w.begun || err == nil || unclear, err != nil && unclear
	return err
}

// resize gives the file its new size. The service clears every HTTP header that is not named (REST: "Set File
// Properties"), so they are named; the hash of the content goes.
func (w *fileWriter) resize(ctx context.Context, was fileLook) error {
	return w.send(ctx, func(ctx context.Context) error {
		_, err := w.client.SetHTTPHeaders(ctx, &file.SetHTTPHeadersOptions{
			FileContentLength: &w.size, HTTPHeaders: &was.headers, LeaseAccessConditions: leasedBy(w.lease)})
		return err
	})
}

// put writes one range.
func (w *fileWriter) put(ctx context.Context, at int64, part []byte) error {
	err := w.send(ctx, func(ctx context.Context) error {
		_, err := w.client.UploadRange(ctx, at, streaming.NopCloser(bytes.NewReader(part)), &file.UploadRangeOptions{LeaseAccessConditions: leasedBy(w.lease)})
		return err
	})
	if err == nil {
		w.written, w.ranges = at+int64(len(part)), w.ranges+1
	}
	return err
}

// update writes what is new, from its old content on.
func (w *fileWriter) update(ctx context.Context, was fileLook, old, content []byte) error {
	differ := differing(old, content, int(w.call.span))
	resized := len(old) != len(content)
	w.single = len(differ) == 1 && !resized || len(differ) == 0
	if resized {
		if err := w.resize(ctx, was); err != nil {
			return err
		}
	}
	for _, at := range differ {
		w.written = at // what is before is there already
		if err := w.put(ctx, at, content[at:min(at+w.call.span, w.size)]); err != nil {
			return err
		}
	}
	return nil
}

// differing returns where the ranges begin that have to be written.
func differing(old, content []byte, span int) (at []int64) {
	for begin := 0; begin < len(content); begin += span {
		end := min(begin+span, len(content))
		if end > len(old) || !bytes.Equal(old[begin:end], content[begin:end]) {
			at = append(at, int64(begin))
		}
	}
	return at
}

// upload writes a content that is read meanwhile.
func (w *fileWriter) upload(ctx context.Context, was fileLook, content io.Reader) error {
	resized := was.size != w.size
	w.single = w.size == 0 || !resized && w.size <= w.call.span
	parts := newParts(content, w.size, w.call.span)
	for at := int64(0); ; {
		part, err := parts.next() // before anything is written, so that a content that cannot be read changes nothing
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

// outcome gives a failure its type, by what it has left behind.
func (w *fileWriter) outcome(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	refusal := w.call.refusal(ctx, "write", false, err)
	switch {
	case !w.begun:
		return refusal
	case w.single && w.doubt:
		return &UnknownError{Op: "write", Resource: w.call.path, Err: refusal}
	}
	return &TornError{Resource: w.call.path, Written: w.written, Size: w.size, Err: refusal}
}

// parts cuts a content of a given size into ranges.
type parts struct {
	from   io.Reader
	left   int64
	buffer []byte // of one range
}

func newParts(from io.Reader, size, span int64) *parts {
	return &parts{from: from, left: size, buffer: make([]byte, min(size, span))}
}

// next returns the next range, and looks beyond the last one.
func (p *parts) next() ([]byte, error) {
	part := p.buffer[:min(p.left, int64(len(p.buffer)))]
	if n, err := io.ReadFull(p.from, part); err != nil {
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return nil, fmt.Errorf("the content has ended %d bytes before its size", p.left-int64(n))
		}
		return nil, err
	}
	p.left -= int64(len(part))
	if p.left == 0 {
		var beyond [1]byte
		if n, _ := io.ReadFull(p.from, beyond[:]); n > 0 {
			return nil, errors.New("the content is longer than its size")
		}
	}
	return part, nil
}
