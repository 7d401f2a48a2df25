package doctor

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	fileservice "github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/wire"
)

// trips is the number of requests from which the round trip and the clock are determined.
const trips = 5

// patience bounds each request: a service that takes longer is what the examination is to show.
const patience = 15 * time.Second

// ask sends a request once, and looks at its response.
func (p *patient) ask(ctx context.Context, send func(ctx context.Context) error) error {
	var resp *http.Response
	sent := time.Now()
	err := wire.Wire{}.Once(ctx, "", patience, func(ctx context.Context) error { return send(policy.WithCaptureResponse(ctx, &resp)) })
	if refusal, ok := errors.AsType[*azcore.ResponseError](err); ok && resp == nil {
		resp = refusal.RawResponse
	}
	if resp != nil && foreign(err) == nil {
		p.intermediaries(resp)
		if ahead, dated := aheadOf(resp.Header.Get("Date"), sent, time.Now()); dated {
			p.ahead = append(p.ahead, ahead)
		}
	}
	p.accepted = p.accepted || err == nil
	return err
}

// aheadOf returns by how much the local clock is ahead of the one that wrote a Date, which has whole seconds and was seen to be up
// to 2 s behind with real accounts. What that explains is 0.
func aheadOf(date string, sent, received time.Time) (time.Duration, bool) {
	at, err := http.ParseTime(date)
	if err != nil {
		return 0, false
	}
	if early := sent.Sub(at.Add(3 * time.Second)); early > 0 {
		return early, true
	}
	if late := received.Sub(at); late < 0 {
		return late, true
	}
	return 0, true
}

func (p *patient) blobs(ctx context.Context) {
	service, err := p.f.BlobService()
	if err != nil {
		p.refused("blob", "", err)
		return
	}
	var took []time.Duration
	for range trips {
		var hierarchical bool
		var kind, sku string
		began := time.Now()
		err = p.ask(ctx, func(ctx context.Context) error {
			r, err := service.GetAccountInfo(ctx, nil)
			hierarchical, kind, sku = ptr.Value(r.IsHierarchicalNamespaceEnabled), string(ptr.Value(r.AccountKind)), string(ptr.Value(r.SKUName))
			return err
		})
		if err != nil {
			break
		}
		if took = append(took, time.Since(began)); len(took) == 1 {
			p.add("blob", ok, "", "%s, %s", cmp.Or(kind, "an account"), cmp.Or(sku, "of unknown redundancy"))
			if hierarchical {
				p.add("features", warning, "keep metadata and tags out of what must work: index tags, versions and Append Block with conditions on tags do not exist here",
					"the account has a hierarchical namespace")
			}
		}
	}
	p.clock() // before the failures that it explains
	if err != nil && !p.limited("blob", err) {
		p.refused("blob", "", err)
	}
	if len(took) > 0 {
		slices.Sort(took)
		p.add("round trip", ok, "", "%v, the median of %d", took[len(took)/2].Round(100*time.Microsecond), len(took))
	}
	if p.opts.Container.Container != "" && (err == nil || !unanswered(err)) {
		p.container(ctx)
	}
}

// clock reports a clock that is so wrong that it matters.
func (p *patient) clock() {
	if len(p.ahead) == 0 {
		return
	}
	slices.Sort(p.ahead)
	median := p.ahead[len(p.ahead)/2].Round(time.Second)
	off, way := median.Abs(), "ahead of"
	if median < 0 {
		way = "behind"
	}
	const cure = "synchronize the clock of this machine (NTP)"
	switch {
	case off >= 15*time.Minute:
		p.add("clock", failed, cure, "%v %s the service's: it refuses requests that are signed more than 15 minutes off", off, way)
	case off >= 5*time.Second:
		p.add("clock", warning, cure, "%v %s the service's: a new SAS may not be valid yet, or may end early; locks and leases do not depend on it", off, way)
	default:
		p.add("clock", ok, "", "within a few seconds of the service's")
	}
}

// limited reports whether a refusal only says that the credential does not cover requests about the whole account.
func (p *patient) limited(check string, err error) bool {
	switch {
	case azerr.Has(err, "AuthorizationResourceTypeMismatch", "AuthorizationPermissionMismatch", "InsufficientAccountPermissions"):
		p.add(check, ok, "", "it answers; the credential does not cover the whole account")
		return true
	case azerr.Has(err, "AuthorizationServiceMismatch"):
		p.add(check, warning, "a SAS with this service among its ss, if it is needed", "the credential does not cover this service")
		return true
	}
	return false
}

// answers examines whether a service responds to a request about the whole account.
func (p *patient) answers(ctx context.Context, check string, err error, send func(ctx context.Context) error) {
	if err == nil { // of making the client
		err = p.ask(ctx, send)
	}
	switch {
	case err == nil:
		p.add(check, ok, "", "it answers")
	case !p.limited(check, err):
		p.refused(check, "", err)
	}
}

func (p *patient) queues(ctx context.Context) {
	service, err := p.f.QueueService()
	p.answers(ctx, "queue", err, func(ctx context.Context) error {
		_, err := service.NewListQueuesPager(&azqueue.ListQueuesOptions{MaxResults: new(int32(1))}).NextPage(ctx)
		return err
	})
	if p.opts.Queue == "" {
		return
	}
	queue, err := p.f.Queue(p.opts.Queue)
	if err == nil {
		err = p.ask(ctx, func(ctx context.Context) error { _, err := queue.PeekMessage(ctx, nil); return err })
	}
	p.permitted("queue peek", p.opts.Queue, err)
}

func (p *patient) files(ctx context.Context) {
	service, err := p.f.FileService()
	p.answers(ctx, "file", err, func(ctx context.Context) error {
		_, err := service.NewListSharesPager(&fileservice.ListSharesOptions{MaxResults: new(int32(1))}).NextPage(ctx)
		return err
	})
}

func (p *patient) tables(ctx context.Context) {
	service, err := p.f.TableService()
	p.answers(ctx, "table", err, func(ctx context.Context) error {
		_, err := service.NewListTablesPager(&aztables.ListTablesOptions{Top: new(int32(1))}).NextPage(ctx)
		return err
	})
	if p.opts.Table == "" {
		return
	}
	if err == nil {
		err = p.ask(ctx, func(ctx context.Context) error {
			_, err := service.NewClient(p.opts.Table).NewListEntitiesPager(&aztables.ListEntitiesOptions{Top: new(int32(1))}).NextPage(ctx)
			return err
		})
	}
	p.permitted("table query", p.opts.Table, err)
}

// permitted adds how an operation on a resource has ended.
func (p *patient) permitted(check, on string, err error) bool {
	if err != nil {
		p.refused(check, on, err)
		return false
	}
	p.add(check, ok, "", "%s", on)
	return true
}

const keptCure = "ask the operator of the proxy to keep the headers of requests and of responses: nothing can be changed safely through it"

const foreignCure = "sign in to the network, or ask the operator of the proxy to let requests to the account through"

// intermediaries looks for signs of something between here and the service.
func (p *patient) intermediaries(resp *http.Response) {
	h := resp.Header
	if h.Get("Date") == "" {
		p.add("intermediary", warning, "ask the operator of the proxy to keep response headers; azconc then takes longer to prove what became of a write",
			"something in between removes the Date of responses")
	}
	// A response with the id of another request is one that was kept.
	if sent := resp.Request.Header.Get("x-ms-client-request-id"); sent != "" && h.Get("x-ms-client-request-id") != "" && h.Get("x-ms-client-request-id") != sent {
		p.add("intermediary", failed, "turn its cache off for the account", "a response belongs to another request: something in between answers from a cache")
	}
	for _, name := range []string{"Via", "X-Cache", "Age"} {
		if v := h.Get(name); v != "" {
			p.add("intermediary", warning, "conflicts have to be proved here: --confirm-conflicts always, unless it never repeats a write",
				"responses pass through an intermediary: %s: %s", name, strings.TrimSpace(v))
		}
	}
}
