package auth

import (
	"net/http"
	"strings"

	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

const transaction = "Entity Group Transaction"

// needOf returns what an operation needs. What is no operation reads with r, and writes with w.
func needOf(r *Request) storage.Operation {
	if op, there := storage.Operations[r.Op]; there {
		return op
	}
	letter := "w"
	if r.HTTP.Method == http.MethodGet || r.HTTP.Method == http.MethodHead {
		letter = "r"
	}
	if r.Container == "" {
		return storage.Operation{Types: "s", Account: letter}
	}
	return storage.Operation{Types: "o", Account: letter, Service: letter}
}

// Check returns why an operation is not permitted, or nil.
func (g *Grant) Check(r *Request) *Denial {
	n := needOf(r)
	letters := n.Service
	if g.service == storage.Table && !g.account && r.Op != transaction && !strings.EqualFold(r.Container, g.table) {
		return denied("AuthorizationFailure", "") // an operation of a transaction, on another table
	}
	if g.account {
		letters = n.Account
		if !strings.ContainsAny(g.types, n.Types) {
			return denied("AuthorizationResourceTypeMismatch", "resource type")
		}
	}
	all, both := strings.CutPrefix(letters, "+")
	switch {
	case letters == "*":
	case letters == "":
		return denied("AuthorizationFailure", "")
	case both:
		for _, letter := range all {
			if !strings.ContainsRune(g.permissions, letter) {
				return denied("AuthorizationPermissionMismatch", "permission")
			}
		}
	case !strings.ContainsAny(g.permissions, letters):
		return denied("AuthorizationPermissionMismatch", "permission")
	case g.createsOnly(r, letters) && g.look.Exists(g.service, r.Container, r.Path):
		return &Denial{Status: http.StatusForbidden, Code: "UnauthorizedBlobOverwrite", Message: "This request is not authorized to perform blob overwrites."}
	}
	return nil
}

// createsOnly reports whether the operation writes a whole blob with a SAS that permits new ones only.
func (g *Grant) createsOnly(r *Request, letters string) bool {
	return g.service == storage.Blob && letters == "cw" && r.Op != "Snapshot Blob" && r.Op != "Create Container" && !strings.Contains(g.permissions, "w")
}
