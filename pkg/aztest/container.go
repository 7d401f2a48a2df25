package aztest

import (
	"encoding/xml"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

var (
	containerName   = regexp.MustCompile(`^(\$root|\$logs|\$web|[a-z0-9](?:-?[a-z0-9])+)$`)
	noSuchContainer = func() *answer {
		return fail(http.StatusNotFound, "ContainerNotFound", "The specified container does not exist.")
	}
	noSuchBlob     = func() *answer { return fail(http.StatusNotFound, "BlobNotFound", "The specified blob does not exist.") }
	notImplemented = func() *answer {
		return fail(http.StatusNotImplemented, "NotImplemented", "The in-memory service does not implement this operation.")
	}
)

// routeBlob finds what a request to the Blob service is about.
func (s *Service) routeBlob(r *request) *answer {
	if r.container == "" {
		if r.query.Get("comp") == "list" {
			return s.listContainers(r)
		}
		return notImplemented()
	}
	if !containerName.MatchString(r.container) || len(r.container) > 63 || len(r.container) < 3 {
		return fail(http.StatusBadRequest, "InvalidResourceName", "The specified resource name contains invalid characters.")
	}
	c := s.containers[r.container]
	if c != nil && !c.deleted.IsZero() && time.Since(c.deleted) >= s.o.DeletionDelay {
		delete(s.containers, r.container)
		c = nil
	}
	if r.query.Get("restype") == "container" && r.blob == "" {
		return s.routeContainer(r, c)
	}
	if c == nil || !c.deleted.IsZero() {
		return noSuchContainer()
	}
	return s.routeBlobIn(r, c)
}

func (s *Service) routeContainer(r *request, c *containerState) *answer {
	comp := r.query.Get("comp")
	if r.method == http.MethodPut && comp == "" {
		return s.createContainer(r, c)
	}
	if c == nil || !c.deleted.IsZero() {
		return noSuchContainer()
	}
	read := r.method == http.MethodGet || r.method == http.MethodHead
	if comp == "list" {
		return s.listBlobs(r, c)
	}
	// Containers know no ETag conditions (REST: "Specifying conditional headers"): only dates, and those on writes.
	if !read {
		if a := containerDates(r, c); a != nil {
			return a
		}
	}
	if comp == "lease" {
		return c.lease.operate(r).version(c.etag, c.lastModified)
	}
	// A lease guards the deletion; other operations check an id only if one is given.
	if a := c.lease.check(r, "Container", r.method == http.MethodDelete); a != nil {
		return a
	}
	switch {
	case r.method == http.MethodDelete:
		c.deleted = time.Now()
		c.blobs = map[string]*blobState{}
		return ok(http.StatusAccepted)
	case comp == "metadata" && !read:
		metadata, a := metadataOf(r)
		if a != nil {
			return a
		}
		c.metadata = metadata
		s.touchContainer(c)
		return ok(http.StatusOK).version(c.etag, c.lastModified)
	case comp == "acl" && !read:
		c.acl, c.access = r.body, r.header.Get("X-Ms-Blob-Public-Access")
		s.touchContainer(c)
		return ok(http.StatusOK).version(c.etag, c.lastModified)
	case comp == "acl":
		a := ok(http.StatusOK).version(c.etag, c.lastModified).set("x-ms-blob-public-access", c.access).set("Content-Type", "application/xml")
		if a.body = c.acl; len(a.body) == 0 {
			a.body = []byte(xml.Header + "<SignedIdentifiers/>")
		}
		return a
	case comp == "" || comp == "metadata":
		a := ok(http.StatusOK).version(c.etag, c.lastModified).set("x-ms-blob-public-access", c.access)
		for name, value := range c.metadata {
			a.set("x-ms-meta-"+name, value)
		}
		c.lease.describe(a)
		return a
	}
	return notImplemented()
}

func (s *Service) touchContainer(c *containerState) {
	c.etag, c.lastModified = s.newETag(), now()
	c.lease.forgetIfOver()
}

// containerDates evaluates the dates. Set Container Metadata knows only If-Modified-Since.
func containerDates(r *request, c *containerState) *answer {
	cond, bad := conditionsOf(r, "")
	if bad != nil {
		return bad
	}
	if r.query.Get("comp") == "metadata" {
		cond.hasUnmodified = false
	}
	if cond.hasModified && !c.lastModified.After(cond.modified) || cond.hasUnmodified && c.lastModified.After(cond.unmodified) {
		return conditionNotMet(http.StatusPreconditionFailed)
	}
	return nil
}

func (s *Service) createContainer(r *request, c *containerState) *answer {
	switch {
	case c != nil && c.deleted.IsZero():
		return fail(http.StatusConflict, "ContainerAlreadyExists", "The specified container already exists.")
	case c != nil:
		return fail(http.StatusConflict, "ContainerBeingDeleted", "The specified container is being deleted. Try operation later.")
	}
	metadata, a := metadataOf(r)
	if a != nil {
		return a
	}
	c = s.newContainer(r.container)
	c.metadata, c.access = metadata, r.header.Get("X-Ms-Blob-Public-Access")
	s.containers[r.container] = c
	return ok(http.StatusCreated).version(c.etag, c.lastModified)
}

// The lists, as XML.
type (
	listedMetadata map[string]string

	listedContainer struct {
		XMLName      xml.Name `xml:"Container"`
		Name         string
		LastModified string `xml:"Properties>Last-Modified"`
		ETag         string `xml:"Properties>Etag"`
		LeaseStatus  string `xml:"Properties>LeaseStatus"`
		LeaseState   string `xml:"Properties>LeaseState"`
		Metadata     listedMetadata
	}

	listedBlob struct {
		XMLName       xml.Name `xml:"Blob"`
		Name          string
		Snapshot      string `xml:",omitempty"`
		LastModified  string `xml:"Properties>Last-Modified"`
		ETag          string `xml:"Properties>Etag"`
		ContentLength int    `xml:"Properties>Content-Length"`
		ContentType   string `xml:"Properties>Content-Type"`
		BlobType      string `xml:"Properties>BlobType"`
		AccessTier    string `xml:"Properties>AccessTier,omitempty"`
		LeaseStatus   string `xml:"Properties>LeaseStatus,omitempty"`
		LeaseState    string `xml:"Properties>LeaseState,omitempty"`
		Metadata      listedMetadata
		Tags          *tagSet `xml:",omitempty"`
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

// MarshalXML writes a name as an element.
func (m listedMetadata) MarshalXML(e *xml.Encoder, start xml.StartElement) error {
	if len(m) == 0 {
		return nil
	}
	if err := e.EncodeToken(start); err != nil {
		return err
	}
	for name, value := range m {
		if err := e.EncodeElement(value, xml.StartElement{Name: xml.Name{Local: name}}); err != nil {
			return err
		}
	}
	return e.EncodeToken(start.End())
}

func (s *Service) listContainers(r *request) *answer {
	prefix := r.query.Get("prefix")
	var names []string
	for name, c := range s.containers {
		if strings.HasPrefix(name, prefix) && c.deleted.IsZero() {
			names = append(names, name)
		}
	}
	page, next := paged(r, names)
	list := &listing{}
	for _, name := range page {
		c := s.containers[name]
		item := listedContainer{Name: name, LastModified: c.lastModified.Format(http.TimeFormat), ETag: strings.Trim(c.etag, `"`)}
		item.LeaseState, item.LeaseStatus = c.lease.state(), leaseStatus(&c.lease)
		if strings.Contains(r.query.Get("include"), "metadata") {
			item.Metadata = c.metadata
		}
		list.Items = append(list.Items, item)
	}
	return xmlAnswer(enumeration{Prefix: prefix, Containers: list, NextMarker: next})
}

func (s *Service) listBlobs(r *request, c *containerState) *answer {
	prefix, delimiter, include := r.query.Get("prefix"), r.query.Get("delimiter"), strings.Join(r.query["include"], ",")
	names := map[string]bool{} // true for what stands for several
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
	var all []string
	for name := range names {
		all = append(all, name)
	}
	page, next := paged(r, all)
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
	return xmlAnswer(enumeration{ContainerName: c.name, Prefix: prefix, Delimiter: delimiter, Blobs: list, NextMarker: next})
}

// listed shows a blob in a list. The ETag is bare there, as the service writes it.
func listed(name string, b *blobState, include string) listedBlob {
	item := listedBlob{
		Name: name, Snapshot: b.snapshot, LastModified: b.lastModified.Format(http.TimeFormat), ETag: strings.Trim(b.etag, `"`),
		ContentLength: len(b.content), ContentType: b.headers["Content-Type"], BlobType: b.kind, AccessTier: b.tier,
	}
	if b.snapshot == "" {
		item.LeaseState, item.LeaseStatus = b.lease.state(), leaseStatus(&b.lease)
	}
	if strings.Contains(include, "metadata") {
		item.Metadata = b.metadata
	}
	if strings.Contains(include, "tags") && len(b.tags) > 0 {
		item.Tags = &tagSet{}
		for key, value := range b.tags {
			item.Tags.Tags = append(item.Tags.Tags, tag{key, value})
		}
	}
	return item
}

func leaseStatus(l *lease) string {
	if l.active() {
		return "locked"
	}
	return "unlocked"
}

// paged sorts names and cuts out the page that the request asks for.
func paged(r *request, names []string) (page []string, next string) {
	slices.Sort(names)
	if marker := r.query.Get("marker"); marker != "" {
		at, _ := slices.BinarySearch(names, marker)
		names = names[at:]
	}
	size := 5000
	if n, err := strconv.Atoi(r.query.Get("maxresults")); err == nil && n > 0 {
		size = min(size, n)
	}
	if len(names) > size {
		return names[:size], names[size]
	}
	return names, ""
}
