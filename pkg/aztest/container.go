package aztest

import (
	"encoding/xml"
	"net/http"
	"regexp"
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

// routeBlob routes a request to the Blob service.
func (s *Service) routeBlob(r *request) *answer {
	if r.query.Get("restype") == "account" {
		return ok(http.StatusOK).set("x-ms-sku-name", "Standard_LRS").set("x-ms-account-kind", "StorageV2").set("x-ms-is-hns-enabled", "false")
	}
	if r.container == "" {
		return s.routeAccount(r)
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

// routeAccount carries out operations on the account: the list of containers, and the service's properties, which have
// no version and no condition: the last writer wins.
func (s *Service) routeAccount(r *request) *answer {
	switch comp := r.query.Get("comp"); {
	case r.query.Get("restype") == "container":
		return invalidQuery()
	case comp == "list" && r.method == http.MethodGet:
		return s.listContainers(r)
	case comp == "properties" && r.method == http.MethodPut:
		s.properties = r.body
		return ok(http.StatusAccepted)
	case comp == "properties" && r.method == http.MethodGet:
		a := ok(http.StatusOK).set("Content-Type", "application/xml")
		if a.body = s.properties; len(a.body) == 0 {
			a.body = []byte(xml.Header + "<StorageServiceProperties/>")
		}
		return a
	}
	return notImplemented()
}

func (s *Service) routeContainer(r *request, c *containerState) *answer {
	comp := r.query.Get("comp")
	if r.method == http.MethodPut && comp == "" {
		return s.createContainer(r, c)
	}
	if c != nil && !c.deleted.IsZero() && r.method == http.MethodDelete {
		return ok(http.StatusAccepted) // it is being deleted
	}
	if c == nil || !c.deleted.IsZero() {
		return noSuchContainer()
	}
	read := r.method == http.MethodGet || r.method == http.MethodHead
	if comp == "list" {
		return s.listBlobs(r, c)
	}
	// Containers have no ETag conditions (REST: "Specifying conditional headers"): only dates, and only on writes.
	if !read {
		if a := containerDates(r, c); a != nil {
			return a
		}
	}
	if comp == "lease" {
		return c.lease.operate(r).version(c.etag, c.lastModified)
	}
	// A lease guards the deletion. Other operations check a lease id only if one is given.
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
		policies, bad := policiesIn(r.body)
		if bad != nil {
			return bad
		}
		c.acl, c.access = policies, r.header.Get("X-Ms-Blob-Public-Access")
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
			a.header.Set("x-ms-meta-"+name, value) // also if it is empty
		}
		if comp == "" {
			a.set("x-ms-has-immutability-policy", "false").set("x-ms-has-legal-hold", "false")
			c.lease.describe(a)
		}
		return a
	}
	return notImplemented()
}

func (s *Service) touchContainer(c *containerState) {
	c.etag, c.lastModified = s.newETag(), now()
	c.lease.forgetIfOver()
}

// containerDates evaluates the dates. Set Container Metadata supports only If-Modified-Since.
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
