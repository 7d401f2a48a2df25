package auth

import (
	"net/http"
	"strings"
)

// need is what an operation needs of a SAS.
type need struct {
	on      string // the type of the resource: s(ervice), c(ontainer) or o(bject)
	account string // letters of an account SAS: any one is enough, or all if they begin with +
	service string // letters of a service SAS, likewise; "" if none is enough
}

const transaction = "Entity Group Transaction"

// Get Account Information, Blob Batch and transactions need no letter themselves.
const anyLetter = "*"

// needs are those of the REST reference: "Create an account SAS" (Account SAS permissions by operation) and "Create a
// service SAS".
var needs = map[string]need{
	"List Containers": {"s", "l", ""}, "List Queues": {"s", "l", ""}, "List Shares": {"s", "l", ""}, "Query Tables": {"c", "l", ""},
	"Get Account Information": {"sco", anyLetter, anyLetter}, "Find Blobs by Tags": {"sc", "f", "f"},
	"Blob Batch": {"sco", anyLetter, anyLetter}, transaction: {"sco", anyLetter, anyLetter},

	"Create Container": {"c", "cw", ""}, "Create Queue": {"c", "cw", ""}, "Create Share": {"c", "cw", ""}, "Create Table": {"c", "cw", ""},
	"Delete Container": {"c", "d", ""}, "Delete Queue": {"c", "d", ""}, "Delete Share": {"c", "d", ""}, "Delete Table": {"c", "d", ""},
	"Get Container Properties": {"c", "r", ""}, "Get Container Metadata": {"c", "r", ""}, "Set Container Metadata": {"c", "w", ""},
	"Get Queue Metadata": {"c", "r", "r"}, "Set Queue Metadata": {"c", "w", ""},
	"Get Share Properties": {"c", "r", ""}, "Get Share Metadata": {"c", "r", ""}, "Set Share Metadata": {"c", "w", ""}, "Set Share Properties": {"c", "w", ""},
	"Break Container Lease": {"c", "dw", ""}, "Break Share Lease": {"c", "dw", ""},
	"List Blobs": {"c", "l", "l"}, "List Directories and Files": {"c", "l", "l"},
	"List Handles": {"o", "lr", "lr"},

	"Put Blob": {"o", "cw", "cw"}, "Put Blob From URL": {"o", "cw", "cw"}, "Copy Blob": {"o", "cw", "cw"}, "Copy Blob From URL": {"o", "cw", "cw"},
	"Snapshot Blob": {"o", "cw", "cw"}, "Append Block": {"o", "aw", "aw"}, "Append Block From URL": {"o", "aw", "aw"},
	"Get Blob Tags": {"o", "t", "t"}, "Set Blob Tags": {"o", "t", "t"}, "Delete Blob": {"o", "d", "d"}, "Break Blob Lease": {"o", "dw", "dw"},
	"Create File": {"o", "cw", "cw"}, "Copy File": {"o", "cw", "cw"}, "Create Directory": {"o", "cw", "cw"}, "Delete File": {"o", "d", "d"}, "Delete Directory": {"o", "d", "d"},
	"Break File Lease": {"o", "dw", "dw"},

	"Put Message": {"o", "a", "a"}, "Get Messages": {"o", "p", "p"}, "Delete Message": {"o", "p", "p"}, "Peek Messages": {"o", "r", "r"},
	"Update Message": {"o", "u", "u"}, "Clear Messages": {"o", "d", ""},

	"Query Entities": {"o", "r", "r"}, "Insert Entity": {"o", "a", "a"}, "Update Entity": {"o", "u", "u"}, "Merge Entity": {"o", "u", "u"},
	"Insert Or Replace Entity": {"o", "+au", "+au"}, "Insert Or Merge Entity": {"o", "+au", "+au"}, "Delete Entity": {"o", "d", "d"},
}

// needOf returns what an operation needs. Those that are not listed read with r, and write with w.
func needOf(r *Request) need {
	if n, there := needs[r.Op]; there {
		return n
	}
	letter := "w"
	if r.HTTP.Method == http.MethodGet || r.HTTP.Method == http.MethodHead {
		letter = "r"
	}
	switch {
	case strings.HasSuffix(r.Op, " ACL"):
		return need{"c", "", ""} // only a key reads and writes access policies
	case r.Container == "":
		return need{"s", letter, ""}
	case strings.HasSuffix(r.Op, "Container Lease"), strings.HasSuffix(r.Op, "Share Lease"), r.Op == "Get Share Stats":
		return need{"c", letter, ""}
	}
	return need{"o", letter, letter}
}

// Check returns why an operation is not permitted, or nil.
func (g *Grant) Check(r *Request) *Denial {
	n := needOf(r)
	letters := n.service
	if g.service == Table && !g.account && r.Op != transaction && !strings.EqualFold(r.Container, g.table) {
		return denied("AuthorizationFailure", "") // an operation of a transaction, on another table
	}
	if g.account {
		letters = n.account
		if !strings.ContainsAny(g.types, n.on) {
			return denied("AuthorizationResourceTypeMismatch", "resource type")
		}
	}
	all, both := strings.CutPrefix(letters, "+")
	switch {
	case letters == anyLetter:
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
	return g.service == Blob && letters == "cw" && r.Op != "Snapshot Blob" && r.Op != "Create Container" && !strings.Contains(g.permissions, "w")
}
