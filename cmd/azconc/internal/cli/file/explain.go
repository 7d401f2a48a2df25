package file

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pkg/azerr"
)

func newExplainCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain <share/path> | <code>",
		Short: "Explain what blocks a file, or what an error code means",
		Long: `Show what currently prevents a file from being written or deleted: a lease, SMB clients that have it open, a pending
deletion, its read-only attribute. Or, given an error code of the service, explain what it means, whether it is temporary, and
how to resolve it; then no request is sent.`,
		Example: "  azconc file explain reports/q3.xlsx\n  azconc file explain SharingViolation",
		Args:    cli.ResourceArgs("<share/path> or <code>"),
	}
	var on ref.File // none for a code
	parse := func(arg string) (string, error) {
		if !strings.Contains(arg, "/") {
			return arg, nil
		}
		var err error
		on, err = ref.ParseFile(arg)
		return "", err
	}
	noClient := func(string) (struct{}, error) { return struct{}{}, nil } // a code needs no account
	return cli.On(f, cmd, parse, noClient, func(ctx context.Context, code string, _ struct{}) (cli.Result, error) {
		if code != "" {
			return explainCode(code)
		}
		return explainFile(ctx, f, on)
	})
}

type codeExplained struct {
	Outcome string `json:"outcome"`
	Code    string `json:"code"`
	Kind    string `json:"kind"`
	Reason  string `json:"reason,omitempty"`
	Means   string `json:"means"`
	Passes  bool   `json:"passes"`
	Until   string `json:"until"`
	Do      string `json:"do"`
}

func (r codeExplained) Text(w io.Writer) {
	passes := "no"
	if r.Passes {
		passes = "yes"
	}
	show.Fields(w, "code", r.Code, "kind", r.Kind, "means", r.Means, "passes", passes, "until", r.Until, "do", r.Do)
}

func explainCode(code string) (cli.Result, error) {
	e, ok := azerr.Explain(code)
	if !ok {
		return nil, fail.WithHint(fail.Usagef("%q is not an error code of the service, nor a file", code), "codes are spelled like SharingViolation, files like share/path")
	}
	r := codeExplained{Outcome: "explained", Code: e.Code, Kind: e.Kind.String(), Means: e.Means, Passes: e.Passes, Until: e.Until, Do: e.Do}
	if e.Reason != azerr.None {
		r.Reason = e.Reason.String()
	}
	return r, nil
}

// hindrance is something that blocks a write or a deletion.
type hindrance struct {
	What   string `json:"what"` // lease, handle, delete pending, read only
	Who    string `json:"who,omitempty"`
	Since  string `json:"since,omitempty"`
	Writes string `json:"writes"` // what happens to a write through REST
	Do     string `json:"do"`
}

type explained struct {
	Outcome    string      `json:"outcome"`
	Resource   string      `json:"resource"`
	Hindrances []hindrance `json:"hindrances"`
	Requests   int64       `json:"requests"`
}

func (r explained) Text(w io.Writer) {
	for i, h := range r.Hindrances {
		if i > 0 {
			_, _ = io.WriteString(w, "\n")
		}
		show.Fields(w, "blocked", h.What, "who", h.Who, "since", h.Since, "writes", h.Writes, "do", h.Do)
	}
	if len(r.Hindrances) == 0 {
		_, _ = io.WriteString(w, "nothing blocks "+r.Resource+"\n")
	}
}

func explainFile(ctx context.Context, f *cli.Factory, on ref.File) (cli.Result, error) {
	client, err := f.File(on)
	if err != nil {
		return nil, err
	}
	r := explained{Outcome: "free", Resource: on.String(), Hindrances: []hindrance{}}
	add := func(h hindrance) { r.Outcome, r.Hindrances = "hindered", append(r.Hindrances, h) }
	seen, err := showFile(ctx, on, client)
	if answer := azerr.Classify(err); answer.Reason == azerr.DeletePending {
		e, _ := azerr.Explain(answer.Code)
		add(hindrance{What: "delete pending", Writes: "refused, " + answer.Code, Do: e.Do})
	} else if err != nil {
		return nil, err
	}
	if strings.Contains(seen.Attributes, "ReadOnly") {
		e, _ := azerr.Explain("ReadOnlyAttribute")
		add(hindrance{What: "read-only attribute", Writes: "refused, ReadOnlyAttribute", Do: e.Do})
	}
	if l := seen.Lease; l.Status == "locked" {
		e, _ := azerr.Explain("LeaseIdMissing")
		h := hindrance{What: "lease", Who: l.Owner, Since: l.Since, Writes: "refused without its id, LeaseIdMissing", Do: e.Do}
		if l.Heard != "" {
			h.Who = strings.TrimSpace(h.Who + " (last heartbeat " + l.Heard + ")")
		}
		add(h)
	}
	for _, h := range seen.Handles {
		e, _ := azerr.Explain("SharingViolation")
		add(hindrance{What: "open over SMB", Who: h.who, Since: h.Opened, Writes: "refused with SharingViolation unless the client shares writing; deletion is refused", Do: e.Do})
	}
	r.Requests = f.Requests.Load()
	return r, nil
}
