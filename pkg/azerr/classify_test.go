package azerr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answered is an error as the SDK makes it of an answer.
func answered(status int, code string, headers ...string) *azcore.ResponseError {
	h := http.Header{"X-Ms-Version": {"2024-11-04"}}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	request, err := http.NewRequest(http.MethodPut, "https://acct.blob.core.windows.net/c/b?sv=1&sig=T0PSECRET", nil)
	if err != nil {
		panic(err)
	}
	return &azcore.ResponseError{
		StatusCode: status, ErrorCode: code,
		RawResponse: &http.Response{StatusCode: status, Header: h, Request: request, Body: io.NopCloser(strings.NewReader(""))},
	}
}

// TestAnUnknownOutcomeIsNoAnswer: the 412 in its chain, which proved nothing, was taken for the answer.
func TestAnUnknownOutcomeIsNoAnswer(t *testing.T) {
	for _, last := range []error{nil, answered(412, "ConditionNotMet", "Retry-After", "3"), answered(404, "TableNotFound"), answered(403, "AuthorizationFailure"), answered(400, "InvalidInput"), context.Canceled, errors.New("odd")} {
		for _, err := range []error{&UnknownError{Op: "update", Resource: "c/b", Err: last}, fmt.Errorf("wrapped: %w", Clean(&UnknownError{Err: last})), errors.Join(ErrOutcomeUnknown, last)} {
			if got := words(Classify(err)); got != "unknown ambiguous transient" {
				t.Errorf("%v is %q", err, got)
			}
		}
	}
	if o := Classify(&UnknownError{Err: answered(412, "ConditionNotMet", "Retry-After", "3", "x-ms-request-id", "r-1")}); o.Code != "ConditionNotMet" || o.Status != 412 || o.RequestID != "r-1" || o.RetryAfter != 3*time.Second {
		t.Errorf("the facts of the last answer are %+v", o)
	}
}

func TestNoErrorMeansNothing(t *testing.T) {
	if o := Classify(nil); o != (Outcome{Index: -1}) {
		t.Errorf("Classify(nil) = %+v", o)
	}
	if Has(nil, "") || Has(nil, "BlobNotFound") || Has(nil) {
		t.Error("Has finds a code in no error")
	}
}

// TestAnAnswerWithoutAResponseIsClassified: errors that were stored as JSON and read again have lost theirs.
func TestAnAnswerWithoutAResponseIsClassified(t *testing.T) {
	o := Classify(&azcore.ResponseError{StatusCode: 409, ErrorCode: "LeaseAlreadyPresent"})
	if o.Kind != Held || o.RequestID != "" || o.RetryAfter != 0 || o.Index != -1 {
		t.Errorf("Classify = %+v", o)
	}
	if o := Classify(&azcore.ResponseError{StatusCode: 202}); o.Kind != Other || o.Index != -1 {
		t.Errorf("a 202 without a body = %+v", o)
	}
}

func TestTheServicesWishIsRead(t *testing.T) {
	for _, tt := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "3", 3 * time.Second},
		{"retry-after-ms", "250", 250 * time.Millisecond},
		{"x-ms-retry-after-ms", "40", 40 * time.Millisecond},
		{"Retry-After", "", 0},
		{"Retry-After", "0", 0},
		{"Retry-After", "soon", 0},
		{"Retry-After", "1.5", 0},
		{"Retry-After", "-1", 0},
		{"retry-after-ms", "-1", 0},
		// Once these wrapped around and became no wait, or a negative one.
		{"Retry-After", "9223372037", time.Minute},
		{"Retry-After", "99999999999999999999", time.Minute},
		{"Retry-After", "-99999999999999999999", 0},
		{"Retry-After", "Mon, 02 Jan 2006 15:04:05 GMT", 0},
	} {
		if got := Classify(answered(503, "ServerBusy", tt.name, tt.value)).RetryAfter; got != tt.want {
			t.Errorf("%s: %s = %v, want %v", tt.name, tt.value, got, tt.want)
		}
	}
	both := answered(503, "ServerBusy", "Retry-After", "1", "x-ms-retry-after-ms", "1500")
	if got := Classify(both).RetryAfter; got != 1500*time.Millisecond {
		t.Errorf("with both headers: %v, want the finer one", got)
	}
}

func TestTheServicesWishMayBeADate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Now().Add(45 * time.Second).UTC().Format(http.TimeFormat)
		if got := Classify(answered(503, "ServerBusy", "Retry-After", at)).RetryAfter; got != 45*time.Second {
			t.Errorf("Retry-After: %s = %v, want 45s", at, got)
		}
	})
}

func TestNamesAreCompleteAndDistinct(t *testing.T) {
	seen := map[string]bool{}
	check := func(name string, value fmt.Stringer) {
		if s := value.String(); s == "" || s == "invalid" || seen[s] {
			t.Errorf("%s is called %q", name, s)
		}
		seen[value.String()] = true
	}
	for k := Other; k <= Unreachable; k++ {
		check(fmt.Sprintf("Kind %d", k), k)
	}
	clear(seen)
	for r := None; r <= ReadOnly; r++ {
		check(fmt.Sprintf("Reason %d", r), r)
	}
	if (Unreachable+1).String() != "invalid" || (ReadOnly+1).String() != "invalid" {
		t.Error("there are names beyond the last constant")
	}
}
