// Package container has the verbs of azconc container, and the forms of access policies, which queues share.
package container

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	azservice "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lease"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/noun"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/settings"
	"github.com/azconc/azconc/pkg/ptr"
)

// turnsLong is part of the help of every verb that changes a container, since the service offers no ETag condition.
const turnsLong = `The service accepts no ETag condition on containers, so azconc holds a short lease on the container while it writes. The lease
excludes other azconc writers; a writer that does not acquire it is not detected. Meanwhile the container cannot be deleted.`

func NewCmd(f *cli.Factory) *cobra.Command {
	metadata := noun.Pairs{
		Noun: "container", Arg: "<container>", Example: "jobs", Long: turnsLong, Parse: ref.ParseContainer, Conditions: flags.CondLease,
		Open: func(on ref.Blob) (optimistic.Target[map[string]string], error) {
			client, err := f.Container(on)
			return settings.NewContainerMetadata(client), err
		},
	}
	return cli.NewGroupCmd("container", "Create, show and delete containers",
		newCreateCmd(f),
		newShowCmd(f),
		newDeleteCmd(f),
		newListCmd(f),
		metadata.NewCmd(f, nil),
		newACLCmd(f),
		lease.NewCmd(f, "container"),
	)
}

func newCreateCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create <container>",
		Short: "Create a container",
		Long: `Create a container. If it already exists, the exit code is 7.

The container gets an id in its metadata, so that if the response is lost, azconc can recognize the container it created.`,
		Example: `  azconc container create jobs
  azconc container create jobs --metadata team=billing`,
	}
	var metadata map[string]string
	flags.Metadata(cmd.Flags(), &metadata, "`name=value` to store with it")
	return cli.On(f, cmd, ref.ParseContainer, f.Container, func(ctx context.Context, on ref.Blob, client *container.Client) (cli.Result, error) {
		r, err := settings.CreateContainer(ctx, client, &settings.CreateContainerOptions{Metadata: metadata, Hooks: f.Monitor.Hooks()})
		return f.DoneBy("created", on, r), err
	})
}

func newDeleteCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete <container>",
		Short: "Delete a container and everything in it",
		Long: `Delete a container and everything in it.

The service frees the name about half a minute later; until then, creating it again fails with 409 ContainerBeingDeleted.`,
		Example: `  azconc container delete jobs
  azconc container delete jobs --if-unmodified-since 2026-01-31T12:00:00Z`,
	}
	var conditions optimistic.Conditions
	flags.WriteConditions(cmd.Flags(), &conditions, flags.CondDates|flags.CondLease)
	return cli.On(f, cmd, ref.ParseContainer, f.Container, func(ctx context.Context, on ref.Blob, client *container.Client) (cli.Result, error) {
		r, err := settings.DeleteContainer(ctx, client, &settings.DeleteContainerOptions{Conditions: conditions, Hooks: f.Monitor.Hooks()})
		return f.DoneBy("deleted", on, r), err
	})
}

type showResult struct {
	Outcome      string            `json:"outcome"`
	Container    string            `json:"resource"`
	ETag         string            `json:"etag"`
	LastModified time.Time         `json:"last_modified"`
	LeaseState   string            `json:"lease_state,omitempty"`
	LeaseStatus  string            `json:"lease_status,omitempty"`
	PublicAccess string            `json:"public_access,omitempty"`
	Metadata     map[string]string `json:"metadata"`
}

func (r showResult) Text(w io.Writer) {
	show.Fields(w, show.WithMetadata([]string{"container", r.Container, "etag", r.ETag, "last modified", show.Time(r.LastModified),
		"lease", r.LeaseState, "public access", r.PublicAccess}, r.Metadata)...)
}

func newShowCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show <container>",
		Short:   "Show a container's properties and metadata",
		Example: "  azconc container show jobs -o json",
	}
	var leaseID string
	flags.LeaseID(cmd.Flags(), &leaseID, "`id` of the lease that you hold on it")
	return cli.On(f, cmd, ref.ParseContainer, f.Container, func(ctx context.Context, on ref.Blob, client *container.Client) (cli.Result, error) {
		p, err := client.GetProperties(ctx, &container.GetPropertiesOptions{LeaseAccessConditions: &container.LeaseAccessConditions{LeaseID: ptr.Optional(leaseID)}})
		return showResult{
			Outcome: "found", Container: on.String(), ETag: string(ptr.Value(p.ETag)), LastModified: ptr.Value(p.LastModified).UTC(),
			LeaseState: string(ptr.Value(p.LeaseState)), LeaseStatus: string(ptr.Value(p.LeaseStatus)),
			PublicAccess: string(ptr.Value(p.BlobPublicAccess)), Metadata: cli.OwnMetadata(p.Metadata),
		}, err
	})
}

type listResult struct {
	Outcome    string `json:"outcome"`
	Containers []item `json:"containers"`
	Truncated  bool   `json:"truncated"`
}

type item struct {
	Name         string    `json:"name"`
	ETag         string    `json:"etag"`
	LastModified time.Time `json:"last_modified"`
	LeaseState   string    `json:"lease_state,omitempty"`
}

func (i item) String() string { return i.Name }

func (r listResult) Text(w io.Writer) { cli.PrintLines(w, r.Containers) }

func newListCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the account's containers", Example: "  azconc container list --prefix job"}
	prefix, most := flags.Listing(cmd.Flags(), "containers")
	return cli.OnAccount(f, cmd, f.BlobService, func(ctx context.Context, client *azservice.Client) (cli.Result, error) {
		pages := client.NewListContainersPager(&azservice.ListContainersOptions{Prefix: ptr.Optional(*prefix)})
		found, more, err := cli.List(ctx, pages, *most, func(page azservice.ListContainersResponse) (items []item) {
			for _, c := range page.ContainerItems {
				item := item{Name: ptr.Value(c.Name)}
				if p := c.Properties; p != nil {
					item.ETag, item.LastModified, item.LeaseState = flags.Quoted(ptr.Value(p.ETag)), ptr.Value(p.LastModified).UTC(), string(ptr.Value(p.LeaseState))
				}
				items = append(items, item)
			}
			return items
		})
		return listResult{Outcome: "listed", Containers: found, Truncated: more}, err
	})
}

// newACLCmd returns the verbs of an access control list: public access, and up to five stored policies.
func newACLCmd(f *cli.Factory) *cobra.Command {
	return noun.Document[settings.ACL]{
		Path: "container acl", Name: "a container's access control list", Arg: "<container>", Example: "jobs", Long: turnsLong, Versioned: true,
		Parse: ref.ParseContainer,
		Open: func(on ref.Blob) (optimistic.Target[settings.ACL], error) {
			client, err := f.Container(on)
			return settings.NewContainerACL(client), err
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
			if at.text == "" {
				continue // the policy leaves it to the SAS
			}
			if *at.into, err = flags.ParseTime(at.name, at.text); err != nil {
				return nil, fmt.Errorf("policy %q: %w", p.ID, err)
			}
		}
		policies = append(policies, policy)
	}
	return policies, nil
}
