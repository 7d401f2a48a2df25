package blobservice

import (
	"net/http"
	"time"

	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

func noSuchBlob() *storage.Answer {
	return storage.Fail(http.StatusNotFound, "BlobNotFound", "The specified blob does not exist.")
}

// Route routes a request to the Blob service.
func (s *Service) Route(r *storage.Request) *storage.Answer {
	restype := r.Query.Get("restype")
	if r.Container == "" && restype == "container" {
		return storage.InvalidQuery()
	}
	if a := storage.Refuse(storage.Blob, r); a != nil {
		return a
	}
	switch {
	case restype == "account":
		return storage.OK(http.StatusOK).Set("x-ms-sku-name", "Standard_LRS").Set("x-ms-account-kind", "StorageV2").Set("x-ms-is-hns-enabled", "false")
	case r.Container == "" && r.Query.Get("comp") == "list":
		return s.listContainers(r)
	case r.Container == "":
		return s.Settings(r)
	}
	if a := storage.InvalidName(r.Container); a != nil {
		return a
	}
	c := s.Find(r.Container)
	if restype == "container" && r.Blob == "" {
		return s.routeContainer(r, c)
	}
	if c == nil || c.Gone() {
		return storage.Missing("Container")
	}
	return s.routeBlobIn(r, c)
}

func (s *Service) routeContainer(r *storage.Request, c *containerState) *storage.Answer {
	comp := r.Query.Get("comp")
	switch {
	case r.Method == http.MethodPut && comp == "":
		return s.createContainer(r)
	case c != nil && c.Gone() && r.Method == http.MethodDelete:
		return storage.OK(http.StatusAccepted) // it is being deleted
	case c == nil || c.Gone():
		return storage.Missing("Container")
	case comp == "list":
		return s.listBlobs(r, c)
	}
	// Containers have no ETag conditions (REST: "Specifying conditional headers"): only dates, and only on writes.
	if !r.Reads() {
		if a := containerDates(r, c); a != nil {
			return a
		}
	}
	if comp == "lease" {
		return c.Lease.Operate(r).Version(&c.Versioned)
	}
	// A lease guards the deletion. Other operations check a lease id only if one is given.
	if a := c.Lease.Check(r, "Container", r.Method == http.MethodDelete); a != nil {
		return a
	}
	switch {
	case r.Method == http.MethodDelete:
		c.Deleted, c.blobs = time.Now(), map[string]*blobState{}
		return storage.OK(http.StatusAccepted)
	case r.Reads():
		a := c.Show(r).Set("x-ms-blob-public-access", c.access)
		if comp == "" {
			c.Lease.Describe(a.Set("x-ms-has-immutability-policy", "false").Set("x-ms-has-legal-hold", "false"))
		}
		return a
	}
	if bad := c.Set(r); bad != nil {
		return bad
	}
	if comp == "acl" {
		c.access = r.Header.Get("X-Ms-Blob-Public-Access")
	}
	s.Touch(&c.Versioned)
	return storage.OK(http.StatusOK).Version(&c.Versioned)
}

// containerDates evaluates the dates. Set Container Metadata supports only If-Modified-Since.
func containerDates(r *storage.Request, c *containerState) *storage.Answer {
	cond, bad := conditionsOf(r, "")
	if bad != nil {
		return bad
	}
	if r.Query.Get("comp") == "metadata" {
		cond.unmodified = time.Time{}
	}
	if !cond.dated(&c.Versioned) {
		return conditionNotMet(http.StatusPreconditionFailed)
	}
	return nil
}

func (s *Service) createContainer(r *storage.Request) *storage.Answer {
	c, bad := s.Create(r, "Container")
	if bad != nil {
		return bad
	}
	c.access = r.Header.Get("X-Ms-Blob-Public-Access")
	return storage.OK(http.StatusCreated).Version(&c.Versioned)
}
