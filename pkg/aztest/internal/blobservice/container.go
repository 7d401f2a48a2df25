package blobservice

import (
	"encoding/xml"
	"net/http"
	"time"

	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

func noSuchContainer() *storage.Answer {
	return storage.Fail(http.StatusNotFound, "ContainerNotFound", "The specified container does not exist.")
}

func noSuchBlob() *storage.Answer {
	return storage.Fail(http.StatusNotFound, "BlobNotFound", "The specified blob does not exist.")
}

// Route routes a request to the Blob service.
func (s *Service) Route(r *storage.Request) *storage.Answer {
	if r.Query.Get("restype") == "account" {
		return storage.OK(http.StatusOK).Set("x-ms-sku-name", "Standard_LRS").Set("x-ms-account-kind", "StorageV2").Set("x-ms-is-hns-enabled", "false")
	}
	if r.Container == "" {
		return s.routeAccount(r)
	}
	if !storage.ContainerName.MatchString(r.Container) || len(r.Container) > 63 || len(r.Container) < 3 {
		return storage.Fail(http.StatusBadRequest, "InvalidResourceName", "The specified resource name contains invalid characters.")
	}
	c := s.containers[r.Container]
	if c != nil && !c.deleted.IsZero() && time.Since(c.deleted) >= s.Options.Deletion {
		delete(s.containers, r.Container)
		c = nil
	}
	if r.Query.Get("restype") == "container" && r.Blob == "" {
		return s.routeContainer(r, c)
	}
	if c == nil || !c.deleted.IsZero() {
		return noSuchContainer()
	}
	return s.routeBlobIn(r, c)
}

// routeAccount carries out operations on the account: the list of containers, and the service's properties, which have
// no version and no condition: the last writer wins.
func (s *Service) routeAccount(r *storage.Request) *storage.Answer {
	switch comp := r.Query.Get("comp"); {
	case r.Query.Get("restype") == "container":
		return storage.InvalidQuery()
	case comp == "list" && r.Method == http.MethodGet:
		return s.listContainers(r)
	case comp == "blobs" && r.Method == http.MethodGet:
		return s.findByTags(r, "")
	case comp == "properties" && r.Method == http.MethodPut:
		s.properties = r.Body
		return storage.OK(http.StatusAccepted)
	case comp == "properties" && r.Method == http.MethodGet:
		a := storage.OK(http.StatusOK).Set("Content-Type", "application/xml")
		if a.Body = s.properties; len(a.Body) == 0 {
			a.Body = []byte(xml.Header + "<StorageServiceProperties/>")
		}
		return a
	}
	return storage.NotImplemented()
}

var containerVerbs = storage.Verbs{
	"": "GET HEAD PUT DELETE", "metadata": "GET HEAD PUT", "acl": "GET HEAD PUT", "lease": "PUT", "list": "GET", "blobs": "GET",
}

func (s *Service) routeContainer(r *storage.Request, c *containerState) *storage.Answer {
	comp := r.Query.Get("comp")
	if a := containerVerbs.Refuse(r); a != nil {
		return a
	}
	if r.Method == http.MethodPut && comp == "" {
		return s.createContainer(r, c)
	}
	if c != nil && !c.deleted.IsZero() && r.Method == http.MethodDelete {
		return storage.OK(http.StatusAccepted) // it is being deleted
	}
	if c == nil || !c.deleted.IsZero() {
		return noSuchContainer()
	}
	read := r.Method == http.MethodGet || r.Method == http.MethodHead
	if comp == "list" {
		return s.listBlobs(r, c)
	}
	if comp == "blobs" && read {
		return s.findByTags(r, c.name)
	}
	// Containers have no ETag conditions (REST: "Specifying conditional headers"): only dates, and only on writes.
	if !read {
		if a := containerDates(r, c); a != nil {
			return a
		}
	}
	if comp == "lease" {
		return c.lease.Operate(r).Version(c.etag, c.lastModified)
	}
	// A lease guards the deletion. Other operations check a lease id only if one is given.
	if a := c.lease.Check(r, "Container", r.Method == http.MethodDelete); a != nil {
		return a
	}
	switch {
	case r.Method == http.MethodDelete:
		c.deleted = time.Now()
		c.blobs = map[string]*blobState{}
		return storage.OK(http.StatusAccepted)
	case comp == "metadata" && !read:
		metadata, a := storage.MetadataOf(r)
		if a != nil {
			return a
		}
		c.metadata = metadata
		s.touchContainer(c)
		return storage.OK(http.StatusOK).Version(c.etag, c.lastModified)
	case comp == "acl" && !read:
		policies, bad := storage.PoliciesIn(r.Body)
		if bad != nil {
			return bad
		}
		c.acl, c.access = policies, r.Header.Get("X-Ms-Blob-Public-Access")
		s.touchContainer(c)
		return storage.OK(http.StatusOK).Version(c.etag, c.lastModified)
	case comp == "acl":
		a := storage.OK(http.StatusOK).Version(c.etag, c.lastModified).Set("x-ms-blob-public-access", c.access).Set("Content-Type", "application/xml")
		if a.Body = c.acl; len(a.Body) == 0 {
			a.Body = []byte(xml.Header + "<SignedIdentifiers/>")
		}
		return a
	case comp == "" || comp == "metadata":
		a := storage.OK(http.StatusOK).Version(c.etag, c.lastModified).Set("x-ms-blob-public-access", c.access)
		for name, value := range c.metadata {
			a.Header.Set("x-ms-meta-"+name, value) // also if it is empty
		}
		if comp == "" {
			a.Set("x-ms-has-immutability-policy", "false").Set("x-ms-has-legal-hold", "false")
			c.lease.Describe(a)
		}
		return a
	}
	return storage.NotImplemented()
}

func (s *Service) touchContainer(c *containerState) {
	c.etag, c.lastModified = s.NewETag(), storage.Now()
	c.lease.ForgetIfOver()
}

// containerDates evaluates the dates. Set Container Metadata supports only If-Modified-Since.
func containerDates(r *storage.Request, c *containerState) *storage.Answer {
	cond, bad := conditionsOf(r, "")
	if bad != nil {
		return bad
	}
	if r.Query.Get("comp") == "metadata" {
		cond.hasUnmodified = false
	}
	if cond.hasModified && !c.lastModified.After(cond.modified) || cond.hasUnmodified && c.lastModified.After(cond.unmodified) {
		return conditionNotMet(http.StatusPreconditionFailed)
	}
	return nil
}

func (s *Service) createContainer(r *storage.Request, c *containerState) *storage.Answer {
	switch {
	case c != nil && c.deleted.IsZero():
		return storage.Fail(http.StatusConflict, "ContainerAlreadyExists", "The specified container already exists.")
	case c != nil:
		return storage.Fail(http.StatusConflict, "ContainerBeingDeleted", "The specified container is being deleted. Try operation later.")
	}
	metadata, a := storage.MetadataOf(r)
	if a != nil {
		return a
	}
	c = s.newContainer(r.Container)
	c.metadata, c.access = metadata, r.Header.Get("X-Ms-Blob-Public-Access")
	s.containers[r.Container] = c
	return storage.OK(http.StatusCreated).Version(c.etag, c.lastModified)
}
