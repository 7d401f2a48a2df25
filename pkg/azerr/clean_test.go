package azerr

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
)

const secret = "T0PSECRETabc%2Bdef%3D"

// TestNoSecretInATransportError sends to a port where nobody listens, with a signature in the URL: the error of the
// real client prints the whole URL.
func TestNoSecretInATransportError(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	opts := &blockblob.ClientOptions{ClientOptions: policy.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}}}
	client, err := blockblob.NewClientWithNoCredential("http://"+address+"/devstoreaccount1/c/b?sv=2024-11-04&sp=rw&sig="+secret, opts)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.GetProperties(context.Background(), nil)
	if err == nil || !strings.Contains(err.Error(), secret) {
		t.Fatalf("the premise is gone: the SDK's error %v does not print the signature", err)
	}
	clean := Clean(fmt.Errorf("get c/b: %w", err))
	if text := clean.Error(); strings.Contains(text, "T0PSECRET") || strings.Contains(text, "sv=2024") || !strings.Contains(text, "c/b") {
		t.Errorf("Clean = %q", text)
	}
	if _, ok := errors.AsType[*url.Error](clean); !ok {
		t.Error("the *url.Error is not in the chain any more")
	}
	if o := Classify(clean); o.Ambiguous() || !o.Transient() {
		t.Errorf("a refused connection is ambiguous %t, transient %t; want nothing sent, worth another try", o.Ambiguous(), o.Transient())
	}
}

func TestCleanMakesOneLineOfTheSDKsTen(t *testing.T) {
	answer := answered(412, "ConditionNotMet", "x-ms-request-id", "1a2b")
	clean := Clean(fmt.Errorf("update c/b: %w", answer))
	if want := "update c/b: 412 ConditionNotMet (request 1a2b)"; clean.Error() != want {
		t.Errorf("Clean = %q, want %q", clean, want)
	}
	if got, ok := errors.AsType[*azcore.ResponseError](clean); !ok || got != answer {
		t.Error("the service's answer is not in the chain any more")
	}
	if Clean(clean) != clean {
		t.Error("cleaning twice wraps twice")
	}
	if Clean(nil) != nil || Summary(nil) != "" {
		t.Error("nothing was made into something")
	}
	if again := fmt.Errorf("outer: %w", clean).Error(); again != "outer: "+clean.Error() {
		t.Errorf("wrapping a clean error gives %q", again)
	}
}

func TestRedactBlanksEverySecretAndLeavesTheRest(t *testing.T) {
	for in, want := range map[string]string{
		"https://a/c/b?sv=2024&sig=abc%3D&sp=r": "https://a/c/b?sv=2024&sig=REDACTED&sp=r",
		"sig=abc":                               "sig=REDACTED",
		"?SIG=abc":                              "?SIG=REDACTED",
		"copy from https%3A%2F%2Fa%2Fc%3Fsig%3Dabc":                          "copy from https%3A%2F%2Fa%2Fc%3Fsig%3DREDACTED",
		"AccountName=dev;AccountKey=Eby8vdM02==;EndpointSuffix=x":            "AccountName=dev;AccountKey=REDACTED;EndpointSuffix=x",
		"SharedAccessSignature=sv=1&sig=abc;BlobEndpoint=http://x":           "SharedAccessSignature=sv=1&sig=REDACTED;BlobEndpoint=http://x",
		"Authorization: SharedKey acct:c2lnbmF0dXJl":                         "Authorization: SharedKey REDACTED",
		"authorization: Bearer eyJ0":                                         "authorization: Bearer REDACTED",
		"the design=good and the signature is fine":                          "the design=good and the signature is fine",
		"409 LeaseAlreadyPresent: There is already a lease present. c/sig/b": "409 LeaseAlreadyPresent: There is already a lease present. c/sig/b",
	} {
		if got := Redact(in); got != want {
			t.Errorf("Redact(%q)\n got %q\nwant %q", in, got, want)
		}
	}
}

func FuzzRedactNeverShowsTheSignature(f *testing.F) {
	f.Add("https://a.b/c?", "&sp=r")
	f.Add("", "")
	f.Add("AccountKey=", ";x")
	f.Fuzz(func(t *testing.T, before, after string) {
		const planted = "PLANTEDSECRET0123456789"
		for _, form := range []string{"?sig=" + planted, "AccountKey=" + planted + ";", "SharedKey acct:" + planted + " "} {
			if got := Redact(before + "\n" + form + "\n" + after); strings.Contains(got, planted) {
				t.Errorf("Redact(%q) shows the secret: %q", before+form+after, got)
			}
		}
	})
}
