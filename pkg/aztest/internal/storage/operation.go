package storage

import (
	"cmp"
	_ "embed"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// The names of the services, as they stand in SAS strings.
const (
	Blob  = "blob"
	Queue = "queue"
	Table = "table"
	File  = "file"
)

// Operation is what an operation of the REST reference needs of a SAS ("Create an account SAS", "Create a service SAS"). Of letters any
// one is enough, or all if they begin with +; none is enough if they are "", and none is needed if they are "*".
type Operation struct {
	Types            string // of resources, one of which an account SAS must have: s(ervice), c(ontainer) or o(bject)
	Account, Service string // letters of an account SAS and of a service SAS
}

var (
	// Operations are the operations by their names. A request that is none of them is not carried out.
	Operations = map[string]Operation{}
	// names has them by service, kind of resource, verb and comp, and comps has the comps of each kind.
	names, comps = map[string]string{}, map[string][]string{}

	//go:embed operations.txt
	operations string
)

func init() {
	for line := range strings.Lines(operations) {
		if words := strings.Fields(line); words[0] != "//" {
			name := strings.Join(words[7:], " ")
			Operations[name] = Operation{words[4], strings.Trim(words[5], "-"), strings.Trim(words[6], "-")}
			kind, comp := words[0]+" "+words[1], strings.SplitN(words[3], "/", 2)[0]
			names[kind+" "+words[2]+" "+words[3]], comps[kind] = name, append(comps[kind], comp)
		}
	}
}

// kindOf returns what a request is for.
func kindOf(service, resource string, q url.Values) string {
	container, rest, _ := strings.Cut(resource, "/")
	kind := "blob"
	switch comp := q.Get("comp"); {
	case container == "", service == Blob && q.Get("restype") == "account":
		kind = "account"
	case service == Blob && rest == "":
		kind = "container"
	case service == Queue && rest == "":
		kind = "queue"
	case service == Queue && rest == "messages":
		kind = "messages"
	case service == Queue:
		kind = "message"
	case service == File && strings.HasSuffix(comp, "handles"):
		kind = "handles"
	case service == File && q.Get("restype") == "directory":
		kind = "directory"
	case service == File && rest == "":
		kind = "share"
	case service == File:
		kind = "file"
	}
	return service + " " + kind
}

// Describe names a request to the Blob, Queue or File service as the REST reference does. One that is no operation has its verb and comp
// for a name.
func Describe(service, method, resource string, q url.Values, h http.Header) string {
	kind, comp, from := kindOf(service, resource, q), q.Get("comp"), ""
	switch {
	case service == Blob && q.Get("restype") == "account":
		comp = "account"
	case service == Queue && q.Get("peekonly") == "true":
		comp = "peek"
	case comp == "lease":
		comp += "/" + h.Get("X-Ms-Lease-Action")
	case method == http.MethodPut && h.Get("X-Ms-Copy-Source") != "":
		switch from = comp + "+url"; {
		case comp == "" && h.Get("X-Ms-Blob-Type") != "":
			from = "url+type"
		case comp == "" && h.Get("X-Ms-Requires-Sync") == "true":
			from = "url+sync"
		case comp == "":
			from = "url"
		}
	}
	verbs := []string{method}
	if method == http.MethodHead {
		verbs = append(verbs, http.MethodGet)
	}
	for _, verb := range verbs {
		for _, one := range []string{from, cmp.Or(comp, "-")} {
			if name := names[kind+" "+verb+" "+one]; name != "" {
				return name
			}
		}
	}
	return strings.TrimSpace(method + " " + q.Get("comp"))
}

// Refuse returns the response to a request that is no operation, or nil. Names of operations, and so the permissions that they need, come
// from comp where there is one: an operation that was carried out by another verb would need the permissions of another one.
func Refuse(service string, r *Request) *Answer {
	resource, comp := r.Container+"/"+r.Blob, cmp.Or(r.Query.Get("comp"), "-")
	_, known := Operations[Describe(service, r.Method, resource, r.Query, r.Header)]
	switch {
	case known, comp == "lease" && r.Method == http.MethodPut: // the lease refuses an action that there is not
		return nil
	case slices.Contains(comps[kindOf(service, resource, r.Query)], comp):
		return Fail(http.StatusMethodNotAllowed, "UnsupportedHttpVerb", "The resource doesn't support specified Http Verb.")
	}
	return NotImplemented()
}
