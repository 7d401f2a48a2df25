package container

import (
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/noun"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/settings"
)

// newACLCmd returns the verbs of an access control list: public access, and up to five stored policies.
func newACLCmd(f *cli.Factory) *cobra.Command {
	return noun.Document[settings.ACL]{
		Path: "container acl", Name: "a container's access control list", Arg: "<container>", Example: "jobs", Long: turnsLong, Lease: true,
		Parse: ref.ParseContainer,
		Open: func(on ref.Blob) (optimistic.Target[settings.ACL], error) {
			client, err := f.Container(on)
			if err != nil {
				return nil, err
			}
			return settings.NewContainerACL(client), nil
		},
		Decode: parseACL,
		Encode: func(acl settings.ACL) any {
			return aclDocument{Access: string(acl.Access), Policies: ShowPolicies(acl.Policies)}
		},
	}.NewCmd(f)
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

func ShowPolicies(policies []settings.AccessPolicy) []PolicyShown {
	shown := []PolicyShown{}
	for _, p := range policies {
		shown = append(shown, PolicyShown{ID: p.ID, Start: show.Time(p.Start), Expiry: show.Time(p.Expiry), Permissions: p.Permissions})
	}
	return shown
}

// parseACL parses what acl show prints. An error names the faulty member.
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
