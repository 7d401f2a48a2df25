package container

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/settings"
)

func newACLCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("acl", "Show and change a container's access control list",
		newACLShowCmd(f),
		newACLSetCmd(f),
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

func newACLShowCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show <container>",
		Short:   "Print a container's access control list as JSON",
		Example: "  azconc container acl show jobs > acl.json",
	}
	return cli.On(f, cmd, ref.ParseContainer, f.Container, func(ctx context.Context, on ref.Blob, client *container.Client) (cli.Result, error) {
		v, err := optimistic.Read(ctx, settings.NewContainerACL(client), nil)
		if err != nil {
			return nil, err
		}
		return aclResult{Outcome: "found", Container: on.String(), ETag: string(v.ETag), ACL: documentOf(v.Value)}, nil
	})
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

func newACLSetCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set <container> --file <file>",
		Short: "Replace a container's access control list",
		Long: "Replace a container's access control list: public access and up to five stored policies, as acl show prints them.\n\n" +
			turnsLong,
		Example: "  azconc container acl set jobs --file acl.json\n  echo '{\"access\": \"\", \"policies\": []}' | azconc container acl set jobs --file -",
	}
	var file, leaseID string
	flags.File(cmd.Flags(), &file, "`file` with the list as JSON; - is stdin")
	flags.LeaseID(cmd.Flags(), &leaseID, "`id` of the lease that you hold on it")
	return cli.On(f, cmd, ref.ParseContainer, f.Container, func(ctx context.Context, on ref.Blob, client *container.Client) (cli.Result, error) {
		data, err := f.WholeFile(ctx, file)
		if err != nil {
			return nil, err
		}
		acl, err := parseACL(data)
		if err != nil {
			return nil, err
		}
		r, err := optimistic.Update(ctx, settings.NewContainerACL(client), func(_ context.Context, v *settings.ACL) error {
			*v = acl
			return nil
		}, (&flags.Update{}).Options(optimistic.Conditions{LeaseID: leaseID}, f.Sending()))
		return cli.Written(on, "updated", r, err)
	})
}
