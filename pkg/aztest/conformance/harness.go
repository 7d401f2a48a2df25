package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/share"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
)

// Harness is the account under test. A section needs only the field of its service.
type Harness struct {
	// Emulator marks a service with known differences.
	Emulator bool

	// Container returns a client for an existing container that no other test uses. Requests must be among its
	// PerCallPolicies, as among those of all clients.
	Container func(t T) *container.Client

	// Sign returns a URL with which anybody can read a blob. Defaults to the SDK's GetSASURL, which needs a shared key.
	Sign func(t T, b *blockblob.Client) string

	// Tables returns a client for an account whose tables no other test uses, and the name of an existing, empty table
	// in it.
	Tables func(t T) (service *aztables.ServiceClient, table string)

	// Queue returns a client for an existing queue that no other test uses.
	Queue func(t T) *azqueue.QueueClient

	// Share returns a client for an existing share that no other test uses.
	Share func(t T) *share.Client
}

// said is a response: "ok", or status and code.
type said string

const success said = "ok"

// respondTo runs one operation with the SDK's retries off and returns the response.
func respondTo(ctx context.Context, run func(context.Context) error) said {
	err := run(policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: -1}))
	if refused, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return said(strings.TrimSpace(fmt.Sprintf("%d %s", refused.StatusCode, refused.ErrorCode)))
	}
	if err != nil {
		return said("error: " + err.Error())
	}
	return success
}

// sign returns a URL with which anybody can read a blob: except for Copy Blob within an account, the service reads a source with the
// rights of its URL only.
func (h Harness) sign(t T, b *blockblob.Client) string {
	t.Helper()
	if h.Sign != nil {
		return h.Sign(t, b)
	}
	url, err := b.GetSASURL(sas.BlobPermissions{Read: true}, time.Now().Add(time.Hour), nil)
	if err != nil {
		t.Fatal(err)
	}
	return url
}

// expect is the service's response, and an emulator's response where it differs.
type expect struct {
	service  said
	emulator said // "" when it does not differ
	why      string
}

func (e expect) check(t T, h Harness, question string, got said) {
	t.Helper()
	a := Answer{Question: question, Expected: string(e.service), Answered: string(got)}
	if h.Emulator && e.emulator != "" {
		a.Expected, a.Known = string(e.emulator), e.why
		if got == e.service {
			a.Known = "it answers as the service does now; before, " + e.why
		}
	}
	t.Answered(a)
}

// T is the part of a test that the suite needs. [Test] makes one of a *testing.T; a program that tests a real account
// has its own.
type T interface {
	Helper()
	Context() context.Context
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)

	// Run runs f as a named part.
	Run(name string, f func(t T))

	// Answered is called with every result, right or wrong.
	Answered(a Answer)
}

// Answer is a request, the expected response, and the actual one: "ok", or status and code.
type Answer struct {
	Question, Expected, Answered string

	// Known is the reason why the service under test differs from the real one here, "" if it does not. Expected is
	// then its own response.
	Known string
}

// Test makes a T of t. An unexpected response is an error.
func Test(t *testing.T) T { return test{t} }

type test struct{ *testing.T }

func (t test) Run(name string, f func(T)) { t.T.Run(name, func(t *testing.T) { f(test{t}) }) }

func (t test) Answered(a Answer) {
	t.Helper()
	if a.Answered != a.Expected {
		t.Errorf("%s: %q, want %q (%s)", a.Question, a.Answered, a.Expected, a.Known)
	}
}
