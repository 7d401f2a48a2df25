package azerr

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// secret is a signature as it stands in a URL.
const secret = "T0PSECRETabc%2Bdef%3D"

// quiet keeps the test servers' complaints about their clients out of the output.
var quiet = log.New(io.Discard, "", 0)

// TestNoSecretInATransportError sends to a port where nobody listens, with a signature in the URL: the error of the
// real client prints the whole URL.
func TestNoSecretInATransportError(t *testing.T) {
	_, err := client(t, nobody(t)).GetProperties(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), secret) {
		t.Fatalf("the premise is gone: the SDK's error %v does not print the signature", err)
	}
	clean := Clean(fmt.Errorf("get c/b: %w", err))
	for verb, text := range printed(clean) {
		if strings.Contains(text, "T0PSECRET") || strings.Contains(text, "sv=2024") || !strings.Contains(text, "HEAD c/b: dial tcp 127.0.0.1") {
			t.Errorf("%s: %q", verb, text)
		}
	}
	if _, ok := errors.AsType[*url.Error](clean); !ok {
		t.Error("the *url.Error is not in the chain any more")
	}
	if o := Classify(clean); o.Ambiguous() || !o.Transient() {
		t.Errorf("a refused connection is ambiguous %t, transient %t; want nothing sent, worth another try", o.Ambiguous(), o.Transient())
	}
}

// printed is err in all the ways in which errors get printed.
func printed(err error) map[string]string {
	var text, object bytes.Buffer
	slog.New(slog.NewTextHandler(&text, nil)).Error("failed", "error", err)
	slog.New(slog.NewJSONHandler(&object, nil)).Error("failed", "error", err)
	return map[string]string{
		"Error": err.Error(), "%v": fmt.Sprintf("%v", err), "%+v": fmt.Sprintf("%+v", err), "%#v": fmt.Sprintf("%#v", err),
		"%q": fmt.Sprintf("%q", err), "%w": fmt.Errorf("outer: %w", err).Error(), "join": errors.Join(io.EOF, err).Error(),
		"wrapped and cleaned again": Clean(fmt.Errorf("outer: %w", err)).Error(),
		"text log":                  text.String(), "JSON log": object.String(),
	}
}

// TestNoSecretInAnAnswer: the service's answer to a wrong signature repeats it, and the SDK prints the answer.
func TestNoSecretInAnAnswer(t *testing.T) {
	s := server(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("x-ms-error-code", "AuthenticationFailed")
		w.Header().Set("x-ms-request-id", "1a2b")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, "<Error><Code>AuthenticationFailed</Code><AuthenticationErrorDetail>The MAC signature found in the HTTP request '%s' is not the same</AuthenticationErrorDetail></Error>", r.URL.Query().Get("sig"))
	})
	_, err := client(t, s.URL).SetMetadata(t.Context(), nil, nil)
	if err == nil || !strings.Contains(err.Error(), "T0PSECRET") {
		t.Fatalf("the premise is gone: the SDK's error %v does not print the answer", err)
	}
	for verb, text := range printed(Clean(err)) {
		if strings.Contains(text, "T0PSECRET") || !strings.Contains(text, "403 AuthenticationFailed (request 1a2b)") {
			t.Errorf("%s: %q", verb, text)
		}
	}
	// A caller that formats the error leaves only its text. That does not show the secret either.
	flat := fmt.Errorf("put: %s", err)
	if text := Clean(flat).Error(); strings.Contains(text, "T0PSECRET") || strings.ContainsAny(text, "\n\r") {
		t.Errorf("flattened: %q", text)
	}
}

func TestSummariesAreOneLine(t *testing.T) {
	conflict, leased := answered(412, "ConditionNotMet", "x-ms-request-id", "1a2b"), answered(409, "LeaseAlreadyPresent")
	reset := &url.Error{Op: "Put", URL: "https://acct.blob.core.windows.net/c/b?sig=T0PSECRET", Err: errors.New("connection reset")}
	inTransaction := submit(t, 202, "multipart/mixed; boundary=batchresponse_1", batch(part(412, "UpdateConditionNotSatisfied", "3:No.")))
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"an answer", conflict, "412 ConditionNotMet (request 1a2b)"},
		{"without a code", answered(503, ""), "503 Service Unavailable"},
		{"with a status of its own", answered(299, ""), "299"},
		{"wrapped", fmt.Errorf("update c/b: %w", conflict), "update c/b: 412 ConditionNotMet (request 1a2b)"},
		{"two joined", errors.Join(conflict, leased), "412 ConditionNotMet (request 1a2b) 409 LeaseAlreadyPresent"},
		{"two wrapped", fmt.Errorf("%w, after %w", leased, conflict), "409 LeaseAlreadyPresent, after 412 ConditionNotMet (request 1a2b)"},
		{"a transaction", inTransaction, "412 UpdateConditionNotSatisfied, operation 3 of the transaction (request r-7)"},
		{"no answer", reset, "PUT c/b: connection reset"},
		{"no answer, nested", &url.Error{Op: "Get", URL: "https://a/redirect?sig=T0PSECRET", Err: reset}, "GET redirect: PUT c/b: connection reset"},
		{"an answer, then none", errors.Join(conflict, reset), "412 ConditionNotMet (request 1a2b) PUT c/b: connection reset"},
		{"a clean error inside", fmt.Errorf("again: %w", Clean(conflict)), "again: 412 ConditionNotMet (request 1a2b)"},
		{"nothing of Azure's", errors.New("encode: bad value"), "encode: bad value"},
		{"lines and an escape sequence", errors.New("blob \x1b[31m\"x\"\r\n\tis\u0085gone\x00"), "blob [31m\"x\" is gone"},
		{"an error that unwraps to nothing", hollow{}, "hollow"},
		{"nil", nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Summary(tt.err); got != tt.want {
				t.Errorf("Summary = %q, want %q", got, tt.want)
			}
			if tt.err == nil {
				return
			}
			if got := Clean(tt.err).Error(); got != tt.want {
				t.Errorf("Clean = %q, want %q", got, tt.want)
			}
		})
	}
}

// hollow unwraps to nil in both forms, which errors.Is allows.
type hollow struct{}

func (hollow) Error() string   { return "hollow" }
func (hollow) Unwrap() []error { return []error{nil} }

func TestCleanKeepsTheChain(t *testing.T) {
	answer := answered(412, "ConditionNotMet")
	for name, err := range map[string]error{
		"an answer":          answer,
		"wrapped":            fmt.Errorf("update: %w", answer),
		"with a cause":       errors.Join(context.Canceled, answer),
		"wrapped when clean": fmt.Errorf("outer: %w", Clean(answer)),
	} {
		clean := Clean(err)
		if got, ok := errors.AsType[*azcore.ResponseError](clean); !ok || got != answer {
			t.Errorf("%s: the service's answer is not in the chain any more", name)
		}
		if !errors.Is(clean, err) {
			t.Errorf("%s: the error is not in its own chain", name)
		}
		if errors.Is(clean, context.Canceled) != errors.Is(err, context.Canceled) {
			t.Errorf("%s: cleaning changed what the error is", name)
		}
		if Classify(clean) != Classify(err) {
			t.Errorf("%s: %+v became %+v", name, Classify(err), Classify(clean))
		}
		if Clean(clean) != clean {
			t.Errorf("%s: cleaning twice wraps twice", name)
		}
	}
	if Clean(nil) != nil {
		t.Error("nothing was made into something")
	}
}
