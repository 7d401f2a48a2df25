package blobservice

import (
	"encoding/xml"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// The lists, as XML.
type (
	listedContainer struct {
		XMLName       xml.Name `xml:"Container"`
		Name          string
		LastModified  string `xml:"Properties>Last-Modified"`
		ETag          string `xml:"Properties>Etag"`
		LeaseStatus   string `xml:"Properties>LeaseStatus"`
		LeaseState    string `xml:"Properties>LeaseState"`
		LeaseDuration string `xml:"Properties>LeaseDuration,omitempty"`
		PublicAccess  string `xml:"Properties>PublicAccess,omitempty"`
		Metadata      storage.ListedMetadata
	}

	listedBlob struct {
		XMLName    xml.Name `xml:"Blob"`
		Name       string
		Snapshot   string `xml:",omitempty"`
		Properties listedProperties
		Metadata   storage.ListedMetadata
		Tags       *tagSet `xml:",omitempty"`
	}

	listedProperties struct {
		CreationTime       string `xml:"Creation-Time"`
		LastModified       string `xml:"Last-Modified"`
		ETag               string `xml:"Etag"`
		ContentLength      int64  `xml:"Content-Length"`
		ContentType        string `xml:"Content-Type"`
		ContentEncoding    string `xml:"Content-Encoding,omitempty"`
		ContentLanguage    string `xml:"Content-Language,omitempty"`
		ContentMD5         string `xml:"Content-MD5,omitempty"`
		CacheControl       string `xml:"Cache-Control,omitempty"`
		ContentDisposition string `xml:"Content-Disposition,omitempty"`
		SequenceNumber     string `xml:"x-ms-blob-sequence-number,omitempty"`
		BlobType           string
		AccessTier         string `xml:",omitempty"`
		AccessTierInferred string `xml:",omitempty"`
		LeaseStatus        string `xml:",omitempty"`
		LeaseState         string `xml:",omitempty"`
		LeaseDuration      string `xml:",omitempty"`
		CopyID             string `xml:"CopyId,omitempty"`
		CopyStatus         string `xml:",omitempty"`
		CopySource         string `xml:",omitempty"`
		CopyProgress       string `xml:",omitempty"`
		TagCount           int    `xml:",omitempty"`
		Sealed             string `xml:",omitempty"`
	}

	listedPrefix struct {
		XMLName xml.Name `xml:"BlobPrefix"`
		Name    string
	}

	enumeration struct {
		XMLName       xml.Name `xml:"EnumerationResults"`
		ContainerName string   `xml:",attr,omitempty"`
		Prefix        string   `xml:",omitempty"`
		Delimiter     string   `xml:",omitempty"`
		Containers    *listing `xml:"Containers,omitempty"`
		Blobs         *listing `xml:"Blobs,omitempty"`
		NextMarker    string
	}

	listing struct{ Items []any }
)

func (s *Service) listContainers(r *storage.Request) *storage.Answer {
	page, next, bad := s.Page(r)
	if bad != nil {
		return bad
	}
	list := &listing{}
	for _, name := range page {
		c := s.Find(name)
		item := listedContainer{Name: name, LastModified: c.LastModified.Format(http.TimeFormat), ETag: c.ETag}
		item.LeaseState, item.LeaseStatus, item.LeaseDuration = c.Lease.State(), c.Lease.Status(), c.Lease.Kind()
		item.PublicAccess = c.access
		if strings.Contains(r.Query.Get("include"), "metadata") {
			item.Metadata = c.Metadata
		}
		list.Items = append(list.Items, item)
	}
	return storage.XML(enumeration{Prefix: r.Query.Get("prefix"), Containers: list, NextMarker: next})
}

func (s *Service) listBlobs(r *storage.Request, c *containerState) *storage.Answer {
	prefix, delimiter, include := r.Query.Get("prefix"), r.Query.Get("delimiter"), strings.Join(r.Query["include"], ",")
	names := map[string]bool{} // true for an element that stands for several
	for name := range c.blobs {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok || c.blob(name) == nil && !strings.Contains(include, "uncommittedblobs") {
			continue
		}
		if before, _, cut := strings.Cut(rest, delimiter); delimiter != "" && cut {
			names[prefix+before+delimiter] = true
		} else {
			names[name] = false
		}
	}
	page, next, bad := storage.Page(r, slices.Sorted(maps.Keys(names)), r.Query.Get("marker"))
	if bad != nil {
		return bad
	}
	list := &listing{}
	for _, name := range page {
		if names[name] {
			list.Items = append(list.Items, listedPrefix{Name: name})
			continue
		}
		b := c.blobs[name]
		if strings.Contains(include, "snapshots") {
			for _, snapshot := range b.snapshots {
				list.Items = append(list.Items, listed(name, snapshot, include))
			}
		}
		list.Items = append(list.Items, listed(name, b, include))
	}
	return storage.XML(enumeration{ContainerName: c.Name, Prefix: prefix, Delimiter: delimiter, Blobs: list, NextMarker: next})
}

// listed returns a blob as a list shows it. The ETag has no quotes there, as the service writes it.
func listed(name string, b *blobState, include string) listedBlob {
	p := listedProperties{
		CreationTime: b.created.Format(http.TimeFormat), LastModified: b.LastModified.Format(http.TimeFormat), ETag: strings.Trim(b.ETag, `"`),
		ContentLength: b.length(), BlobType: b.kind, TagCount: len(b.tags),
		ContentType: b.headers["Content-Type"], ContentEncoding: b.headers["Content-Encoding"], ContentLanguage: b.headers["Content-Language"],
		ContentMD5: b.headers["Content-Md5"], CacheControl: b.headers["Cache-Control"], ContentDisposition: b.headers["Content-Disposition"],
	}
	if p.AccessTier = b.tier; p.AccessTier == "" {
		p.AccessTier, p.AccessTierInferred = "Hot", "true"
	}
	switch b.kind {
	case "PageBlob":
		p.SequenceNumber = strconv.FormatInt(b.sequence, 10)
	case "AppendBlob":
		if b.sealed {
			p.Sealed = "true"
		}
	}
	if b.snapshot == "" {
		p.LeaseState, p.LeaseStatus, p.LeaseDuration = b.Lease.State(), b.Lease.Status(), b.Lease.Kind()
	}
	if b.copied != nil && strings.Contains(include, "copy") {
		p.CopyID, p.CopyStatus, p.CopySource = b.copied.id, b.copied.status, b.copied.source
		p.CopyProgress = b.copied.progress()
	}
	item := listedBlob{Name: name, Snapshot: b.snapshot, Properties: p}
	if strings.Contains(include, "metadata") {
		item.Metadata = b.metadata
	}
	if strings.Contains(include, "tags") && len(b.tags) > 0 {
		item.Tags = tagSetOf(b.tags)
	}
	return item
}
