package azerr

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
)

// failed is an error as http.Client returns it.
func failed(err error) error {
	return &url.Error{Op: "Put", URL: "https://acct.blob.core.windows.net/c/b", Err: err}
}

// truncated is a response of which half has arrived, with no sign of it.
func truncated(body string) *http.Response {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(body))}
}

func TestErrorsWithoutAnAnswer(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"reset", failed(&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}), "unknown ambiguous transient"},
		{"reset, from a transport that is not http.Client", syscall.ECONNRESET, "unknown ambiguous transient"},
		{"broken pipe", failed(&net.OpError{Op: "write", Err: syscall.EPIPE}), "unknown ambiguous transient"},
		{"answer timed out", &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, "unknown ambiguous transient"},
		{"EOF", failed(io.EOF), "unknown ambiguous transient"},
		{"body cut off", fmt.Errorf("body download policy: %w", io.ErrUnexpectedEOF), "unknown ambiguous transient"},
		{"connection closed under it", net.ErrClosed, "unknown ambiguous transient"},
		{"something new of the transport", failed(errors.New("quic: surprise")), "unknown ambiguous transient"},
		{"answer is not XML", xml.Unmarshal([]byte("<a><b></a>"), new(struct{})), "unknown ambiguous transient"},
		{"a success that the SDK cannot parse as XML", runtime.UnmarshalAsXML(truncated(`<QueueMessagesList><Queue`), new(struct{})), "unknown ambiguous transient"},
		{"a success that the SDK cannot parse as JSON", fmt.Errorf("read t/p/r: %w", runtime.UnmarshalAsJSON(truncated(`{"N": 1`), new(map[string]any))), "unknown ambiguous transient"},
		{"the same, joined", errors.Join(errors.New("x"), runtime.UnmarshalAsJSON(truncated(`{"N": 1`), new(map[string]any))), "unknown ambiguous transient"},
		{"deadline", failed(context.DeadlineExceeded), "unknown ambiguous transient"},
		{"deadline, bare", fmt.Errorf("put: %w", context.DeadlineExceeded), "unknown ambiguous transient"},
		{"cancelled", context.Canceled, "unknown ambiguous"},
		{"cancelled, and reset for it", errors.Join(context.Canceled, syscall.ECONNRESET), "unknown ambiguous"},

		{"refused", failed(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}), "unreachable transient"},
		{"no proxy", failed(&net.OpError{Op: "proxyconnect", Err: errors.New("refused")}), "unreachable transient"},
		{"no such host", &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "x"}}, "unreachable transient"},
		{"cancelled while dialling", failed(&net.OpError{Op: "dial", Err: context.Canceled}), "unreachable"},
		{"plain HTTP where TLS was expected", failed(http.ErrSchemeMismatch), "permanent"},

		{"a value that cannot be encoded", &json.UnsupportedValueError{Str: "NaN"}, "other"},
		{"the SDK's refusal of an argument", errors.New("parameter blob cannot be empty"), "other"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, err := range []error{tt.err, fmt.Errorf("put c/b: %w", tt.err), Clean(tt.err)} {
				o := Classify(err)
				if got := words(o); got != tt.want {
					t.Errorf("%v is %q, want %q", err, got, tt.want)
				}
				if o.Status != 0 || o.Code != "" || o.Index != -1 || o.RetryAfter != 0 {
					t.Errorf("facts = %+v", o)
				}
			}
		})
	}
}

// TestErrorsOfThisMachineAreNotErrorsOfTheNetwork: syscall.Errno implements net.Error, so that a missing local file once
// counted as a lost answer: worth another try, and possibly carried out.
func TestErrorsOfThisMachineAreNotErrorsOfTheNetwork(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	_, openErr := os.Open(missing)
	startErr := exec.CommandContext(t.Context(), missing).Run()
	for name, err := range map[string]error{
		"missing file":       openErr,
		"missing program":    startErr,
		"rename":             os.Rename(missing, missing+"2"),
		"bare number":        syscall.ENOSPC,
		"reader went away":   &os.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE},
		"closed file":        &os.PathError{Op: "read", Path: "x", Err: os.ErrClosed},
		"terminal timed out": &os.PathError{Op: "read", Path: "/dev/tty", Err: os.ErrDeadlineExceeded},
	} {
		if err == nil {
			t.Fatalf("%s: no error to look at", name)
		}
		if got := words(Classify(err)); got != "other" {
			t.Errorf("%s: %v is %q, want other", name, err, got)
		}
	}
	half := failed(&os.PathError{Op: "read", Path: "big.bin", Err: syscall.EIO})
	if !Classify(half).Ambiguous() {
		t.Error("a request that broke off while its body was read from a file is said not to have been sent")
	}
}

// client is a real one that sends once.
func client(t *testing.T, url string) *blockblob.Client {
	t.Helper()
	c, err := blockblob.NewClientWithNoCredential(url+"/devstoreaccount1/c/b?sv=2024-11-04&sp=rw&sig="+secret, &blockblob.ClientOptions{
		ClientOptions: policy.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// server answers every request with handle.
func server(t *testing.T, handle http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return s
}

// nobody is the URL of a port that nobody listens on.
func nobody(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	return "http://" + listener.Addr().String()
}

// TestRealFailuresOfARealClient meets the errors where they come from, because nobody documents what they look like.
func TestRealFailuresOfARealClient(t *testing.T) {
	drop := func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }
	half := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, "<half")
		panic(http.ErrAbortHandler)
	}
	quietTLS := httptest.NewUnstartedServer(http.HandlerFunc(drop))
	quietTLS.Config.ErrorLog = quiet
	quietTLS.StartTLS()
	defer quietTLS.Close()
	for _, tt := range []struct {
		name, url, want, says string
	}{
		{"nobody listens", nobody(t), "unreachable transient", "nothing listens at 127.0.0.1:"},
		{"the connection is cut", server(t, drop).URL, "unknown ambiguous transient", ""},
		{"the answer is cut", server(t, half).URL, "unknown ambiguous transient", ""},
		{"the certificate is not trusted", quietTLS.URL, "permanent", "does not trust who has issued the certificate of 127.0.0.1:"},
		{"there is no TLS", "https" + server(t, drop).URL[len("http"):], "permanent", "speaks no TLS"},
		{"there is TLS", "http" + quietTLS.URL[len("https"):], "bad input", "the port speaks TLS"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := client(t, tt.url).SetMetadata(t.Context(), nil, nil)
			if err == nil {
				t.Fatal("no error")
			}
			if got := words(Classify(err)); got != tt.want {
				t.Errorf("%v is %q, want %q", err, got, tt.want)
			}
			if why, _ := Explain(err); !strings.Contains(why, tt.says) || (why == "") != (tt.says == "") {
				t.Errorf("%v: %q, want %q", err, why, tt.says)
			}
		})
	}
}

func TestACancelledRequestMayHaveBeenCarriedOut(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	arrived := make(chan struct{})
	s := server(t, func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	})
	go func() {
		<-arrived
		cancel(errors.New("the lease was lost"))
	}()
	_, err := client(t, s.URL).SetMetadata(ctx, nil, nil)
	if got := words(Classify(err)); got != "unknown ambiguous" {
		t.Errorf("%v is %q, want it ambiguous and not worth another try", err, got)
	}
}

func TestADeadlineOfTheTryIsWorthAnotherOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := transport(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		c, err := blockblob.NewClientWithNoCredential("https://acct.blob.core.windows.net/c/b", &blockblob.ClientOptions{
			ClientOptions: policy.ClientOptions{Transport: silent, Retry: policy.RetryOptions{MaxRetries: -1, TryTimeout: time.Second}},
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.SetMetadata(t.Context(), nil, nil)
		if got := words(Classify(err)); got != "unknown ambiguous transient" || t.Context().Err() != nil {
			t.Errorf("%v is %q, want it worth another try while the caller's context lives", err, got)
		}
	})
}

// TestAPostWhoseAnswerBreaksOffIsNotAQuestionOfRights: the SDK marks it with the same mark as a failed sign-in.
func TestAPostWhoseAnswerBreaksOffIsNotAQuestionOfRights(t *testing.T) {
	broken := transport(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 201, Header: http.Header{}, Request: r, Body: io.NopCloser(breaks{})}, nil
	})
	err := post(t, policy.ClientOptions{Transport: broken}, runtime.PipelineOptions{})
	if _, ok := errors.AsType[nonRetriable](err); !ok {
		t.Fatalf("the premise is gone: %v is not marked", err)
	}
	if got := words(Classify(err)); got != "unknown ambiguous transient" {
		t.Errorf("%v is %q, want it ambiguous", err, got)
	}
}

func TestARequestThatCouldNotBeSignedWasNotSent(t *testing.T) {
	sent := 0
	never := transport(func(r *http.Request) (*http.Response, error) {
		sent++
		return nil, io.EOF
	})
	token := runtime.NewBearerTokenPolicy(noToken{}, []string{"https://storage.azure.com/.default"}, nil)
	err := post(t, policy.ClientOptions{Transport: never}, runtime.PipelineOptions{PerRetry: []policy.Policy{token}})
	if got := words(Classify(err)); got != "unauthorised" || sent != 0 {
		t.Errorf("%v is %q with %d requests sent, want unauthorised and none", err, got, sent)
	}
}

// post sends one through the SDK's own pipeline.
func post(t *testing.T, client policy.ClientOptions, opts runtime.PipelineOptions) error {
	t.Helper()
	client.Retry.MaxRetries = -1
	request, err := runtime.NewRequest(t.Context(), http.MethodPost, "https://acct.table.core.windows.net/t")
	if err != nil {
		t.Fatal(err)
	}
	pipeline := runtime.NewPipeline("azerr", "v0.0.0", opts, &client)
	response, err := pipeline.Do(request)
	if err == nil {
		response.Body.Close()
		t.Fatal("no error")
	}
	return err
}

// TestAResetHTTP2StreamIsALostAnswer: its error has no exported type and none of the usual interfaces.
func TestAResetHTTP2StreamIsALostAnswer(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		w.WriteHeader(http.StatusCreated)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}))
	s.EnableHTTP2 = true
	s.Config.ErrorLog = quiet
	s.StartTLS()
	defer s.Close()
	response, err := s.Client().Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	_, err = io.ReadAll(response.Body)
	if response.ProtoMajor != 2 || err == nil {
		t.Fatalf("the premise is gone: %s, %v", response.Proto, err)
	}
	if got := words(Classify(fmt.Errorf("put: %w", err))); got != "unknown ambiguous transient" {
		t.Errorf("%T %[1]v is %q, want it ambiguous", err, got)
	}
}

func TestAnAddressThatIsNoneIsBadInput(t *testing.T) {
	_, err := url.Parse("https://acct/%zz?sig=" + secret)
	if got := words(Classify(err)); got != "bad input" {
		t.Errorf("%v is %q, want bad input", err, got)
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) Do(r *http.Request) (*http.Response, error) { return f(r) }

// breaks fails in a way that only the SDK's mark tells.
type breaks struct{}

func (breaks) Read([]byte) (int, error) { return 0, errors.New("gzip: invalid checksum") }

type noToken struct{}

func (noToken) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{}, errors.New("run az login")
}

// TestAHeaderThatCannotBeSentIsBadInput: net/http refuses it before it connects, so nothing is unknown.
func TestAHeaderThatCannotBeSentIsBadInput(t *testing.T) {
	connected := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { connected = true }))
	defer server.Close()
	for name, value := range map[string]string{"x-ms-blob-content-type": "a\nb", "x ms": "a"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header[name] = []string{value}
		_, err = server.Client().Do(r)
		if o := Classify(err); err == nil || o.Kind != BadInput || o.Ambiguous() || o.Transient() || connected {
			t.Errorf("%s %q: %v is %+v, connected %v", name, value, err, o, connected)
		}
	}
}
