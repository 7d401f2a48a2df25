package table

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
)

func newUpsertCmd(f *cli.Factory, runF func(*entityWriteOptions) error) *cobra.Command {
	var merge bool
	cmd, _ := newEntityWriteCmd(f, runF, func(ctx context.Context, opts *entityWriteOptions) error {
		return upsertRun(ctx, opts, merge)
	})
	cmd.Use = "upsert <table/partition/row> {--file <file> | --set <name=value>…} [--merge]"
	cmd.Short = "Insert or replace an entity: last writer wins"
	cmd.Long = `Insert or replace an entity: last writer wins. The service takes no condition here.

It replaces all properties (Insert Or Replace); with --merge it keeps those that are not given (Insert Or Merge)
and the types of those that are, which are read first.`
	cmd.Example = "  azconc table upsert jobs/eu/17 --set n=0\n  azconc table upsert jobs/eu/17 --merge --set state=done"
	cmd.Flags().BoolVar(&merge, "merge", false, "keep the properties that are not given")
	return cmd
}

func upsertRun(ctx context.Context, opts *entityWriteOptions, merge bool) error {
	service, err := opts.factory.TableService()
	if err != nil {
		return err
	}
	client := service.NewClient(opts.Entity.Table)
	var properties tables.Properties
	mode := aztables.UpdateModeReplace
	if merge {
		mode = aztables.UpdateModeMerge
		properties, err = opts.Source.loadMerge(ctx, opts.factory, client, opts.Entity)
	} else {
		properties, err = opts.Source.load(ctx, opts.factory)
	}
	if err != nil {
		return err
	}
	body, err := entityBody(opts.Entity, properties)
	if err != nil {
		return err
	}
	var etag azcore.ETag
	// It is safe to send an upsert again: the result does not depend on the stored entity.
	s, err := cli.SendWrite(ctx, func(ctx context.Context) error {
		resp, err := client.UpsertEntity(ctx, body, &aztables.UpsertEntityOptions{UpdateMode: mode})
		etag = resp.ETag
		return err
	})
	if err != nil {
		return cli.AfterAmbiguous(s, err)
	}
	return printEntity(opts.factory, opts.Entity, "upserted", optimistic.Result{
		Changed: true, ETag: etag, Attempts: 1, Ambiguous: s.Ambiguous, Requests: int(opts.factory.Requests.Load()),
	}, nil)
}

// entityBody is an entity as the service takes it: properties with their types, and the keys.
func entityBody(on ref.Table, properties tables.Properties) ([]byte, error) {
	inner, err := json.Marshal(properties)
	if err != nil {
		return nil, err
	}
	keys, err := json.Marshal(map[string]string{"PartitionKey": on.Partition, "RowKey": on.Row})
	if err != nil {
		return nil, err
	}
	if rest := strings.TrimPrefix(string(inner), "{"); rest != "}" {
		return []byte(string(keys[:len(keys)-1]) + "," + rest), nil
	}
	return keys, nil
}
