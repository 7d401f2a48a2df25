package fileservice

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// writtenFile gives a file a new version, of its content.
func (s *Service) writtenFile(f *fileState) {
	s.Touch(&f.Versioned)
	f.lastWrite = time.Now()
}

// routeOneFile carries out an operation on a file. The service has no conditions on files.
func (s *Service) routeOneFile(r *storage.Request, sh *shareState) *storage.Answer {
	f, comp := sh.files[r.Blob], r.Query.Get("comp")
	write := !r.Reads()
	if f == nil && (r.Method != http.MethodPut || comp != "") {
		return sh.notThere(r.Blob)
	}
	if comp == "lease" {
		return f.leaseOperation(r)
	}
	if f != nil {
		if a := f.Lease.Check(r, "File", write); a != nil {
			return a
		}
		content := comp == "" && r.Method == http.MethodGet
		if a := f.sharing(storage.Describe(storage.File, r.Method, r.Container+"/"+r.Blob, r.Query, r.Header)); a != nil {
			return a
		}
		if f.readOnly && write && comp != "properties" {
			return storage.Fail(http.StatusPreconditionFailed, "ReadOnlyAttribute", "The specified resource is read-only and cannot be modified at this time.")
		}
		if a := f.rangeLocked(r, content); a != nil {
			return a
		}
	}
	switch {
	case comp == "" && r.Method == http.MethodPut:
		return s.createFile(r, sh, f)
	case comp == "" && r.Method == http.MethodDelete:
		delete(sh.files, r.Blob)
		return storage.OK(http.StatusAccepted)
	case comp == "" && r.Method == http.MethodGet:
		return f.get(r)
	case comp == "rangelist":
		return f.listRanges(r)
	case comp == "metadata" && !write:
		return storage.OK(http.StatusOK).Version(&f.Versioned).Describing(f.metadata)
	case comp == "":
		return f.describe(storage.OK(http.StatusOK), f.content.Size)
	case comp == "metadata":
		metadata, a := storage.MetadataOf(r)
		if a != nil {
			return a
		}
		f.metadata = metadata
	case comp == "properties":
		if size := r.Header.Get("X-Ms-Content-Length"); size != "" {
			n, err := strconv.ParseInt(size, 10, 64)
			if err != nil || n < 0 || n > maxFile {
				return storage.InvalidHeader("x-ms-content-length", size)
			}
			f.content.Resize(n)
			s.writtenFile(f)
		}
		if attributes := r.Header.Get("X-Ms-File-Attributes"); attributes != "" && attributes != "preserve" {
			f.readOnly = strings.Contains(attributes, "ReadOnly")
		}
		f.headers = fileHeaders(r) // what is not named is cleared, also by a mere change of size (REST: "Set File Properties")
	default:
		return s.putRange(r, f)
	}
	s.Touch(&f.Versioned)
	if comp == "properties" {
		return f.written(storage.OK(http.StatusOK))
	}
	return storage.OK(http.StatusOK).Version(&f.Versioned)
}

// fileHeaders returns the HTTP headers that a request sets on a file.
func fileHeaders(r *storage.Request) map[string]string {
	headers := map[string]string{}
	for _, name := range []string{"Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language", "Content-Md5", "Content-Type"} {
		if value := r.Header.Get("X-Ms-" + name); value != "" {
			headers[name] = value
		}
	}
	return headers
}

// newFileID returns an id that no file has had before, not even one of the same name.
func (s *Service) newFileID() string {
	s.Etags++
	return strconv.FormatUint(1<<62+s.Etags, 10)
}

const maxFile = 4 << 40 // (Azure Files: "Scalability targets")

// createFile makes a file of zeros, and replaces an existing one: the last writer wins.
func (s *Service) createFile(r *storage.Request, sh *shareState, f *fileState) *storage.Answer {
	if r.Header.Get("X-Ms-Copy-Source") != "" {
		return s.copyFile(r, sh, f)
	}
	if r.Header.Get("X-Ms-Type") != "file" {
		return storage.NotImplemented()
	}
	if a := sh.parentOf(r.Blob); a != nil {
		return a
	}
	if sh.directories[r.Blob] != nil {
		return storage.Fail(http.StatusConflict, "ResourceTypeMismatch", "The specified resource type does not match the type of the existing resource.")
	}
	size, err := strconv.ParseInt(r.Header.Get("X-Ms-Content-Length"), 10, 64)
	if err != nil || size < 0 || size > maxFile {
		return storage.InvalidHeader("x-ms-content-length", r.Header.Get("X-Ms-Content-Length"))
	}
	metadata, a := storage.MetadataOf(r)
	if a != nil {
		return a
	}
	if f == nil {
		f = &fileState{id: s.newFileID()}
		sh.files[r.Blob] = f
	}
	f.content, f.metadata, f.headers = storage.Pages{Size: size}, metadata, fileHeaders(r)
	f.readOnly = strings.Contains(r.Header.Get("X-Ms-File-Attributes"), "ReadOnly")
	s.writtenFile(f)
	if at, ok := givenWriteTime(r); ok {
		f.lastWrite, f.LastModified, f.ETag = at, at.Truncate(time.Second), etagOf(at)
	}
	return f.written(storage.OK(http.StatusCreated))
}

// givenWriteTime returns the last write time that the creator of a file or directory sets. The service derives
// Last-Modified and the ETag from it: two files that are created with the same time have the same ETag.
func givenWriteTime(r *storage.Request) (time.Time, bool) {
	at, err := time.Parse(storage.SnapshotTime, r.Header.Get("X-Ms-File-Last-Write-Time"))
	return at, err == nil
}

// etagOf returns the File service's ETag for a time: the number of 100 ns since the year 1.
func etagOf(at time.Time) string {
	const unixEpoch = 621355968000000000
	return fmt.Sprintf(`"0x%X"`, unixEpoch+at.Unix()*1e7+int64(at.Nanosecond())/100)
}

// written adds the headers with which Create File and Set File Properties describe a file.
func (f *fileState) written(a *storage.Answer) *storage.Answer {
	return a.Version(&f.Versioned).Set("x-ms-file-id", f.id).Set("x-ms-file-last-write-time", f.lastWrite.UTC().Format(storage.SnapshotTime))
}

// putRange writes within the size of the file, which it cannot change (REST: "Put Range").
func (s *Service) putRange(r *storage.Request, f *fileState) *storage.Answer {
	first, last, err := storage.ParseRange(storage.RangeOf(r))
	if err != nil || last < 0 || last >= f.content.Size {
		return storage.Fail(http.StatusRequestedRangeNotSatisfiable, "InvalidRange", "The range specified is invalid for the current size of the resource.")
	}
	body := r.Body
	switch action := strings.ToLower(r.Header.Get("X-Ms-Write")); {
	case action == "clear":
		body = nil
	case action != "update":
		return storage.InvalidHeader("x-ms-write", action)
	case int64(len(body)) != last-first+1 || len(body) > 4<<20:
		return storage.InvalidHeader("Content-Length", strconv.Itoa(len(body)))
	}
	f.content.Write(first, last, body)
	s.writtenFile(f)
	return storage.OK(http.StatusCreated).Version(&f.Versioned)
}

func (f *fileState) describe(a *storage.Answer, size int64) *storage.Answer {
	a.Version(&f.Versioned).Set("x-ms-type", "File").Set("x-ms-file-id", f.id).Set("Content-Type", "application/octet-stream").
		Set("x-ms-file-last-write-time", f.lastWrite.UTC().Format(storage.SnapshotTime))
	a.Size = size
	for name, value := range f.headers {
		a.Set(name, value)
	}
	a.Describing(f.metadata)
	f.Lease.Describe(a)
	return a
}

func (f *fileState) get(r *storage.Request) *storage.Answer {
	size := f.content.Size
	first, last, whole, bad := storage.Span(storage.RangeOf(r), size)
	switch {
	case bad != nil:
		return bad
	case last-first >= storage.MaxRead:
		return storage.NotImplemented()
	}
	a := f.describe(storage.OK(http.StatusOK), last-first+1).Set("Accept-Ranges", "bytes")
	a.Body = f.content.Read(first, last)
	if !whole {
		a.Status = http.StatusPartialContent
		a.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, last, size))
	}
	return a
}

// leaseOperation differs from a blob's (REST: "Lease File"): leases are infinite and not renewed, a break has no
// period, and an SMB client that has the file open for writing or deletion prevents a lease.
func (f *fileState) leaseOperation(r *storage.Request) *storage.Answer {
	switch action := r.Header.Get("X-Ms-Lease-Action"); action {
	case "acquire":
		if r.Header.Get("X-Ms-Lease-Duration") != "-1" {
			return storage.Fail(http.StatusBadRequest, "InvalidHeaderValue", "The lease of a file is infinite.")
		}
		if a := f.sharing("Acquire File Lease"); a != nil {
			return a
		}
	case "break":
		r.Header.Set("X-Ms-Lease-Break-Period", "0")
	case "change", "release":
	default:
		return storage.InvalidHeader("x-ms-lease-action", action)
	}
	return f.Lease.Operate(r).Version(&f.Versioned)
}
