package azerr

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answered is an error as the SDK makes it of an answer.
func answered(status int, code string, headers ...string) *azcore.ResponseError {
	h := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	request, _ := http.NewRequest(http.MethodPut, "https://acct.blob.core.windows.net/c/b?sv=1&sig=TOPSECRET", nil)
	return &azcore.ResponseError{
		StatusCode: status, ErrorCode: code,
		RawResponse: &http.Response{StatusCode: status, Header: h, Request: request, Body: io.NopCloser(strings.NewReader(""))},
	}
}

func TestAnswersAreClassifiedByTheirCode(t *testing.T) {
	for _, tt := range []struct {
		status               int
		code                 string
		kind                 Kind
		reason               Reason
		ambiguous, transient bool
	}{
		// blob
		{412, "ConditionNotMet", Conflict, Changed, false, false},
		{412, "TargetConditionNotMet", Conflict, Changed, false, false},
		{412, "SourceConditionNotMet", Conflict, SourceChanged, false, false},
		{409, "BlobAlreadyExists", Conflict, Exists, false, false},
		{412, "AppendPositionConditionNotMet", Conflict, Position, false, false},
		{412, "MaxBlobSizeConditionNotMet", Conflict, Position, false, false},
		{412, "SequenceNumberConditionNotMet", Conflict, Sequence, false, false},
		{400, "InvalidBlockList", Conflict, BlockList, false, false},
		{304, "ConditionNotMet", Conflict, NotModified, false, false},
		{409, "LeaseAlreadyPresent", Held, None, false, false},
		{412, "LeaseIdMissing", Held, None, false, false},
		{409, "LeaseIsBreakingAndCannotBeAcquired", Held, None, false, false},
		{412, "LeaseIdMismatchWithBlobOperation", Lost, None, false, false},
		{409, "LeaseIdMismatchWithLeaseOperation", Lost, None, false, false},
		{412, "LeaseNotPresentWithBlobOperation", Lost, None, false, false},
		{409, "LeaseIsBrokenAndCannotBeRenewed", Lost, None, false, false},
		{412, "LeaseLost", Lost, None, false, false},
		{404, "BlobNotFound", NotFound, None, false, false},
		{404, "ContainerNotFound", NotFound, None, false, false},
		{409, "ContainerBeingDeleted", Permanent, None, false, true},
		{409, "PendingCopyOperation", Permanent, None, false, true},
		{409, "SnapshotsPresent", Permanent, None, false, false},
		{409, "BlobImmutableDueToPolicy", Permanent, None, false, false},
		{409, "BlobArchived", Permanent, None, false, false},
		{403, "AuthorizationFailure", Unauthorised, None, false, false},
		{403, "AuthenticationFailed", Unauthorised, None, false, false},
		{400, "MultipleConditionHeadersNotSupported", BadInput, None, false, false},
		{503, "ServerBusy", Throttled, None, true, true},
		{500, "InternalError", Unknown, None, true, true},
		{500, "OperationTimedOut", Unknown, None, true, true},
		// table
		{412, "UpdateConditionNotSatisfied", Conflict, Changed, false, false},
		{409, "EntityAlreadyExists", Conflict, Exists, false, false},
		{404, "ResourceNotFound", NotFound, None, false, false},
		{409, "TableBeingDeleted", Permanent, None, false, true},
		{400, "InvalidDuplicateRow", BadInput, None, false, false},
		{413, "RequestBodyTooLarge", BadInput, None, false, false},
		// queue: service and emulator disagree about a stale receipt
		{404, "MessageNotFound", Lost, None, false, false},
		{400, "PopReceiptMismatch", Lost, None, false, false},
		{404, "QueueNotFound", NotFound, None, false, false},
		// file: the documentation's two spellings, and its two statuses
		{409, "SMBDeletePending", Held, None, false, true},
		{409, "DeletePending", Held, None, false, true},
		{409, "SharingViolation", Held, None, false, true},
		{412, "ReadOnlyAttribute", Permanent, None, false, false},
		{409, "ReadOnlyAttribute", Permanent, None, false, false},
		{408, "ClientCacheFlushDelay", Unknown, None, true, true},
		// the code decides, whatever the status says
		{409, "LeaseIdMismatchWithBlobOperation", Lost, None, false, false},
		{500, "BlobAlreadyExists", Conflict, Exists, false, false},
		// no code, or one nobody has documented
		{412, "", Conflict, Changed, false, false},
		{404, "", NotFound, None, false, false},
		{403, "", Unauthorised, None, false, false},
		{401, "", Unauthorised, None, false, false},
		{408, "", Unknown, None, true, true},
		{429, "", Throttled, None, true, true},
		{500, "", Unknown, None, true, true},
		{502, "", Unknown, None, true, true},
		{503, "", Throttled, None, true, true},
		{504, "SomethingNew", Unknown, None, true, true},
		{501, "", Permanent, None, false, false},
		{409, "SomethingNew", Permanent, None, false, false},
		{400, "SomethingNew", BadInput, None, false, false},
		{302, "", Other, None, false, false},
	} {
		t.Run(fmt.Sprintf("%d %s", tt.status, tt.code), func(t *testing.T) {
			err := fmt.Errorf("wrapped: %w", answered(tt.status, tt.code, "x-ms-request-id", "r-1"))
			o := Classify(err)
			if o.Kind != tt.kind || o.Reason != tt.reason || o.Ambiguous() != tt.ambiguous || o.Transient() != tt.transient {
				t.Errorf("got %v, %v, ambiguous %t, transient %t; want %v, %v, %t, %t",
					o.Kind, o.Reason, o.Ambiguous(), o.Transient(), tt.kind, tt.reason, tt.ambiguous, tt.transient)
			}
			if o.Code != tt.code || o.Status != tt.status || o.RequestID != "r-1" || o.Index != -1 {
				t.Errorf("facts = %+v", o)
			}
		})
	}
}

func TestErrorsWithoutAnAnswer(t *testing.T) {
	timeout := &net.OpError{Op: "read", Err: &timeoutError{}}
	for _, tt := range []struct {
		name                 string
		err                  error
		kind                 Kind
		ambiguous, transient bool
	}{
		{"connection reset", &url.Error{Op: "Put", URL: "http://h", Err: &net.OpError{Op: "read", Err: errors.New("reset")}}, Unknown, true, true},
		{"answer timed out", timeout, Unknown, true, true},
		{"EOF", &url.Error{Op: "Put", URL: "http://h", Err: io.EOF}, Unknown, true, true},
		{"body cut off", fmt.Errorf("body download policy: %w", io.ErrUnexpectedEOF), Unknown, true, true},
		{"deadline", &url.Error{Op: "Put", URL: "http://h", Err: context.DeadlineExceeded}, Unknown, true, true},
		{"cancelled", context.Canceled, Unknown, true, false},
		{"refused while dialling", &url.Error{Op: "Put", URL: "http://h", Err: &net.OpError{Op: "dial", Err: errors.New("refused")}}, Throttled, false, true},
		{"no such host", &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "x"}}, Throttled, false, true},
		{"cancelled while dialling", &url.Error{Op: "Put", URL: "http://h", Err: &net.OpError{Op: "dial", Err: context.Canceled}}, Throttled, false, false},
		{"not of the network at all", errors.New("encode: bad value"), Other, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := Classify(tt.err)
			if o.Kind != tt.kind || o.Ambiguous() != tt.ambiguous || o.Transient() != tt.transient {
				t.Errorf("got %v, ambiguous %t, transient %t; want %v, %t, %t", o.Kind, o.Ambiguous(), o.Transient(), tt.kind, tt.ambiguous, tt.transient)
			}
		})
	}
	if o := Classify(nil); o.Kind != Other || o.Ambiguous() || o.Transient() || o.Index != -1 {
		t.Errorf("Classify(nil) = %+v", o)
	}
}

type timeoutError struct{}

func (*timeoutError) Error() string   { return "i/o timeout" }
func (*timeoutError) Timeout() bool   { return true }
func (*timeoutError) Temporary() bool { return true }

// TestEveryCodeOfTheSDKHasAMeaning reads the SDK's own lists, so that a code nobody has thought about is noticed when
// the SDK is updated, not when a user meets it.
func TestEveryCodeOfTheSDKHasAMeaning(t *testing.T) {
	const sdk = "github.com/Azure/azure-sdk-for-go/sdk/"
	local := map[string]bool{ // made up by the SDK, never sent by a service
		"UnsupportedChecksum": true, "MissingSharedKeyCredential": true,
	}
	for pkg, least := range map[string]int{
		"storage/azblob/bloberror": 100, "data/aztables": 20, "storage/azqueue/queueerror": 50, "storage/azfile/fileerror": 60,
	} {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", sdk+pkg).Output()
		if err != nil {
			t.Fatalf("go list %s: %v", pkg, err)
		}
		n := 0
		for _, code := range sdkCodes(t, strings.TrimSpace(string(out))) {
			n++
			if _, ok := codes[code]; !ok && !local[code] {
				t.Errorf("%s: %s has no meaning", pkg, code)
			}
		}
		if n < least {
			t.Errorf("%s: only %d codes found, the list must have moved", pkg, n)
		}
	}
}

// sdkCodes collects the string constants of a package whose type names an error code.
func sdkCodes(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			typ, ok := spec.Type.(*ast.Ident)
			if !ok || !strings.HasSuffix(typ.Name, "Code") {
				return true
			}
			for _, v := range spec.Values {
				if lit, ok := v.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					code, _ := strconv.Unquote(lit.Value)
					found = append(found, code)
				}
			}
			return true
		})
	}
	return found
}

func TestTheServicesWishIsRead(t *testing.T) {
	for _, tt := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "3", 3 * time.Second},
		{"retry-after-ms", "250", 250 * time.Millisecond},
		{"x-ms-retry-after-ms", "40", 40 * time.Millisecond},
		{"Retry-After", "soon", 0},
		{"Retry-After", "-1", 0},
		{"Retry-After", "Mon, 02 Jan 2006 15:04:05 GMT", 0},
	} {
		if got := Classify(answered(503, "ServerBusy", tt.name, tt.value)).RetryAfter; got != tt.want {
			t.Errorf("%s: %s = %v, want %v", tt.name, tt.value, got, tt.want)
		}
	}
}

const failedTransaction = "--changesetresponse_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n" +
	"HTTP/1.1 412 Precondition Failed\r\nContent-Type: application/json;odata=minimalmetadata\r\n\r\n" +
	`{"odata.error":{"code":"UpdateConditionNotSatisfied","message":{"lang":"en-US","value":"3:The update condition specified in the request was not satisfied.\nRequestId:1\nTime:2"}}}` +
	"\r\n--changesetresponse_1--\r\n"

func TestAFailedTransactionNamesItsOperation(t *testing.T) {
	err := answered(http.StatusAccepted, "")
	err.RawResponse.Body = io.NopCloser(bytes.NewBufferString(failedTransaction))
	for range 2 { // the body can be read again
		o := Classify(fmt.Errorf("submit: %w", err))
		if o.Kind != Conflict || o.Reason != Changed || o.Index != 3 || o.Code != "UpdateConditionNotSatisfied" || o.Status != 412 {
			t.Fatalf("Classify = %+v", o)
		}
	}
	if index, code, ok := Transaction(err); !ok || index != 3 || code != "UpdateConditionNotSatisfied" {
		t.Errorf("Transaction = %d, %q, %t", index, code, ok)
	}
	if !Has(err, "UpdateConditionNotSatisfied") {
		t.Error("Has does not see the code inside a transaction")
	}
	if _, _, ok := Transaction(answered(412, "ConditionNotMet")); ok {
		t.Error("an ordinary answer counts as a transaction")
	}
	if _, _, ok := Transaction(io.EOF); ok {
		t.Error("EOF counts as a transaction")
	}
}

func TestNamesAreComplete(t *testing.T) {
	for k := Other; k <= BadInput; k++ {
		if k.String() == "" || k.String() == "invalid" {
			t.Errorf("Kind %d has no name", k)
		}
	}
	for r := None; r <= NotModified; r++ {
		if r.String() == "" || r.String() == "invalid" {
			t.Errorf("Reason %d has no name", r)
		}
	}
	if Kind(99).String() != "invalid" || Reason(99).String() != "invalid" {
		t.Error("names out of range")
	}
}
