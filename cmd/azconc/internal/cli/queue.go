package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/pkg/azerr"
)

func newQueueCmd(f *Factory) *cobra.Command {
	return newGroupCmd("queue", "Send, receive and consume messages",
		newQueueCreateCmd(f, nil),
		newQueueDeleteCmd(f, nil),
		newQueueListCmd(f, nil),
		newQueueShowCmd(f, nil),
		newQueueSendCmd(f, nil),
		newQueueConsumeCmd(f, nil),
		newQueueReceiveCmd(f, nil),
		newQueuePeekCmd(f, nil),
		newQueueExtendCmd(f, nil),
		newQueueDeleteMessageCmd(f, nil),
		newQueueRedriveCmd(f, nil),
		newQueueClearCmd(f, nil),
		newQueueGCCmd(f, nil),
		newQueueMetadataCmd(f),
		newQueueACLCmd(f),
		newQueuePropertiesCmd(f),
	)
}

// parseQueue reads the name of a queue, for which the rules are a container's, less the special ones (REST: "Naming
// queues and metadata").
func parseQueue(arg string) (string, error) {
	if err := validContainer(arg); err != nil || strings.HasPrefix(arg, "$") {
		return "", withHint(usagef("%q is not a queue's name", arg),
			"a name has 3 to 63 lower-case letters, digits and single hyphens, and begins and ends with a letter or digit")
	}
	return arg, nil
}

// checkTable looks at the name of a table that a flag may name.
func checkTable(flag, name string) error {
	if name != "" && !tableName.MatchString(name) {
		return withHint(usagef("%s %q is not a table's name", flag, name), "a name is 3 to 63 letters and digits, a letter first")
	}
	return nil
}

// markers returns the markers in a table.
func (f *Factory) markers(table string) (*idempotent.Markers, error) {
	tables, err := f.TableService()
	if err != nil {
		return nil, err
	}
	return idempotent.NewMarkers(tables.NewClient(table), nil)
}

// createMarkers creates the table of the markers if it is missing, and says so. A credential may be good for a table that is
// there and not for making one: whether it is there, its use shows.
func (f *Factory) createMarkers(ctx context.Context, table string) error {
	tables, err := f.TableService()
	if err != nil {
		return err
	}
	_, err = sendWrite(ctx, func(ctx context.Context) error {
		_, err := tables.CreateTable(ctx, table, nil)
		return err
	})
	switch {
	case err == nil:
		f.Notef("created table %s, which records handled messages", table)
	case azerr.Has(err, "TableAlreadyExists"), azerr.Classify(err).Kind == azerr.Unauthorised:
	default:
		return err
	}
	return nil
}

// createQueue creates a queue if it is missing, and says so.
func (f *Factory) createQueue(ctx context.Context, queue *azqueue.QueueClient, name string) error {
	var answer *http.Response
	_, err := sendWrite(ctx, func(ctx context.Context) error {
		_, err := queue.Create(policy.WithCaptureResponse(ctx, &answer), nil)
		return err
	})
	switch {
	case azerr.Has(err, "QueueAlreadyExists"): // with other metadata
	case err != nil:
		return err
	case answer.StatusCode == http.StatusCreated:
		f.Notef("created queue %s", name)
	}
	return nil
}

// QueueService returns the client of the account's Queue service.
func (f *Factory) QueueService() (*azqueue.ServiceClient, error) {
	opts := &azqueue.ClientOptions{ClientOptions: f.ClientOptions()}
	opts.PerRetryPolicies = append(opts.PerRetryPolicies, idempotent.Policy())
	c, err := f.connectionTo(queueService)
	if err != nil {
		return nil, err
	}
	endpoint := strings.TrimSuffix(c.endpoint[queueService], "/")
	if endpoint == "" {
		return nil, noAccount()
	}
	switch {
	case c.key != "":
		cred, err := azqueue.NewSharedKeyCredential(c.account, c.key)
		if err != nil {
			return nil, usagef("the account key is not usable")
		}
		return azqueue.NewServiceClientWithSharedKeyCredential(endpoint+"/", cred, opts)
	case c.sas != "":
		return azqueue.NewServiceClientWithNoCredential(endpoint+"/?"+c.sas, opts)
	default:
		cred, err := f.tokenCredential()
		if err != nil {
			return nil, err
		}
		return azqueue.NewServiceClient(endpoint+"/", cred, opts)
	}
}

// Queue returns the client of a queue.
func (f *Factory) Queue(name string) (*azqueue.QueueClient, error) {
	s, err := f.QueueService()
	if err != nil {
		return nil, err
	}
	return s.NewQueueClient(name), nil
}

// queueOptions are those of a verb that takes a queue and nothing else.
type queueOptions struct {
	factory *Factory
	Queue   string
}

// queueResult is the result of a verb that changes a queue.
type queueResult struct {
	Outcome   string `json:"outcome"`
	Queue     string `json:"resource"`
	MessageID string `json:"message_id,omitempty"`
	Ambiguous int    `json:"ambiguous"`
	Requests  int64  `json:"requests"`
	ElapsedMS int64  `json:"elapsed_ms"`
}

func (r queueResult) text(w io.Writer) {
	fmt.Fprintln(w, strings.TrimSpace(r.Outcome+" "+strings.TrimSuffix(r.Queue+"/"+r.MessageID, "/")))
}

func (f *Factory) printQueue(outcome, queue, message string, s sent) error {
	return f.Print(queueResult{
		Outcome: outcome, Queue: queue, MessageID: message, Ambiguous: s.ambiguous,
		Requests: f.requests.Load(), ElapsedMS: time.Since(f.began).Milliseconds(),
	})
}
