package samba

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
)

const maxRange = 4 << 20

// serve carries out an operation on a file.
func (b *Bridge) serve(w http.ResponseWriter, r *request) error {
	l := b.leases[r.path]
	if l == nil {
		l = &fileLease{}
		b.leases[r.path] = l
	}
	switch r.op {
	case opLease:
		return b.lease(w, r, l)
	case opHandles:
		return b.listHandles(w, r)
	case opCloseHandles:
		return b.closeHandles(w, r)
	}
	write := b.opens[r.op].Access&(AccessWrite|AccessDelete) != 0
	if err := l.check(r.in.Get("x-ms-lease-id"), write); err != nil {
		return err
	}
	if write && l.held != nil {
		return b.underLease(w, r, l)
	}
	err := b.operate(w, r)
	if err == nil && b.opens[r.op].Access&AccessWrite != 0 {
		l.forgetIfOver()
	}
	return err
}

// underLease carries out a write of the lease's holder. The lease is an open that excludes writers, so it is closed
// during the write. An SMB client that opens the file meanwhile breaks the lease, because it got an access that the
// lease excludes.
func (b *Bridge) underLease(w http.ResponseWriter, r *request, l *fileLease) error {
	if err := l.letGo(); err != nil {
		return err
	}
	err := b.operate(w, r)
	if err == nil && r.op == opDelete {
		return nil
	}
	if e := l.hold(b, r.path); err == nil && !errors.Is(e, StatusSharingViolation) {
		err = e
	}
	return err
}

func (b *Bridge) operate(w http.ResponseWriter, r *request) error {
	f, err := b.client.Create(r.path, b.opens[r.op])
	if err != nil {
		return b.whyNot(r, err)
	}
	status, body, err := b.with(f, r)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	switch {
	case r.op == opDelete:
		delete(b.leases, r.path)
		delete(b.notes, r.path)
	case b.opens[r.op].Access&AccessWrite != 0:
		b.writes[r.path]++
	}
	r.out.Set("ETag", fmt.Sprintf(`"0x%X%04X"`, f.Changed.UnixNano(), b.writes[r.path]))
	r.out.Set("Last-Modified", f.Changed.Format(http.TimeFormat))
	w.WriteHeader(status)
	_, err = w.Write(body)
	return err
}

// whyNot distinguishes the read-only attribute from a lack of rights; SMB reports both as access denied.
func (b *Bridge) whyNot(r *request, err error) error {
	if !errors.Is(err, StatusAccessDenied) {
		return err
	}
	f, e := b.client.Create(r.path, b.opens[opGetProperties])
	if e != nil {
		return err
	}
	if e := f.Close(); e == nil && f.ReadOnly {
		return errReadOnly
	}
	return err
}

// with carries out the rest of the operation on the open file.
func (b *Bridge) with(f *File, r *request) (status int, body []byte, err error) {
	switch r.op {
	case opCreate:
		size, err := r.integer("x-ms-content-length")
		if err != nil {
			return 0, nil, err
		}
		b.notes[r.path] = metadataOf(r.in)
		return http.StatusCreated, nil, f.Resize(size)
	case opGet:
		return b.get(f, r)
	case opGetProperties, opGetMetadata:
		b.describe(f, r)
		r.out.Set("Content-Length", strconv.FormatInt(f.Size, 10))
		return http.StatusOK, nil, nil
	case opSetMetadata:
		b.notes[r.path] = metadataOf(r.in)
		return http.StatusOK, nil, nil
	case opSetProperties:
		if r.in.Get("x-ms-content-length") == "" {
			return http.StatusOK, nil, nil
		}
		size, err := r.integer("x-ms-content-length")
		if err != nil {
			return 0, nil, err
		}
		return http.StatusOK, nil, f.Resize(size)
	case opPutRange:
		return http.StatusCreated, nil, putRange(f, r)
	case opListRanges:
		r.out.Set("x-ms-content-length", strconv.FormatInt(f.Size, 10))
		r.out.Set("Content-Type", "application/xml")
		body, err := ranges(f.Size)
		return http.StatusOK, body, err
	case opDelete:
		return http.StatusAccepted, nil, b.remove(f, r)
	}
	return 0, nil, errNotImplemented
}

// remove marks the file; the close that follows deletes it. Samba admits opens for attributes alone in any case, and
// the deletion would wait for them, whereas the service refuses it for any handle.
func (b *Bridge) remove(f *File, r *request) error {
	if b.countsHandles {
		others, err := b.handles(r)
		if err != nil {
			return err
		}
		if len(others) > 0 {
			return errSharing
		}
	}
	return f.MarkDeleted(true)
}

// ranges returns the whole file as one range: locks do not depend on the allocation.
func ranges(size int64) ([]byte, error) {
	type pair struct{ Start, End int64 }
	var out struct {
		XMLName xml.Name `xml:"Ranges"`
		Range   []pair
	}
	if size > 0 {
		out.Range = []pair{{0, size - 1}}
	}
	return xml.Marshal(out)
}

func (b *Bridge) describe(f *File, r *request) {
	r.out.Set("x-ms-type", "File")
	r.out.Set("Content-Type", "application/octet-stream")
	for name, value := range b.notes[r.path] {
		r.out.Set("x-ms-meta-"+name, value)
	}
	b.leases[r.path].describe(r.out)
}

func (b *Bridge) get(f *File, r *request) (int, []byte, error) {
	first, n, status := int64(0), f.Size, http.StatusOK
	if header := r.rangeHeader(); header != "" {
		last, err := int64(0), error(nil)
		if first, last, err = parseRange(header, f.Size); err != nil {
			return 0, nil, err
		}
		n, status = last-first+1, http.StatusPartialContent
		r.out.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, last, f.Size))
	}
	data, err := f.ReadAt(first, int(n))
	b.describe(f, r)
	r.out.Set("Content-Length", strconv.Itoa(len(data)))
	return status, data, err
}

func putRange(f *File, r *request) error {
	var first, last int64
	if n, err := fmt.Sscanf(r.rangeHeader(), "bytes=%d-%d", &first, &last); n != 2 || err != nil || first < 0 || last < first || last >= f.Size {
		return errInvalidRange
	}
	if last-first >= maxRange {
		return errInvalidHeader
	}
	data := make([]byte, last-first+1)
	if strings.EqualFold(r.in.Get("x-ms-write"), "update") {
		if _, err := io.ReadFull(r.Body, data); err != nil {
			return errInvalidHeader
		}
	}
	return f.WriteAt(first, data)
}

func (r *request) rangeHeader() string {
	if v := r.in.Get("x-ms-range"); v != "" {
		return v
	}
	return r.in.Get("Range")
}

func parseRange(header string, size int64) (first, last int64, err error) {
	from, to, _ := strings.Cut(strings.TrimPrefix(header, "bytes="), "-")
	if first, err = strconv.ParseInt(from, 10, 64); err != nil || first < 0 || first >= size {
		return 0, 0, errInvalidRange
	}
	if to == "" {
		return first, size - 1, nil
	}
	if last, err = strconv.ParseInt(to, 10, 64); err != nil || last < first {
		return 0, 0, errInvalidRange
	}
	return first, min(last, size-1), nil
}

func metadataOf(h http.Header) map[string]string {
	const prefix = "X-Ms-Meta-"
	out := map[string]string{}
	for name := range maps.Keys(h) {
		if canonical := http.CanonicalHeaderKey(name); strings.HasPrefix(canonical, prefix) {
			out[strings.ToLower(canonical[len(prefix):])] = strings.Join(h[name], ",")
		}
	}
	return out
}
