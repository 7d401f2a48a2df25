package aztest_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

func content(s string) io.ReadSeekCloser { return streaming.NopCloser(strings.NewReader(s)) }

// once sends without the SDK's retries.
func once(ctx context.Context) context.Context {
	return policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: -1})
}

func stored(t *testing.T, client *blockblob.Client) string {
	t.Helper()
	resp, err := client.DownloadStream(context.Background(), nil)
	if err != nil {
		return "nothing"
	}
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestWhatEachFaultDoes says, for every kind, what the caller sees and what the service holds.
func TestWhatEachFaultDoes(t *testing.T) {
	isAnswer := func(status int, code string) func(error) bool {
		return func(err error) bool {
			r, ok := errors.AsType[*azcore.ResponseError](err)
			return ok && r.StatusCode == status && r.ErrorCode == code
		}
	}
	isError := func(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }
	none := func(err error) bool { return err == nil }
	for _, tt := range []struct {
		fault   aztest.Fault
		sees    func(error) bool
		holds   string
		took    time.Duration
		arrived bool // the service carried it out before the caller knew
	}{
		{aztest.Fault{Kind: aztest.Refuse}, isError(syscall.ECONNREFUSED), "old", 0, false},
		{aztest.Fault{Kind: aztest.Slow, Delay: 3 * time.Second}, none, "new", 3 * time.Second, true},
		{aztest.Fault{Kind: aztest.Slow, Delay: time.Hour}, isError(context.DeadlineExceeded), "old", time.Minute, false},
		{aztest.Fault{Kind: aztest.Throttle, RetryAfter: 5 * time.Second}, isAnswer(503, "ServerBusy"), "old", 0, false},
		{aztest.Fault{Kind: aztest.Answer, Status: 403, Code: "AuthorizationFailure"}, isAnswer(403, "AuthorizationFailure"), "old", 0, false},
		{aztest.Fault{Kind: aztest.FailAfterCommit}, isAnswer(500, "InternalError"), "new", 0, true},
		{aztest.Fault{Kind: aztest.LoseAnswer}, isError(syscall.ECONNRESET), "new", 0, true},
		{aztest.Fault{Kind: aztest.LoseRequest}, isError(syscall.ECONNRESET), "old", 0, false},
		{aztest.Fault{Kind: aztest.CutAnswer}, isError(syscall.ECONNRESET), "new", 0, true}, // the answer has no body to cut
		{aztest.Fault{Kind: aztest.RepeatLater, Delay: time.Second}, none, "new", 0, true},
		{aztest.Fault{Kind: aztest.AnswerTwice}, isAnswer(412, "ConditionNotMet"), "new", 0, true},
		{aztest.Fault{Kind: aztest.AnswerTwice, Delay: 3 * time.Second}, isAnswer(412, "ConditionNotMet"), "new", 3 * time.Second, true},
		{aztest.Fault{Kind: aztest.RepeatAtOnce}, none, "new", 0, true},
		{aztest.Fault{Kind: aztest.DelayCommit, Delay: time.Second}, func(err error) bool {
			timeout, ok := errors.AsType[net.Error](err)
			return ok && timeout.Timeout()
		}, "old", 0, false},
		{aztest.Fault{Kind: aztest.CommitAfterBreak, Delay: time.Second}, isError(syscall.ECONNRESET), "old", 0, false},
		{aztest.Fault{Kind: aztest.Rechunk}, none, "new", 0, true},
		{aztest.Fault{Kind: aztest.Truncate}, none, "new", 0, true}, // the answer has no body to truncate
		{aztest.Fault{Kind: aztest.Page, Status: 201}, none, "old", 0, false},
		{aztest.Fault{Kind: aztest.Page, Status: 502}, isAnswer(502, ""), "old", 0, false},
		{aztest.Fault{Kind: aztest.PageAfterCommit}, isAnswer(504, ""), "new", 0, true},
		{aztest.Fault{Kind: aztest.Hang}, isError(context.DeadlineExceeded), "old", time.Minute, false},
	} {
		t.Run(strings.TrimSuffix(fmt.Sprint(tt.fault.Kind, "/", tt.fault.Status), "/0"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := aztest.New(nil)
				client := s.BlockBlob("box", "blob")
				old, err := client.Upload(t.Context(), content("old"), nil)
				if err != nil {
					t.Fatal(err)
				}
				tt.fault.Match, tt.fault.Count = aztest.Op("Put Blob"), 1
				s.SetFaults(tt.fault)
				s.Reset()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				began := time.Now()
				_, err = client.Upload(once(ctx), content("new"), &blockblob.UploadOptions{AccessConditions: &blob.AccessConditions{
					ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: old.ETag},
				}})
				if !tt.sees(err) {
					t.Errorf("the caller sees %v", err)
				}
				if took := time.Since(began); took != tt.took {
					t.Errorf("it took %v, want %v", took, tt.took)
				}
				if log := s.Log(); len(log) != 1 || log[0].Fault != tt.fault.Kind || log[0].Op != "Put Blob" || log[0].Resource != "box/blob" {
					t.Errorf("log = %v", log)
				}
				if got := stored(t, client); got != tt.holds {
					t.Errorf("the service holds %q, want %q", got, tt.holds)
				}
				ofTheService := tt.fault.Kind != aztest.Page && tt.fault.Kind != aztest.PageAfterCommit
				if r, ok := errors.AsType[*azcore.ResponseError](err); ok && (r.RawResponse.Header.Get("x-ms-request-id") != "") != ofTheService {
					t.Errorf("the answer's headers are %v", r.RawResponse.Header)
				}
				if tt.fault.Kind == aztest.DelayCommit || tt.fault.Kind == aztest.CommitAfterBreak {
					bubble.Sleep(tt.fault.Delay)
					if got := stored(t, client); got != "new" {
						t.Errorf("a second later the service holds %q, want what was held back", got)
					}
				}
			})
		})
	}
}

// TestARepetitionAtOnceComesBeforeTheAnswer: an append that is delivered twice is there twice when its caller learns of
// the first.
func TestARepetitionAtOnceComesBeforeTheAnswer(t *testing.T) {
	s := aztest.New(nil)
	if _, err := s.Container("box").Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	client := s.Container("box").NewAppendBlobClient("log")
	if _, err := client.Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	s.SetFaults(aztest.Fault{Kind: aztest.RepeatAtOnce, Match: aztest.Op("Append Block"), Count: 1})
	resp, err := client.AppendBlock(once(t.Context()), content("x"), nil)
	if err != nil || *resp.BlobAppendOffset != "0" {
		t.Fatalf("AppendBlock = %v, %v; want the answer to the first delivery", resp, err)
	}
	if got, err := client.GetProperties(t.Context(), nil); err != nil || *got.ContentLength != 2 {
		t.Errorf("the blob has %v bytes, %v; want both deliveries", got.ContentLength, err)
	}
}

// TestALateRepetitionIsARequestLikeAnyOther: what a network kept destroys what was written in between, unless a condition
// stands in its way.
func TestALateRepetitionIsARequestLikeAnyOther(t *testing.T) {
	for _, conditional := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := aztest.New(nil)
			client := s.BlockBlob("box", "blob")
			old, err := client.Upload(t.Context(), content("old"), nil)
			if err != nil {
				t.Fatal(err)
			}
			opts := &blockblob.UploadOptions{}
			if conditional {
				opts.AccessConditions = &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: old.ETag}}
			}
			s.SetFaults(aztest.Fault{Kind: aztest.RepeatLater, Delay: time.Minute, Count: 1})
			if _, err := client.Upload(once(t.Context()), content("mine"), opts); err != nil {
				t.Fatal(err)
			}
			if _, err := client.Upload(t.Context(), content("another's"), nil); err != nil {
				t.Fatal(err)
			}
			bubble.Sleep(time.Minute)
			want := map[bool]string{false: "mine", true: "another's"}[conditional]
			if got := stored(t, client); got != want {
				t.Errorf("conditional %t: the service holds %q, want %q", conditional, got, want)
			}
		})
	}
}

func TestWhatIsHeldBackLandsInTheOrderInWhichItIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		client := s.BlockBlob("box", "blob")
		for text, delay := range map[string]time.Duration{"second": 2 * time.Second, "first": time.Second} {
			s.SetFaults(aztest.Fault{Kind: aztest.DelayCommit, Delay: delay, Count: 1})
			_, _ = client.Upload(once(t.Context()), content(text), nil)
		}
		bubble.Sleep(time.Hour)
		if got := stored(t, client); got != "second" {
			t.Errorf("the service holds %q, want what was due last", got)
		}
	})
}

// TestACutAnswerIsNoticed: a list that ends in its middle is an error, in memory and through a socket.
func TestACutAnswerIsNoticed(t *testing.T) {
	s := aztest.New(nil)
	s.BlockBlob("box", "blob")
	server := httptest.NewServer(s.BlobHandler())
	defer server.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	for name, client := range map[string]*http.Client{"in memory": {Transport: roundTrip(s.Do)}, "through a socket": {Transport: transport}} {
		base := s.BlobURL()
		if name == "through a socket" {
			base = server.URL + "/" + aztest.Account
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"?comp=list&sig=any", nil)
		if err != nil {
			t.Fatal(err)
		}
		s.SetFaults(aztest.Fault{Kind: aztest.CutAnswer, Count: 1})
		response, err := client.Do(r)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		data, err := io.ReadAll(response.Body)
		response.Body.Close()
		if !errors.Is(err, io.ErrUnexpectedEOF) || len(data) == 0 {
			t.Errorf("%s: %d bytes, then %v", name, len(data), err)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestFaultsAreCountedAndSkipped(t *testing.T) {
	s := aztest.New(nil)
	client := s.BlockBlob("box", "blob")
	s.SetFaults(aztest.Fault{Kind: aztest.Throttle, Match: aztest.Writes, Skip: 2, Count: 2})
	var got []bool
	for range 6 {
		_, err := client.Upload(once(t.Context()), content("x"), nil)
		got = append(got, err == nil)
	}
	if fmt.Sprint(got) != "[true true false false true true]" {
		t.Errorf("successes: %v", got)
	}
}

// history runs a workload in a bubble and returns a digest of everything that was sent and answered.
func history(t *testing.T, seed uint64) (digest string) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(&aztest.Options{Seed: seed})
		s.SetFaults(
			aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Probability: 0.2},
			aztest.Fault{Kind: aztest.Throttle, Probability: 0.1},
			aztest.Fault{Kind: aztest.DelayCommit, Match: aztest.Writes, Probability: 0.1, Delay: 3 * time.Second},
		)
		var wg sync.WaitGroup
		for w := range 3 {
			wg.Go(func() {
				client := s.BlockBlob("box", fmt.Sprint(w))
				for i := range 40 {
					bubble.Sleep(time.Duration(3*i+w+1) * time.Millisecond) // no two at the same instant
					_, _ = client.Upload(once(t.Context()), content(fmt.Sprint(i)), nil)
				}
			})
		}
		wg.Wait()
		sum := sha256.New()
		for _, r := range s.Log() {
			fmt.Fprintln(sum, r.At.Sub(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)), r)
		}
		digest = fmt.Sprintf("%x", sum.Sum(nil))
	})
	return digest
}

func TestTheSameSeedIsTheSameHistory(t *testing.T) {
	first := history(t, 7)
	for range 3 {
		if again := history(t, 7); again != first {
			t.Fatalf("%s, then %s", first, again)
		}
	}
	if other := history(t, 8); other == first {
		t.Error("another seed is the same history")
	}
}

// TestAProxyBreaksTheConnection shows the same faults through a socket, in front of a service that knows nothing of
// them.
func TestAProxyBreaksTheConnection(t *testing.T) {
	service := aztest.New(nil)
	client := service.BlockBlob("box", "blob")
	backend := httptest.NewServer(service.BlobHandler())
	defer backend.Close()
	target, err := url.Parse(backend.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := aztest.NewProxy(target, 1)
	defer proxy.Close()
	front := httptest.NewServer(proxy.Handler())
	defer front.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	credential, err := blob.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		t.Fatal(err)
	}
	through, err := blockblob.NewClientWithSharedKeyCredential(front.URL+"/"+aztest.Account+"/box/blob", credential,
		&blockblob.ClientOptions{ClientOptions: policy.ClientOptions{Transport: &http.Client{Transport: transport}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := through.Upload(once(t.Context()), content("one"), nil); err != nil || stored(t, client) != "one" {
		t.Fatalf("without a fault: %v, %q", err, stored(t, client))
	}
	for kind, holds := range map[aztest.FaultKind]string{aztest.LoseAnswer: "two", aztest.LoseRequest: "one"} {
		_, _ = client.Upload(t.Context(), content("one"), nil)
		proxy.SetFaults(aztest.Fault{Kind: kind, Match: aztest.Writes, Count: 1})
		_, err := through.Upload(once(t.Context()), content("two"), nil)
		if _, ok := errors.AsType[*url.Error](err); !ok {
			t.Errorf("%s: the caller sees %v, want a transport error", kind, err)
		}
		if got := stored(t, client); got != holds {
			t.Errorf("%s: the service holds %q, want %q", kind, got, holds)
		}
	}
	proxy.SetFaults(aztest.Fault{Kind: aztest.Throttle, RetryAfter: 2 * time.Second, Match: aztest.Writes, Count: 1})
	_, err = through.Upload(once(t.Context()), content("three"), nil)
	if r, ok := errors.AsType[*azcore.ResponseError](err); !ok || r.ErrorCode != "ServerBusy" || r.RawResponse.Header.Get("Retry-After") != "2" {
		t.Errorf("throttled: %v", err)
	}
}

func TestNothingIsSharedBetweenAnswersAndTheService(t *testing.T) {
	s := aztest.New(nil)
	client := s.BlockBlob("box", "blob")
	body := []byte("original")
	if _, err := client.Upload(t.Context(), streaming.NopCloser(bytes.NewReader(body)), nil); err != nil {
		t.Fatal(err)
	}
	copy(body, "tampered")
	if got := stored(t, client); got != "original" {
		t.Errorf("the service holds %q", got)
	}
}

func TestARequestWithoutCredentialsIsRefused(t *testing.T) {
	s := aztest.New(nil)
	s.BlockBlob("box", "blob")
	client, err := blockblob.NewClientWithNoCredential(s.BlobURL()+"/box/blob", &blockblob.ClientOptions{ClientOptions: s.ClientOptions()})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Upload(once(t.Context()), content("x"), nil)
	if r, ok := errors.AsType[*azcore.ResponseError](err); !ok || r.StatusCode != http.StatusUnauthorized {
		t.Errorf("err = %v", err)
	}
}
