package change

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/azerr"
)

// UpdateHint adds a hint to the error of an update.
func UpdateHint(err error, c optimistic.Conditions, created bool) error {
	conflict, ok := errors.AsType[*optimistic.ConflictError](err)
	switch {
	case errors.Is(err, optimistic.ErrNotFound) && !created && c.IfMatch == "" && azerr.Absent(err) == "":
		return fail.WithHint(err, "--create creates it")
	case !ok || errors.Is(err, optimistic.ErrExists):
		return err
	case c.IfMatch != "" && conflict.Current != "":
		return fail.WithHint(err, "read the current version and give its ETag, or omit --if-match to change whichever version is current")
	case conflict.Attempts > 1:
		return fail.WithHint(err, "it has many writers: try again, or give a larger --max-attempts")
	}
	return err
}

// PrintDiff prints a dry run. The diff is content, so it is not redacted.
func PrintDiff(f *cli.Factory, r cli.WriteResult, before, after []byte) error {
	from := "a/" + r.Resource
	if r.Created {
		from = "/dev/null"
	}
	r.Diff = Diff(from, "b/"+r.Resource, before, after)
	if !f.Text() {
		return f.Print(r)
	}
	_, err := f.Content().Write([]byte(r.Diff))
	return err
}

// Diff returns the differing lines of two texts, or a line that says that content which is no text differs.
func Diff(from, to string, before, after []byte) string {
	switch {
	case string(before) == string(after):
		return ""
	case !utf8.Valid(before) || !utf8.Valid(after):
		return "binary content of " + strings.TrimPrefix(to, "b/") + " differs\n"
	}
	return udiff.Unified(from, to, string(before), string(after))
}
