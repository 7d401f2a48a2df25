package fileservice

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/azconc/azconc/pkg/aztest/internal/pages"
	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// listRanges shows which parts of a file were written (REST: "List Ranges").
func (f *fileState) listRanges(r *storage.Request) *storage.Answer {
	if r.Query.Get("prevsharesnapshot") != "" {
		return storage.NotImplemented()
	}
	first, last := int64(0), f.content.Size-1
	if from, to, err := storage.ParseRange(storage.RangeOf(r)); err == nil { // a range that cannot be read is ignored
		if from >= f.content.Size {
			return storage.InvalidRange(f.content.Size)
		}
		if first = from; to >= 0 {
			last = min(last, to)
		}
	}
	list := rangeList{}
	for _, one := range pages.Within(f.content.Ranges, first, last) {
		list.Ranges = append(list.Ranges, pages.Range{Start: one.Start, End: min(one.End, f.content.Size-1)})
	}
	return storage.XML(list).Version(&f.Versioned).Set("x-ms-content-length", strconv.FormatInt(f.content.Size, 10))
}

type rangeList struct {
	XMLName xml.Name      `xml:"Ranges"`
	Ranges  []pages.Range `xml:"Range"`
}

// copyFile copies a file of the account, at once (REST: "Copy File").
func (s *Service) copyFile(r *storage.Request, sh *shareState, f *fileState) *storage.Answer {
	if a := sh.parentOf(r.Blob); a != nil {
		return a
	}
	from, err := url.Parse(r.Header.Get("X-Ms-Copy-Source"))
	if err != nil {
		return storage.InvalidHeader("x-ms-copy-source", "(unparsable)")
	}
	if from.Query().Get("sharesnapshot") != "" {
		return storage.NotImplemented()
	}
	_, path, _ := strings.Cut(strings.TrimPrefix(from.Path, "/"), "/") // below the account
	shareName, name, _ := strings.Cut(path, "/")
	source := s.Alive(shareName)
	if source == nil || source.files[name] == nil {
		return storage.Fail(http.StatusNotFound, "CannotVerifyCopySource", "The specified resource does not exist.")
	}
	metadata, bad := storage.MetadataOf(r)
	if bad != nil {
		return bad
	}
	of := source.files[name]
	if len(metadata) == 0 {
		metadata = of.metadata
	}
	if f == nil {
		f = &fileState{id: s.newFileID()}
		sh.files[r.Blob] = f
	}
	f.content, f.metadata, f.headers = of.content.Clone(), metadata, of.headers
	s.writtenFile(f)
	s.Etags++
	id := fmt.Sprintf("%08x-0000-4000-8000-%012x", s.Etags, time.Now().Unix())
	return storage.OK(http.StatusAccepted).Version(&f.Versioned).Set("x-ms-copy-id", id).Set("x-ms-copy-status", "success")
}
