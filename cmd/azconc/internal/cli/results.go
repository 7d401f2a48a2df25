package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/azerr"
)

type DeleteResult struct {
	Outcome   string `json:"outcome"`
	Resource  string `json:"resource"`
	BaseETag  string `json:"base_etag,omitempty"`
	Ambiguous int    `json:"ambiguous"`
	Resolved  int    `json:"resolved"`
	Requests  int64  `json:"requests"`
	ElapsedMS int64  `json:"elapsed_ms"`
}

func (r DeleteResult) Text(w io.Writer) { fmt.Fprintf(w, "%s %s\n", r.Outcome, r.Resource) }

// OwnMetadata is the user's metadata: names in lower case, without what azconc keeps there for itself.
func OwnMetadata(raw map[string]*string) map[string]string {
	out := make(map[string]string, len(raw))
	for name, value := range raw {
		if name = strings.ToLower(name); name != optimistic.LineageKey && name != optimistic.OperationsKey && name != CreateStamp {
			out[name] = Deref(value)
		}
	}
	return out
}

// UpdateHint adds the way out of an update that could not be made.
func UpdateHint(err error, c optimistic.Conditions, created bool) error {
	conflict, ok := errors.AsType[*optimistic.ConflictError](err)
	switch {
	case errors.Is(err, optimistic.ErrNotFound) && !created && c.IfMatch == "" && !azerr.Has(err, "ContainerNotFound"):
		return WithHint(err, "--create creates it")
	case !ok || errors.Is(err, optimistic.ErrExists):
		return err
	case c.IfMatch != "" && conflict.Current != "":
		return WithHint(err, "read the current version and give its ETag, or omit --if-match to change whichever version is current")
	case conflict.Attempts > 1:
		return WithHint(err, "it has many writers: try again, or give a larger --max-attempts")
	}
	return err
}

// PrintDiff prints a dry run. The diff is content, so it goes out as it is.
func PrintDiff(f *Factory, r WriteResult, before, after []byte) error {
	from, to := "a/"+r.Resource, "b/"+r.Resource
	if r.Created {
		from = "/dev/null"
	}
	switch {
	case !utf8.Valid(before) || !utf8.Valid(after):
		if string(before) != string(after) {
			r.Diff = "binary content of " + r.Resource + " differs\n"
		}
	default:
		r.Diff = udiff.Unified(from, to, string(before), string(after))
	}
	if f.JSON() {
		return f.Print(r)
	}
	_, err := f.Content().Write([]byte(r.Diff))
	return err
}
