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
)

// parentOf refuses what is to be in a directory that is not there.
func (sh *shareState) parentOf(name string) *answer {
	if dir := path.Dir(name); dir != "." && !sh.directories[dir] {
		return fail(http.StatusNotFound, "ParentNotFound", "The specified parent path does not exist.")
	}
	return nil
}

// routeDirectory knows creating, deleting and listing directories.
func (sh *shareState) routeDirectory(r *request) *answer {
	there := r.blob == "" || sh.directories[r.blob]
	switch comp := r.query.Get("comp"); {
	case comp == "" && r.method == http.MethodPut:
		if there || sh.files[r.blob] != nil {
			return fail(http.StatusConflict, "ResourceAlreadyExists", "The specified resource already exists.")
		}
		if a := sh.parentOf(r.blob); a != nil {
			return a
		}
		sh.directories[r.blob] = true
		return ok(http.StatusCreated).version(sh.etag, sh.lastModified)
	case !there:
		return fail(http.StatusNotFound, "ResourceNotFound", "The specified resource does not exist.")
	case comp == "list" && r.method == http.MethodGet:
		return sh.list(r.blob)
	case comp == "" && r.method == http.MethodDelete && r.blob != "":
		if sh.inside(r.blob) {
			return fail(http.StatusConflict, "DirectoryNotEmpty", "The specified directory is not empty.")
		}
		delete(sh.directories, r.blob)
		return ok(http.StatusAccepted)
	}
	return notImplemented()
}

// inside tells whether a directory has something in it, listed or not.
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

// list leaves out files whose deletion is pending (REST: "Managing file locks", SMB delete).
func (sh *shareState) list(dir string) *answer {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Entries>`)
	in := cmp.Or(dir, ".")
	for _, name := range slices.Sorted(maps.Keys(sh.directories)) {
		if path.Dir(name) == in {
			fmt.Fprintf(&b, "<Directory><Name>%s</Name><Properties /></Directory>", escaped(path.Base(name)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sh.files)) {
		if f := sh.files[name]; path.Dir(name) == in && !f.pending {
			fmt.Fprintf(&b, "<File><Name>%s</Name><Properties><Content-Length>%d</Content-Length></Properties></File>", escaped(path.Base(name)), len(f.content))
		}
	}
	b.WriteString(`</Entries><NextMarker /></EnumerationResults>`)
	a := ok(http.StatusOK).set("Content-Type", "application/xml")
	a.body = []byte(b.String())
	return a
}

// handleOperation lists and closes the handles of a file, or of a directory and, recursively, what is in it. A page has
// x-ms-max-results entries, and a request to close closes a hundred.
func (sh *shareState) handleOperation(r *request) *answer {
	recursive := strings.EqualFold(r.header.Get("X-Ms-Recursive"), "true")
	if r.blob != "" && sh.files[r.blob] == nil && !sh.directories[r.blob] {
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
	from, _ := strconv.Atoi(r.query.Get("marker"))
	size, err := strconv.Atoi(r.query.Get("maxresults"))
	if err != nil || size < 1 {
		size = 5000
	}
	from = min(from, len(found))
	to, marker := min(from+size, len(found)), ""
	if to < len(found) {
		marker = strconv.Itoa(to)
	}
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Entries>`)
	for _, h := range found[from:to] {
		rights := "<AccessRight>Read</AccessRight>"
		if h.Write {
			rights += "<AccessRight>Write</AccessRight>"
		}
		if h.Delete {
			rights += "<AccessRight>Delete</AccessRight>"
		}
		fmt.Fprintf(&b, "<Handle><HandleId>%s</HandleId><Path>%s</Path><FileId>1</FileId><SessionId>1</SessionId><ClientIp>192.0.2.1:50000</ClientIp><ClientName>%s</ClientName><OpenTime>%s</OpenTime><AccessRightList>%s</AccessRightList></Handle>",
			escaped(h.ID), escaped(h.path), escaped(h.ClientName), h.opened.UTC().Format(http.TimeFormat), rights)
	}
	fmt.Fprintf(&b, `</Entries><NextMarker>%s</NextMarker></EnumerationResults>`, marker)
	a := ok(http.StatusOK).set("Content-Type", "application/xml")
	a.body = []byte(b.String())
	return a
}

// closeHandles closes up to a hundred, and says by a marker when there are more.
func (sh *shareState) closeHandles(r *request, found []SMBHandle) *answer {
	id, closed, failed, marker := r.header.Get("X-Ms-Handle-Id"), 0, 0, ""
	from, _ := strconv.Atoi(r.query.Get("marker")) // how many are left over from before
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
