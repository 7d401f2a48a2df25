// Package storage is what the services of an account have in common: requests and responses of the REST interface, leases,
// metadata, ranges, stored access policies, and the account's own state. The packages of the services build on it.
//
// Nothing here locks: package aztest calls a service with its lock held.
package storage

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Account is what the services of an account share.
type Account struct {
	Name      string
	Deletion  time.Duration // how long a deleted name stays taken
	Anonymous bool          // every request is authorized

	Endpoint string // of the service that the current request was sent to
	Etags    uint64 // given out so far
}

// NewETag returns a new ETag, in the form that the Blob service uses.
func (a *Account) NewETag() string {
	a.Etags++
	return `"0x8DE` + fmt.Sprintf("%012X", a.Etags*2654435761%(1<<48)) + `"`
}

// Versioned is what has a version, and a lease that ends with it.
type Versioned struct {
	ETag         string
	LastModified time.Time
	Lease        Lease
}

// Touch gives a new version. It also ends an expired lease: its holder can no longer renew it (REST: "Lease Blob", a lease may be renewed
// after expiry as long as the blob has not been modified).
func (a *Account) Touch(v *Versioned) {
	v.ETag, v.LastModified = a.NewETag(), Now()
	v.Lease.ForgetIfOver()
}

// Resource is what containers, queues, shares and tables have in common. Queues and tables have no version.
type Resource struct {
	Versioned
	Name     string
	Metadata map[string]string
	Policies []byte    // the stored access policies, as they are shown
	Deleted  time.Time // when it was deleted; zero while it lives
}

func (r *Resource) resource() *Resource { return r }

// Gone reports whether the resource is being deleted.
func (r *Resource) Gone() bool { return !r.Deleted.IsZero() }

// Set sets the metadata or the access policies, and returns why they are refused, or nil.
func (r *Resource) Set(request *Request) (bad *Answer) {
	if request.Query.Get("comp") == "acl" {
		policies, bad := policiesIn(request.Body)
		if bad == nil {
			r.Policies = policies
		}
		return bad
	}
	metadata, bad := MetadataOf(request)
	if bad == nil {
		r.Metadata = metadata
	}
	return bad
}

// Show returns the metadata or the access policies.
func (r *Resource) Show(request *Request) *Answer {
	a := OK(http.StatusOK).Describing(r.Metadata)
	if request.Query.Get("comp") == "acl" {
		a = stored(r.Policies, "SignedIdentifiers")
	}
	if r.ETag != "" {
		a.Version(&r.Versioned)
	}
	return a
}

// Service is what the services of an account have in common: resources with names, and settings that have no version, so that the last
// writer wins. K is a pointer to a type that embeds Resource.
type Service[K interface{ resource() *Resource }] struct {
	*Account
	Make     func() K     // returns an empty resource
	named    map[string]K // by name in lower case: those of tables are case-insensitive, and others have no capitals
	settings []byte
}

// Find returns a resource, even one that is being deleted. Nil means that the name is free.
func (s *Service[K]) Find(name string) (found K) {
	name = strings.ToLower(name)
	one, there := s.named[name]
	if !there || one.resource().Gone() && time.Since(one.resource().Deleted) >= s.Deletion {
		delete(s.named, name)
		return found
	}
	return one
}

// Alive returns a resource that is not being deleted, or nil.
func (s *Service[K]) Alive(name string) (found K) {
	if one, there := s.named[name]; there && !one.resource().Gone() {
		return one
	}
	return found
}

// Add creates a resource.
func (s *Service[K]) Add(name string, metadata map[string]string) K {
	one := s.Make()
	one.resource().Name, one.resource().Metadata = name, metadata
	if s.named == nil {
		s.named = map[string]K{}
	}
	s.named[strings.ToLower(name)] = one
	return one
}

// Create creates the resource that a request names, of a kind such as Container.
func (s *Service[K]) Create(r *Request, kind string) (made K, bad *Answer) {
	s.Find(r.Container) // forgets one that was deleted long ago
	one, there := s.named[r.Container]
	metadata, bad := MetadataOf(r)
	switch {
	case there && one.resource().Gone():
		bad = BeingDeleted(kind)
	case there:
		bad = AlreadyThere(kind)
	}
	if bad == nil {
		made = s.Add(r.Container, metadata)
	}
	return made, bad
}

// Missing, AlreadyThere and BeingDeleted are the responses to a request for a resource that does not exist, for another one of its
// name, and for one that was just deleted.
func Missing(kind string) *Answer {
	return Fail(http.StatusNotFound, kind+"NotFound", "The specified "+strings.ToLower(kind)+" does not exist.")
}

func AlreadyThere(kind string) *Answer {
	return Fail(http.StatusConflict, kind+"AlreadyExists", "The specified "+strings.ToLower(kind)+" already exists.")
}

func BeingDeleted(kind string) *Answer {
	return Fail(http.StatusConflict, kind+"BeingDeleted", "The specified "+strings.ToLower(kind)+" is being deleted. Try operation later.")
}

// Ensure creates a resource if it is missing.
func (s *Service[K]) Ensure(name string) {
	s.Find(name) // forgets one that was deleted long ago
	if _, there := s.named[strings.ToLower(name)]; !there {
		s.Add(name, nil)
	}
}

// Names returns the names of the resources that are not being deleted, in lower case and sorted.
func (s *Service[K]) Names(prefix string) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(s.named)) {
		if strings.HasPrefix(name, prefix) && !s.named[name].resource().Gone() {
			names = append(names, name)
		}
	}
	return names
}

// Page returns the page of their names that a request asks for. Markers begin with the account; others are out of range.
func (s *Service[K]) Page(r *Request) (page []string, marker string, bad *Answer) {
	prefix := "/" + s.Name + "/"
	from, ours := strings.CutPrefix(r.Query.Get("marker"), prefix)
	if page, marker, bad = Page(r, s.Names(r.Query.Get("prefix")), from); bad == nil && from != "" && !ours {
		bad = BadMarker()
	}
	if marker != "" {
		marker = prefix + marker
	}
	return page, marker, bad
}

// Policies returns the stored access policies of a resource.
func (s *Service[K]) Policies(name string) []byte {
	if one, there := s.named[strings.ToLower(name)]; there {
		return one.resource().Policies
	}
	return nil
}

// Settings sets or shows the service's properties.
func (s *Service[K]) Settings(r *Request) *Answer {
	if r.Method == http.MethodPut {
		s.settings = r.Body
		return OK(http.StatusAccepted)
	}
	return stored(s.settings, "StorageServiceProperties")
}

var resourceName = regexp.MustCompile(`^(\$root|\$logs|\$web|[a-z0-9](?:-?[a-z0-9])+)$`)

// InvalidName returns the response to a name that no container, share or queue can have, or nil.
func InvalidName(name string) *Answer {
	if resourceName.MatchString(name) && len(name) >= 3 && len(name) <= 63 {
		return nil
	}
	return Fail(http.StatusBadRequest, "InvalidResourceName", "The specified resource name contains invalid characters.")
}
