package fileservice

import (
	"cmp"
	"encoding/xml"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// parentOf refuses a path whose directory does not exist.
func (sh *shareState) parentOf(name string) *storage.Answer {
	if dir := path.Dir(name); dir != "." && sh.directories[dir] == nil {
		return storage.Fail(http.StatusNotFound, "ParentNotFound", "The specified parent path does not exist.")
	}
	return nil
}

// notThere returns the response for a missing file or directory. A missing parent is reported first.
func (sh *shareState) notThere(name string) *storage.Answer {
	if a := sh.parentOf(name); a != nil {
		return a
	}
	return storage.Fail(http.StatusNotFound, "ResourceNotFound", "The specified resource does not exist.")
}

// routeDirectory carries out an operation on a directory. The root always exists, and has the share's version.
func (s *Service) routeDirectory(r *storage.Request, sh *shareState) *storage.Answer {
	dir := sh.directories[r.Blob]
	if r.Blob == "" {
		dir = &directoryState{id: "0", Versioned: sh.Versioned, lastWrite: sh.LastModified}
	}
	comp, write := r.Query.Get("comp"), r.Method == http.MethodPut
	switch {
	case comp == "" && write:
		return s.createDirectory(r, sh, dir != nil)
	case dir == nil:
		return sh.notThere(r.Blob)
	case comp == "list":
		return sh.list(r)
	case comp == "" && r.Method == http.MethodDelete && r.Blob != "":
		if sh.inside(r.Blob) {
			return storage.Fail(http.StatusConflict, "DirectoryNotEmpty", "The specified directory is not empty.")
		}
		delete(sh.directories, r.Blob)
		return storage.OK(http.StatusAccepted)
	case r.Reads():
		a := storage.OK(http.StatusOK).Version(&dir.Versioned).Describing(dir.metadata)
		if comp == "" {
			dir.describe(a)
		}
		return a
	case comp == "metadata" && write && r.Blob != "":
		metadata, a := storage.MetadataOf(r)
		if a != nil {
			return a
		}
		dir.metadata = metadata
		s.Touch(&dir.Versioned)
		return storage.OK(http.StatusOK).Version(&dir.Versioned)
	}
	return storage.NotImplemented()
}

func (s *Service) createDirectory(r *storage.Request, sh *shareState, there bool) *storage.Answer {
	if there || sh.files[r.Blob] != nil {
		return storage.Fail(http.StatusConflict, "ResourceAlreadyExists", "The specified resource already exists.")
	}
	if a := sh.parentOf(r.Blob); a != nil {
		return a
	}
	metadata, a := storage.MetadataOf(r)
	if a != nil {
		return a
	}
	dir := &directoryState{id: s.newFileID(), lastWrite: time.Now(), metadata: metadata}
	s.Touch(&dir.Versioned)
	if at, ok := givenWriteTime(r); ok {
		dir.LastModified, dir.ETag, dir.lastWrite = at.Truncate(time.Second), etagOf(at), at
	}
	sh.directories[r.Blob] = dir
	return dir.describe(storage.OK(http.StatusCreated).Version(&dir.Versioned))
}

func (d *directoryState) describe(a *storage.Answer) *storage.Answer {
	return a.Set("x-ms-file-id", d.id).Set("x-ms-file-last-write-time", d.lastWrite.UTC().Format(storage.SnapshotTime))
}

// inside reports whether a directory is not empty; files that are not listed count.
func (sh *shareState) inside(dir string) bool {
	for name := range sh.files {
		if path.Dir(name) == dir {
			return true
		}
	}
	for name := range sh.directories {
		if path.Dir(name) == dir {
			return true
		}
	}
	return false
}

// list lists directories and files together, sorted by name. It omits files whose deletion is pending (REST:
// "Managing file locks", SMB delete).
func (sh *shareState) list(r *storage.Request) *storage.Answer {
	in := cmp.Or(r.Blob, ".")
	listed := func(name string) bool {
		return path.Dir(name) == in && strings.HasPrefix(path.Base(name), r.Query.Get("prefix"))
	}
	var entries []any
	for _, name := range sh.sorted() {
		if f := sh.files[name]; !listed(name) || f != nil && f.pending {
			continue
		} else if f == nil {
			entries = append(entries, listedDirectory{Name: path.Base(name)})
		} else {
			entries = append(entries, listedFile{Name: path.Base(name), Size: f.content.Size})
		}
	}
	page, marker, bad := pageOf(r, entries)
	return cmp.Or(bad, listOf(page, marker))
}

type (
	entryList struct {
		XMLName    xml.Name `xml:"EnumerationResults"`
		Entries    entries
		NextMarker string
	}
	entries struct{ Items []any }

	listedDirectory struct {
		XMLName    xml.Name `xml:"Directory"`
		Name       string
		Properties struct{}
	}
	listedFile struct {
		XMLName xml.Name `xml:"File"`
		Name    string
		Size    int64 `xml:"Properties>Content-Length"`
	}
	listedHandle struct {
		XMLName    xml.Name `xml:"Handle"`
		HandleID   string   `xml:"HandleId"`
		Path       string
		FileID     int    `xml:"FileId"`
		SessionID  int    `xml:"SessionId"`
		ClientIP   string `xml:"ClientIp"`
		ClientName string
		OpenTime   string
		Rights     []string `xml:"AccessRightList>AccessRight"`
	}
)

func listOf(page []any, marker string) *storage.Answer {
	return storage.XML(entryList{Entries: entries{page}, NextMarker: marker})
}

// sorted returns the names of all directories and files in the service's order, which ignores case.
func (sh *shareState) sorted() []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(sh.directories)), maps.Keys(sh.files))
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(strings.Compare(strings.ToLower(a), strings.ToLower(b)), strings.Compare(a, b))
	})
	return names
}

// pageOf returns the page that a request asks for.
func pageOf[T any](r *storage.Request, all []T) (page []T, marker string, bad *storage.Answer) {
	from, bad := markerOf(r, len(all))
	size, tooSmall := storage.MaxResults(r)
	to := min(from+size, len(all))
	if to < len(all) {
		marker = strconv.Itoa(to)
	}
	return all[from:to], marker, cmp.Or(bad, tooSmall)
}

// markerOf returns the number of entries before a page, which is its marker.
func markerOf(r *storage.Request, entries int) (int, *storage.Answer) {
	n, err := strconv.Atoi(cmp.Or(r.Query.Get("marker"), "0"))
	if err != nil || n < 0 {
		return 0, storage.BadMarker()
	}
	return min(n, entries), nil
}

// handleOperation lists and closes the handles of a file, or of a directory and, recursively, of its contents. A page
// has x-ms-max-results entries, and a request to close closes at most a hundred.
func (sh *shareState) handleOperation(r *storage.Request) *storage.Answer {
	recursive := strings.EqualFold(r.Header.Get("X-Ms-Recursive"), "true")
	if r.Blob != "" && sh.files[r.Blob] == nil && sh.directories[r.Blob] == nil {
		return storage.Fail(http.StatusNotFound, "ResourceNotFound", "The specified resource does not exist.")
	}
	var found []handle
	for _, name := range slices.Sorted(maps.Keys(sh.files)) {
		below := r.Blob == "" || strings.HasPrefix(name, r.Blob+"/")
		if name == r.Blob || recursive && below {
			found = append(found, sh.files[name].handles...)
		}
	}
	if r.Query.Get("comp") == "listhandles" {
		return listHandles(r, found)
	}
	return sh.closeHandles(r, found)
}

func listHandles(r *storage.Request, found []handle) *storage.Answer {
	page, marker, bad := pageOf(r, found)
	if bad != nil {
		return bad
	}
	var all []any
	for _, h := range page {
		one := listedHandle{HandleID: h.ID, Path: h.path, FileID: 1, SessionID: 1, ClientIP: "192.0.2.1:50000", ClientName: h.ClientName,
			OpenTime: storage.StampOf(h.opened), Rights: []string{"Read"}}
		if h.Write {
			one.Rights = append(one.Rights, "Write")
		}
		if h.Delete {
			one.Rights = append(one.Rights, "Delete")
		}
		all = append(all, one)
	}
	return listOf(all, marker)
}

// closeHandles closes up to a hundred handles, and sets a marker if there are more.
func (sh *shareState) closeHandles(r *storage.Request, found []handle) *storage.Answer {
	id, closed, failed, marker := r.Header.Get("X-Ms-Handle-Id"), 0, 0, ""
	from, bad := markerOf(r, len(found)) // the handles that remain from before
	if bad != nil {
		return bad
	}
	for i, h := range found[from:] {
		switch {
		case id != "*" && h.ID != id:
		case h.stuck:
			failed++
		default:
			closed += sh.close(h.path, h.ID)
		}
		if id == "*" && i == 99 && len(found) > from+100 {
			marker = strconv.Itoa(from + failed)
			break
		}
	}
	a := storage.OK(http.StatusOK).Set("x-ms-number-of-handles-closed", strconv.Itoa(closed)).Set("x-ms-number-of-handles-failed", strconv.Itoa(failed))
	if marker != "" {
		a.Set("x-ms-marker", marker)
	}
	return a
}
