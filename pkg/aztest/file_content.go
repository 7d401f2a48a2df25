package aztest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/azconc/azconc/pkg/aztest/internal/pages"
)

func (s *Service) touchFile(f *fileState) {
	f.etag, f.lastModified = s.newETag(), now()
	f.lease.forgetIfOver()
}

// writtenFile is touchFile for content.
func (s *Service) writtenFile(f *fileState) {
	s.touchFile(f)
	f.lastWrite = time.Now()
}

// routeOneFile carries out an operation on a file. The service has no conditions on files.
func (s *Service) routeOneFile(r *request, sh *shareState) *answer {
	f, comp := sh.files[r.blob], r.query.Get("comp")
	write := r.method == http.MethodPut || r.method == http.MethodDelete
	if f == nil && (r.method != http.MethodPut || comp != "") {
		return sh.notThere(r.blob)
	}
	switch comp {
	case "lease":
		return f.leaseOperation(r)
	}
	if f != nil {
		if a := f.lease.check(r, "File", write); a != nil {
			return a
		}
		content := comp == "" && r.method == http.MethodGet
		if a := f.sharing(content, write, comp == "" && r.method == http.MethodDelete); a != nil {
			return a
		}
		if f.readOnly && write && comp != "properties" {
			return fail(http.StatusPreconditionFailed, "ReadOnlyAttribute", "The specified resource is read-only and cannot be modified at this time.")
		}
		if a := f.rangeLocked(r, content); a != nil {
			return a
		}
	}
	switch {
	case comp == "" && r.method == http.MethodPut:
		return s.createFile(r, sh, f)
	case comp == "" && r.method == http.MethodDelete:
		delete(sh.files, r.blob)
		return ok(http.StatusAccepted)
	case comp == "" && r.method == http.MethodGet:
		return f.get(r)
	case comp == "metadata" && !write:
		return ok(http.StatusOK).version(f.etag, f.lastModified).describing(f.metadata)
	case comp == "":
		return f.describe(ok(http.StatusOK), f.content.Size)
	case comp == "metadata":
		metadata, a := metadataOf(r)
		if a != nil {
			return a
		}
		f.metadata = metadata
	case comp == "properties":
		if size := r.header.Get("X-Ms-Content-Length"); size != "" {
			n, err := strconv.ParseInt(size, 10, 64)
			if err != nil || n < 0 || n > maxFile {
				return invalidHeader("x-ms-content-length", size)
			}
			f.content.Resize(n)
			s.writtenFile(f)
		}
		if attributes := r.header.Get("X-Ms-File-Attributes"); attributes != "" && attributes != "preserve" {
			f.readOnly = strings.Contains(attributes, "ReadOnly")
		}
		f.headers = fileHeaders(r) // what is not named is cleared, also by a mere change of size (REST: "Set File Properties")
	case comp == "range":
		return s.putRange(r, f)
	default:
		return notImplemented()
	}
	s.touchFile(f)
	if comp == "properties" {
		return f.written(ok(http.StatusOK))
	}
	return ok(http.StatusOK).version(f.etag, f.lastModified)
}

// fileHeaders returns the HTTP headers that a request sets on a file.
func fileHeaders(r *request) map[string]string {
	headers := map[string]string{}
	for _, name := range []string{"Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language", "Content-Md5", "Content-Type"} {
		if value := r.header.Get("X-Ms-" + name); value != "" {
			headers[name] = value
		}
	}
	return headers
}

// newFileID returns an id that no file has had before, not even one of the same name.
func (s *Service) newFileID() string {
	s.etags++
	return strconv.FormatUint(1<<62+s.etags, 10)
}

const (
	maxFile = 4 << 40 // (Azure Files: "Scalability targets")
	maxRead = 1 << 30 // of one response here; the service has no such limit
)

// createFile makes a file of zeros, and replaces an existing one: the last writer wins.
func (s *Service) createFile(r *request, sh *shareState, f *fileState) *answer {
	if r.header.Get("X-Ms-Type") != "file" {
		return notImplemented()
	}
	if a := sh.parentOf(r.blob); a != nil {
		return a
	}
	if sh.directories[r.blob] != nil {
		return fail(http.StatusConflict, "ResourceTypeMismatch", "The specified resource type does not match the type of the existing resource.")
	}
	size, err := strconv.ParseInt(r.header.Get("X-Ms-Content-Length"), 10, 64)
	if err != nil || size < 0 || size > maxFile {
		return invalidHeader("x-ms-content-length", r.header.Get("X-Ms-Content-Length"))
	}
	metadata, a := metadataOf(r)
	if a != nil {
		return a
	}
	if f == nil {
		f = &fileState{id: s.newFileID()}
		sh.files[r.blob] = f
	}
	f.content, f.metadata, f.headers = pages.Pages{Size: size}, metadata, fileHeaders(r)
	f.readOnly = strings.Contains(r.header.Get("X-Ms-File-Attributes"), "ReadOnly")
	s.writtenFile(f)
	if at, ok := givenWriteTime(r); ok {
		f.lastWrite, f.lastModified, f.etag = at, at.Truncate(time.Second), etagOf(at)
	}
	return f.written(ok(http.StatusCreated))
}

// givenWriteTime returns the last write time that the creator of a file or directory sets. The service derives
// Last-Modified and the ETag from it: two files that are created with the same time have the same ETag.
func givenWriteTime(r *request) (time.Time, bool) {
	at, err := time.Parse(snapshotTime, r.header.Get("X-Ms-File-Last-Write-Time"))
	return at, err == nil
}

// etagOf returns the File service's ETag for a time: the number of 100 ns since the year 1.
func etagOf(at time.Time) string {
	const unixEpoch = 621355968000000000
	return fmt.Sprintf(`"0x%X"`, unixEpoch+at.Unix()*1e7+int64(at.Nanosecond())/100)
}

// written adds the headers with which Create File and Set File Properties describe a file.
func (f *fileState) written(a *answer) *answer {
	return a.version(f.etag, f.lastModified).set("x-ms-file-id", f.id).set("x-ms-file-last-write-time", f.lastWrite.UTC().Format(snapshotTime))
}

// putRange writes within the size of the file, which it cannot change (REST: "Put Range").
func (s *Service) putRange(r *request, f *fileState) *answer {
	first, last, err := parseRange(rangeOf(r))
	if err != nil || last < 0 || last >= f.content.Size {
		return fail(http.StatusRequestedRangeNotSatisfiable, "InvalidRange", "The range specified is invalid for the current size of the resource.")
	}
	body := r.body
	switch action := strings.ToLower(r.header.Get("X-Ms-Write")); {
	case action == "clear":
		f.content.Write(first, last, nil)
		s.writtenFile(f)
		return ok(http.StatusCreated).version(f.etag, f.lastModified)
	case action != "update":
		return invalidHeader("x-ms-write", action)
	case int64(len(body)) != last-first+1 || len(body) > 4<<20:
		return invalidHeader("Content-Length", strconv.Itoa(len(body)))
	}
	f.content.Write(first, last, body)
	s.writtenFile(f)
	return ok(http.StatusCreated).version(f.etag, f.lastModified)
}

func (f *fileState) describe(a *answer, size int64) *answer {
	a.version(f.etag, f.lastModified).set("x-ms-type", "File").set("x-ms-file-id", f.id).set("Content-Type", "application/octet-stream").
		set("x-ms-file-last-write-time", f.lastWrite.UTC().Format(snapshotTime))
	a.size = size
	for name, value := range f.headers {
		a.set(name, value)
	}
	a.describing(f.metadata)
	f.lease.describe(a)
	return a
}

func (f *fileState) get(r *request) *answer {
	size := f.content.Size
	first, last, err := parseRange(rangeOf(r))
	if err != nil { // there is none, or it cannot be read: then it is ignored
		if size > maxRead {
			return notImplemented()
		}
		a := f.describe(ok(http.StatusOK), size).set("Accept-Ranges", "bytes")
		a.body = f.content.Read(0, size-1)
		return a
	}
	if first >= size {
		return invalidRange(size)
	}
	if last < 0 || last >= size {
		last = size - 1
	}
	if last-first >= maxRead {
		return notImplemented()
	}
	a := f.describe(ok(http.StatusPartialContent), last-first+1)
	a.body = f.content.Read(first, last)
	return a.set("Accept-Ranges", "bytes").set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, last, size))
}

// leaseOperation differs from a blob's (REST: "Lease File"): leases are infinite and not renewed, a break has no
// period, and an SMB client that has the file open for writing or deletion prevents a lease.
func (f *fileState) leaseOperation(r *request) *answer {
	switch action := r.header.Get("X-Ms-Lease-Action"); action {
	case "acquire":
		if r.header.Get("X-Ms-Lease-Duration") != "-1" {
			return fail(http.StatusBadRequest, "InvalidHeaderValue", "The lease of a file is infinite.")
		}
		if f.pending || slices.ContainsFunc(f.handles, func(h SMBHandle) bool { return h.Write || h.Delete }) {
			return sharingViolation()
		}
	case "break":
		r.header.Set("X-Ms-Lease-Break-Period", "0")
	case "change", "release":
	default:
		return invalidHeader("x-ms-lease-action", action)
	}
	return f.lease.operate(r).version(f.etag, f.lastModified)
}
