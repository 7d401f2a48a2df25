package blob

import (
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/optimistic/appends"
)

// recordLine is a record of a log as it is printed.
type recordLine struct {
	Position appends.Position `json:"position"`
	Next     appends.Position `json:"next"`
	ID       string           `json:"id"`
	Data     *string          `json:"data,omitempty"`
	Base64   []byte           `json:"base64,omitempty"` // of data that is not UTF-8, in place of Data
}

func newRecordsCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "records <container/log> [--from <position>] [--follow]",
		Short: "Print the records of a log that blob append --roll has written",
		Long: `Print the records of a log that blob append --roll has written, as JSON lines: position, next, id and data, or base64 if that
is not UTF-8.

--from continues after a record, with the "next" of its line: no record is missed, and none is printed twice. Without it, the first
blob of the log that exists comes first. If the blob of the position was deleted, the exit code is 3.`,
		Example: `  azconc blob records logs/app --from 000001:0
  azconc blob records logs/app --follow --timeout 3s | jq -r .data`,
		Annotations: map[string]string{cli.TextOnly: "true"},
	}
	set := cmd.Flags()
	var from appends.Position
	var o appends.RecordsOptions
	flags.Text(set, &from, "from", "the `position` to begin at, such as 000002:1234", func(text string) (p appends.Position, err error) {
		if err = p.UnmarshalText([]byte(text)); err != nil {
			err = fail.Usagef("--from: %v", err)
		}
		return p, err
	})
	set.BoolVar(&o.Follow, "follow", false, "wait for more records, until interrupted")
	return cli.On(f, cmd, ref.ParseBlob, f.Container, func(ctx context.Context, on ref.Blob, client *container.Client) (cli.Result, error) {
		log, err := appends.NewLog(client, on.Blob, &appends.LogOptions{SendOptions: f.Sending()})
		if err != nil {
			return nil, fail.Usagef("%v", err)
		}
		for r, err := range log.Records(ctx, from, &o) {
			if err != nil {
				return nil, err
			}
			line := recordLine{r.Position, r.Next, r.ID, nil, r.Data}
			if utf8.Valid(r.Data) {
				line.Data, line.Base64 = new(string(r.Data)), nil
			}
			text, err := json.Marshal(line)
			if f.OutTerminal {
				text = []byte(show.Printable(string(text)))
			}
			if err == nil {
				_, err = fmt.Fprintf(f.Content(), "%s\n", text)
			}
			if err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
}
