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

// harness is the account under test. A section needs only the field of its service.
type harness struct {
	// Emulator marks a service with known differences.
	Emulator bool

	// Note gets every answer. Defaults to an error of the test for one that is not as expected.
	Note func(t *testing.T, a answered)

	// Over reports that the run was interrupted, so that answers mean nothing. Defaults to never.
	Over func() bool

	// Container returns a client for an existing container that no other test uses. Requests must be among its
	// PerCallPolicies, as among those of all clients.
	Container func(t *testing.T) *container.Client

	// Sign returns a URL with which anybody can read a blob. Defaults to the SDK's GetSASURL, which needs a shared key.
	Sign func(t *testing.T, b *blockblob.Client) string

	// Tables returns a client for an account whose tables no other test uses, and the name of an existing, empty table
	// in it.
	Tables func(t *testing.T) (service *aztables.ServiceClient, table string)

	// Queue returns a client for an existing queue that no other test uses.
	Queue func(t *testing.T) *azqueue.QueueClient

	// Share returns a client for an existing share that no other test uses.
	Share func(t *testing.T) *share.Client
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
func (h harness) sign(t *testing.T, b *blockblob.Client) string {
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

// answered is a question, the expected response, and the actual one: "ok", or status and code.
type answered struct {
	question, expected, got string

	// known is the reason why the service under test differs from the real one here, "" if it does not. expected is
	// then its own response.
	known string
}

func (e expect) check(t *testing.T, h harness, question string, got said) {
	t.Helper()
	a := answered{question: question, expected: string(e.service), got: string(got)}
	if h.Emulator && e.emulator != "" {
		a.expected, a.known = string(e.emulator), e.why
		if got == e.service {
			a.known = "it answers as the service does now; before, " + e.why
		}
	}
	h.skipIfOver(t)
	switch {
	case h.Note != nil:
		h.Note(t, a)
	case a.got != a.expected:
		t.Errorf("%s: %q, want %q (%s)", a.question, a.got, a.expected, a.known)
	}
}

// skipIfOver ends a test whose run was interrupted.
func (h harness) skipIfOver(t *testing.T) {
	t.Helper()
	if h.Over != nil && h.Over() {
		t.Skip("interrupted")
	}
}
