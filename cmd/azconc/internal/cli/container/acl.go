package container

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/change"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/settings"
)

func newACLCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("acl", "Show and change a container's access control list",
		aclShowVerb().Command(f),
		aclSetVerb().Command(f),
	)
}

// aclDocument is an access control list as JSON, in and out.
type aclDocument struct {
	Access   string        `json:"access"`
	Policies []PolicyShown `json:"policies"`
}

type PolicyShown struct {
	ID          string `json:"id"`
	Start       string `json:"start,omitempty"`
	Expiry      string `json:"expiry,omitempty"`
	Permissions string `json:"permissions"`
}

func documentOf(acl settings.ACL) aclDocument {
	return aclDocument{Access: string(acl.Access), Policies: ShowPolicies(acl.Policies)}
}

func ShowPolicies(policies []settings.AccessPolicy) []PolicyShown {
	shown := []PolicyShown{}
	for _, p := range policies {
		shown = append(shown, PolicyShown{ID: p.ID, Start: show.Time(p.Start), Expiry: show.Time(p.Expiry), Permissions: p.Permissions})
	}
	return shown
}

// parseACL parses what documentOf wrote. An error names the faulty member.
func parseACL(data []byte) (settings.ACL, error) {
	var doc aclDocument
	if err := fail.StrictJSON(data, "an access control list", &doc); err != nil {
		return settings.ACL{}, err
	}
	if doc.Access != "" && doc.Access != "blob" && doc.Access != "container" {
		return settings.ACL{}, fail.Usagef("access %q is neither blob nor container, nor empty", doc.Access)
	}
	policies, err := ParsePolicies(doc.Policies)
	return settings.ACL{Access: container.PublicAccessType(doc.Access), Policies: policies}, err
}

func ParsePolicies(shown []PolicyShown) (policies []settings.AccessPolicy, err error) {
	for _, p := range shown {
		policy := settings.AccessPolicy{ID: p.ID, Permissions: p.Permissions}
		for _, at := range []struct {
			name string
			text string
			into *time.Time
		}{{"start", p.Start, &policy.Start}, {"expiry", p.Expiry, &policy.Expiry}} {
			t, err := flags.ParseTime(at.name, at.text)
			if err != nil {
				return nil, fail.Usagef("policy %q: %s %q is not a time", p.ID, at.name, at.text)
			}
			*at.into = t
		}
		policies = append(policies, policy)
	}
	return policies, nil
}

type aclOptions struct {
	Container ref.Blob
	File      string
	LeaseID   string
}

func (o *aclOptions) resource(arg string) (err error) {
	o.Container, err = ref.ParseContainer(arg)
	return err
}

func aclShowVerb() cli.Verb[aclOptions] {
	return cli.Verb[aclOptions]{
		Use:      "show <container>",
		Short:    "Print a container's access control list as JSON",
		Example:  "  azconc container acl show jobs > acl.json",
		Resource: (*aclOptions).resource,
		Run:      aclShowRun,
	}
}

type aclResult struct {
	Outcome   string      `json:"outcome"`
	Container string      `json:"resource"`
	ETag      string      `json:"etag"`
	ACL       aclDocument `json:"acl"`
}

func (r aclResult) Text(w io.Writer) {
	data, err := json.MarshalIndent(r.ACL, "", "  ")
	if err != nil {
		data = []byte("{}")
	}
	fmt.Fprintf(w, "%s\n", data)
}

func aclShowRun(ctx context.Context, f *cli.Factory, opts *aclOptions) error {
	client, err := f.Container(opts.Container)
	if err != nil {
		return err
	}
	v, err := optimistic.Read(ctx, settings.NewContainerACL(client), nil)
	if err != nil {
		return err
	}
	return f.Print(aclResult{Outcome: "found", Container: opts.Container.String(), ETag: string(v.ETag), ACL: documentOf(v.Value)})
}

func aclSetVerb() cli.Verb[aclOptions] {
	return cli.Verb[aclOptions]{
		Use:   "set <container> --file <file>",
		Short: "Replace a container's access control list",
		Long: strings.Join([]string{
			"Replace a container's access control list: public access and up to five stored policies, as acl show prints them.",
			turnsLong,
		}, "\n\n"),
		Example: "  azconc container acl set jobs --file acl.json\n  echo '{\"access\": \"\", \"policies\": []}' | azconc container acl set jobs --file -",
		Flags: func(opts *aclOptions, set *pflag.FlagSet) {
			flags.File(set, &opts.File, "`file` with the list as JSON; - is stdin")
			flags.LeaseID(set, &opts.LeaseID, "`id` of the lease that you hold on it")
		},
		Resource: (*aclOptions).resource,
		Run:      aclSetRun,
	}
}

func aclSetRun(ctx context.Context, f *cli.Factory, opts *aclOptions) error {
	file := &change.FileChange{Name: opts.File}
	if err := file.Load(ctx, f); err != nil {
		return err
	}
	acl, err := parseACL(file.Data)
	if err != nil {
		return err
	}
	client, err := f.Container(opts.Container)
	if err != nil {
		return err
	}
	r, err := optimistic.Update(ctx, settings.NewContainerACL(client), func(_ context.Context, v *settings.ACL) error {
		*v = acl
		return nil
	}, &optimistic.UpdateOptions{Conditions: optimistic.Conditions{LeaseID: opts.LeaseID},
		SendOptions: optimistic.SendOptions{Hooks: f.Monitor.Hooks()}})
	return f.PrintWrite(opts.Container, "updated", r, err)
}
