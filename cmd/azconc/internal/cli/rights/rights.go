// Package rights has the table of what each verb needs of an account. The help, azconc doctor --for and a page of the documentation are
// made of it, and a test runs each row with exactly these rights and with fewer.
package rights

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed rights.txt
var table string

// Right is what a verb needs of a service: the types of resources and the permissions of an account SAS, and the permissions without which
// it does less, as the note of its row says. Without permissions, no SAS is sufficient.
type Right struct{ Service, Types, Letters, More string }

// Row is a verb, perhaps with a flag or in a state, with what it needs.
type Row struct {
	Verb   string
	Rights []Right
	Note   string
}

// Rows returns the table.
func Rows() (rows []Row) {
	for line := range strings.Lines(table) {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " | ")
		needs, note, _ := strings.Cut(rest, " | ")
		row := Row{Verb: verb, Note: note}
		for need := range strings.SplitSeq(needs, ", ") {
			words := append(strings.Fields(need), "")
			letters, more, _ := strings.Cut(words[2], "+")
			row.Rights = append(row.Rights, Right{words[0], words[1], letters, more})
		}
		rows = append(rows, row)
	}
	return rows
}

// Of returns what a verb needs, such as "queue consume". It is nil if it needs nothing.
func Of(verb string) []Right {
	rows := Rows()
	if at := slices.IndexFunc(rows, func(r Row) bool { return r.Verb == verb }); at >= 0 {
		return rows[at].Rights
	}
	return nil
}

func (r Right) String() string {
	if r.Letters == "" {
		return fmt.Sprintf("%s: the account key, or the role %s", r.Service, r.Role())
	}
	return fmt.Sprintf("%s: a SAS with srt=%s sp=%s, or the role %s", r.Service, r.Types, r.Letters+r.More, r.Role())
}

// Role returns the least privileged built-in role that is sufficient.
func (r Right) Role() string {
	all := r.Letters + r.More
	only := func(letters string) bool { return all != "" && strings.Trim(all, letters) == "" }
	has := func(letter string) bool { return strings.Contains(all, letter) }
	noun := "Storage " + map[string]string{"blob": "Blob Data", "queue": "Queue Data", "table": "Table Data", "file": "File Data Privileged"}[r.Service]
	management := all == "" || r.Types == "s" && !only("l") || r.Service == "file" && (r.Types == "s" || r.Types == "c" && !only("l"))
	switch {
	case r.Service == "blob" && (all == "" || has("t")):
		return noun + " Owner"
	case management && only("rl"):
		return "Reader"
	case management:
		return "Storage Account Contributor"
	case r.Service == "queue" && r.Types == "o" && only("a"):
		return noun + " Message Sender"
	case r.Service == "queue" && r.Types == "o" && only("rp") && has("p"):
		return noun + " Message Processor"
	case only("rl"):
		return noun + " Reader"
	}
	return noun + " Contributor"
}
