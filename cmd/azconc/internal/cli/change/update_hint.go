package change

import (
	"errors"
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
	if !f.Text() {
		return f.Print(r)
	}
	_, err := f.Content().Write([]byte(r.Diff))
	return err
}
