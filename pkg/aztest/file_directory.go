package aztest

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// parentOf refuses a path whose directory does not exist.
func (sh *shareState) parentOf(name string) *answer {
	if dir := path.Dir(name); dir != "." && sh.directories[dir] == nil {
		return fail(http.StatusNotFound, "ParentNotFound", "The specified parent path does not exist.")
	}
	return nil
}

// notThere returns the response for a missing file or directory. A missing parent is reported first.
func (sh *shareState) notThere(name string) *answer {
	if a := sh.parentOf(name); a != nil {
		return a
	}
	return fail(http.StatusNotFound, "ResourceNotFound", "The specified resource does not exist.")
}

// routeDirectory carries out an operation on a directory. The root always exists, and has the share's version.
func (s *Service) routeDirectory(r *request, sh *shareState) *answer {
	dir := sh.directories[r.blob]
	if r.blob == "" {
		dir = &directoryState{id: "0", etag: sh.etag, lastModified: sh.lastModified, lastWrite: sh.lastModified}
	}
	comp, write := r.query.Get("comp"), r.method == http.MethodPut
	switch {
	case comp == "" && write:
		return s.createDirectory(r, sh, dir != nil)
	case dir == nil:
		return sh.notThere(r.blob)
	case comp == "list" && r.method == http.MethodGet:
		return sh.list(r)
	case comp == "" && r.method == http.MethodDelete && r.blob != "":
		if sh.inside(r.blob) {
			return fail(http.StatusConflict, "DirectoryNotEmpty", "The specified directory is not empty.")
		}
		delete(sh.directories, r.blob)
		return ok(http.StatusAccepted)
	case (comp == "" || comp == "metadata") && (r.method == http.MethodGet || r.method == http.MethodHead):
		a := ok(http.StatusOK).version(dir.etag, dir.lastModified).describing(dir.metadata)
		if comp == "" {
			dir.describe(a)
		}
		return a
	case comp == "metadata" && write && r.blob != "":
		metadata, a := metadataOf(r)
		if a != nil {
			return a
		}
		dir.metadata, dir.etag, dir.lastModified = metadata, s.newETag(), now()
		return ok(http.StatusOK).version(dir.etag, dir.lastModified)
	}
	return notImplemented()
}

func (s *Service) createDirectory(r *request, sh *shareState, there bool) *answer {
	if there || sh.files[r.blob] != nil {
		return fail(http.StatusConflict, "ResourceAlreadyExists", "The specified resource already exists.")
	}
	if a := sh.parentOf(r.blob); a != nil {
		return a
	}
	metadata, a := metadataOf(r)
	if a != nil {
		return a
	}
	dir := &directoryState{id: s.newFileID(), etag: s.newETag(), lastModified: now(), lastWrite: time.Now(), metadata: metadata}
	if at, ok := givenWriteTime(r); ok {
		dir.lastModified, dir.etag, dir.lastWrite = at.Truncate(time.Second), etagOf(at), at
	}
	sh.directories[r.blob] = dir
	return dir.describe(ok(http.StatusCreated).version(dir.etag, dir.lastModified))
}

func (d *directoryState) describe(a *answer) *answer {
	return a.set("x-ms-file-id", d.id).set("x-ms-file-last-write-time", d.lastWrite.UTC().Format(snapshotTime))
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
func (sh *shareState) list(r *request) *answer {
	in := cmp.Or(r.blob, ".")
	listed := func(name string) bool {
		return path.Dir(name) == in && strings.HasPrefix(path.Base(name), r.query.Get("prefix"))
	}
	var entries []string
	for _, name := range sh.sorted() {
		if f := sh.files[name]; !listed(name) || f != nil && f.pending {
			continue
		} else if f == nil {
			entries = append(entries, fmt.Sprintf("<Directory><Name>%s</Name><Properties /></Directory>", escaped(path.Base(name))))
		} else {
			entries = append(entries, fmt.Sprintf("<File><Name>%s</Name><Properties><Content-Length>%d</Content-Length></Properties></File>", escaped(path.Base(name)), f.content.Size))
		}
	}
	page, marker := pageOf(r, entries)
	return entriesAnswer(page, marker)
}

// sorted returns the names of all directories and files in the service's order, which ignores case.
func (sh *shareState) sorted() []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(sh.directories)), maps.Keys(sh.files))
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(strings.Compare(strings.ToLower(a), strings.ToLower(b)), strings.Compare(a, b))
	})
	return names
}

// pageOf returns the page that a request asks for. The marker is the number of entries before it.
func pageOf[T any](r *request, all []T) (page []T, marker string) {
	from, _ := strconv.Atoi(r.query.Get("marker"))
	size, err := strconv.Atoi(r.query.Get("maxresults"))
	if err != nil || size < 1 {
		size = 5000
	}
	from = min(max(0, from), len(all))
	to := min(from+size, len(all))
	if to < len(all) {
		marker = strconv.Itoa(to)
	}
	return all[from:to], marker
}

func entriesAnswer(entries []string, marker string) *answer {
	a := ok(http.StatusOK).set("Content-Type", "application/xml")
	a.body = fmt.Appendf(nil, `<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Entries>%s</Entries><NextMarker>%s</NextMarker></EnumerationResults>`,
		strings.Join(entries, ""), marker)
	return a
}

// handleOperation lists and closes the handles of a file, or of a directory and, recursively, of its contents. A page
// has x-ms-max-results entries, and a request to close closes at most a hundred.
func (sh *shareState) handleOperation(r *request) *answer {
	recursive := strings.EqualFold(r.header.Get("X-Ms-Recursive"), "true")
	if r.blob != "" && sh.files[r.blob] == nil && sh.directories[r.blob] == nil {
		return fail(http.StatusNotFound, "ResourceNotFound", "The specified resource does not exist.")
	}
	var found []SMBHandle
	for _, name := range slices.Sorted(maps.Keys(sh.files)) {
		below := r.blob == "" || strings.HasPrefix(name, r.blob+"/")
		if name == r.blob || recursive && below {
			found = append(found, sh.files[name].handles...)
		}
	}
	if r.query.Get("comp") == "listhandles" {
		return listHandles(r, found)
	}
	return sh.closeHandles(r, found)
}

func listHandles(r *request, found []SMBHandle) *answer {
	page, marker := pageOf(r, found)
	var entries []string
	for _, h := range page {
		rights := "<AccessRight>Read</AccessRight>"
		if h.Write {
			rights += "<AccessRight>Write</AccessRight>"
		}
		if h.Delete {
			rights += "<AccessRight>Delete</AccessRight>"
		}
		entries = append(entries, fmt.Sprintf("<Handle><HandleId>%s</HandleId><Path>%s</Path><FileId>1</FileId><SessionId>1</SessionId><ClientIp>192.0.2.1:50000</ClientIp><ClientName>%s</ClientName><OpenTime>%s</OpenTime><AccessRightList>%s</AccessRightList></Handle>",
			escaped(h.ID), escaped(h.path), escaped(h.ClientName), h.opened.UTC().Format(http.TimeFormat), rights))
	}
	return entriesAnswer(entries, marker)
}

// closeHandles closes up to a hundred handles, and sets a marker if there are more.
func (sh *shareState) closeHandles(r *request, found []SMBHandle) *answer {
	id, closed, failed, marker := r.header.Get("X-Ms-Handle-Id"), 0, 0, ""
	from, _ := strconv.Atoi(r.query.Get("marker")) // the number of handles that remain from before
	for i, h := range found[min(from, len(found)):] {
		switch {
		case id != "*" && h.ID != id:
		case h.stuck:
			failed++
		default:
			closed += sh.close(h.path, func(one SMBHandle) bool { return one.ID == h.ID })
		}
		if id == "*" && i == 99 && len(found) > from+100 {
			marker = strconv.Itoa(from + failed)
			break
		}
	}
	a := ok(http.StatusOK).set("x-ms-number-of-handles-closed", strconv.Itoa(closed)).set("x-ms-number-of-handles-failed", strconv.Itoa(failed))
	if marker != "" {
		a.set("x-ms-marker", marker)
	}
	return a
}
