package queue

import (
	"fmt"
	"slices"
	"strings"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/idempotent"
)

// dedupeMode is a value of --dedupe.
type dedupeMode struct {
	mode idempotent.Dedupe
	help string
}

// dedupeModes are all of them, with the default first. What a mode needs and offers, the library says.
var dedupeModes = []dedupeMode{
	{idempotent.DedupeOwner, "one of several copies of a message is handled, and the others are deleted (the default)"},
	{idempotent.DedupeComplete, "as owner, and the output of the command is stored, and printed again for a copy (all of it, up to 64 KiB)"},
	{idempotent.DedupeRedelivery, "only a message that was handled and could not be deleted is recorded; copies are handled like other messages"},
	{idempotent.DedupeNone, "no table is used, and copies are handled like other messages"},
}

// dedupeHelp describes the modes, one a line.
func dedupeHelp() string {
	var b strings.Builder
	for _, m := range dedupeModes {
		fmt.Fprintf(&b, "  %-12s%s\n", m.mode, m.help)
	}
	return b.String()
}

// dedupeNames lists the modes that are wanted.
func dedupeNames(separator, last string, wanted func(idempotent.Dedupe) bool) string {
	var names []string
	for _, m := range dedupeModes {
		if wanted(m.mode) {
			names = append(names, string(m.mode))
		}
	}
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], separator) + last + names[n-1]
	}
	return strings.Join(names, "")
}

func anyDedupe(idempotent.Dedupe) bool { return true }

// mode is the mode of a consumer: the one that was chosen; without that, that of its inbox, or the default.
func (opts *consumeOptions) mode() idempotent.Dedupe {
	switch {
	case opts.Options.Dedupe != "":
		return opts.Options.Dedupe
	case opts.Inbox != "" && opts.Markers == "":
		return idempotent.DedupeInbox
	}
	return dedupeModes[0].mode
}

// checkMode holds the mode against what else was chosen.
func (opts *consumeOptions) checkMode() error {
	mode := opts.mode()
	switch {
	case opts.Options.Dedupe != "" && !slices.ContainsFunc(dedupeModes, func(m dedupeMode) bool { return m.mode == mode }):
		return fail.Usagef("--dedupe %q is neither %s", mode, dedupeNames(", ", " nor ", anyDedupe))
	case opts.Session != "" && !mode.AllowsSessions():
		return fail.WithHint(fail.Usagef("--sessions needs --markers, with --dedupe %s", dedupeNames(", ", " or ", idempotent.Dedupe.AllowsSessions)),
			"the marker of a message names the session")
	case opts.Inbox != "" && mode.StoresResults():
		return fail.Usagef("--inbox applies the command's output, and --dedupe %s stores it: choose one", mode)
	}
	return nil
}
