package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/azconc/azconc/cmd/azconc/internal/azaccount"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/azurite/azuritetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(azuritetest.StopAfter(m)) }

// standIn is an in-memory service under the host names of a real account.
type standIn struct {
	service *aztest.Service
	server  *httptest.Server
}

func newStandIn(t *testing.T) *standIn {
	s := &standIn{service: aztest.New(nil)}
	handlers := map[string]http.Handler{
		"blob": s.service.BlobHandler(), "table": s.service.TableHandler(), "queue": s.service.QueueHandler(), "file": s.service.FileHandler(),
	}
	s.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		words := strings.Split(r.Host, ".")
		r.URL.Path = "/" + aztest.Account + r.URL.Path // a real account is in the host
		if source, err := url.Parse(r.Header.Get("x-ms-copy-source")); err == nil && source.Host != "" {
			source.Path = "/" + aztest.Account + source.Path
			r.Header.Set("x-ms-copy-source", source.String())
		}
		if r.URL.Path == "/"+aztest.Account+"/$batch" { // its operations have URLs too
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			body = bytes.ReplaceAll(body, []byte("://"+r.Host+"/"), []byte("://"+r.Host+"/"+aztest.Account+"/"))
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		}
		handlers[words[1]].ServeHTTP(w, r)
	}))
	t.Cleanup(s.server.Close)
	return s
}

// transport connects to the service, whatever the host.
func (s *standIn) transport() *http.Transport {
	t := s.server.Client().Transport.(*http.Transport).Clone()
	t.TLSClientConfig.ServerName = "example.com" // as its certificate says
	t.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, s.server.Listener.Addr().String())
	}
	return t
}

const (
	accountName = "contosoprod"
	accountKey  = "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2Vj"
	accountSAS  = "sv=2024-11-04&ss=bqtf&srt=sco&sp=rwdlacu&sig=VDBQU0VDUkVUVDBQU0VDUkVU%3D"
)

// synced is a buffer that is safe for concurrent use.
type synced struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *synced) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *synced) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// conformance runs the program with an environment and returns its output and status. It fails if the output has a
// secret.
func (s *standIn) conformance(t *testing.T, ctx context.Context, env map[string]string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	var out, errs synced
	p := program{getenv: func(name string) string { return env[name] }, stdout: &out, stderr: &errs, transport: s.transport()}
	status = p.run(ctx, args)
	for _, secret := range []string{accountKey, "VDBQU0VDUkVUVDBQU0VDUkVU", accountName} {
		if strings.Contains(out.String()+errs.String(), secret) {
			t.Errorf("the output shows %s", secret)
		}
	}
	return out.String(), errs.String(), status
}

var byKey = map[string]string{"AZURE_STORAGE_CONNECTION_STRING": "DefaultEndpointsProtocol=https;AccountName=" + accountName + ";AccountKey=" + accountKey}

// leftovers returns the names of what was created and still exists.
func leftovers(t *testing.T, connectionString string, transport *http.Transport) (names []string) {
	t.Helper()
	account, err := azaccount.Resolve(azaccount.Flags{ConnectionString: connectionString}, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{ctx: t.Context(), account: account, emulator: account.Emulator(azaccount.Blob)}
	if err := r.connect(transport); err != nil {
		t.Fatal(err)
	}
	defer transport.CloseIdleConnections()
	note := func(name *string) {
		if strings.HasPrefix(strings.ReplaceAll(*name, "-", ""), "azconcconformance") {
			names = append(names, *name)
		}
	}
	first := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	containers, err := r.blobs.NewListContainersPager(nil).NextPage(t.Context())
	first(err)
	for _, c := range containers.ContainerItems {
		note(c.Name)
	}
	tables, err := r.tables.NewListTablesPager(nil).NextPage(t.Context())
	first(err)
	for _, x := range tables.Tables {
		note(x.Name)
	}
	queues, err := r.queues.NewListQueuesPager(nil).NextPage(t.Context())
	first(err)
	for _, q := range queues.Queues {
		note(q.Name)
	}
	if r.files != nil {
		shares, err := r.files.NewListSharesPager(nil).NextPage(t.Context())
		first(err)
		for _, s := range shares.Shares {
			note(s.Name)
		}
	}
	return names
}

func (s *standIn) leftovers(t *testing.T) []string {
	t.Helper()
	return leftovers(t, byKey["AZURE_STORAGE_CONNECTION_STRING"], s.transport())
}

var documentedRequests = regexp.MustCompile(`about ([\d,]+) requests`)

// The whole run, on an account that behaves as the service does: every rule holds, nothing is left behind, and the
// number of requests is the one in the README, within a tenth.
func TestARunOnAnAccountThatAnswersAsTheServiceDoes(t *testing.T) {
	s := newStandIn(t)
	stdout, stderr, status := s.conformance(t, t.Context(), byKey, "-only", "^([^e]|entity)") // all except the one that waits
	if status != exitOK || !strings.Contains(stdout, ", 0 differ") || strings.Contains(stdout, "DIFFERS") {
		t.Errorf("status %d\n%s\n%s", status, grep(stdout, "DIFFERS|rules:|SKIP"), stderr)
	}
	if got := s.leftovers(t); len(got) > 0 {
		t.Errorf("left behind: %s", got)
	}
	for _, want := range []string{"| lease: leased: acquire b B 15 | 409 LeaseAlreadyPresent | 409 LeaseAlreadyPresent | REST: Lease Blob | ok |",
		"| blob: Put Blob: If-Match: another |"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no row %q", want)
		}
	}
	readme, err := os.ReadFile("../../../../pkg/aztest/README.md")
	if err != nil {
		t.Fatal(err)
	}
	said := documentedRequests.FindSubmatch(readme)
	if said == nil {
		t.Fatal("the README does not say what a run costs")
	}
	want, err := strconv.Atoi(strings.ReplaceAll(string(said[1]), ",", ""))
	if err != nil {
		t.Fatal(err)
	}
	var got int
	if _, err := fmt.Sscanf(grep(stdout, "^[0-9]+ requests$"), "%d requests", &got); err != nil || got < want*9/10 || got > want*11/10 {
		t.Errorf("%d requests, the README says about %d (%v)", got, want, err)
	}
}

// grep returns the lines of text that match.
func grep(text, pattern string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if regexp.MustCompile(pattern).MatchString(strings.TrimSuffix(line, "\n")) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

func TestARunOnAzuriteAsIfItWereAnAccount(t *testing.T) {
	account := azuritetest.Account(t)
	env := map[string]string{"AZURE_STORAGE_CONNECTION_STRING": account.ConnectionString()}
	var out, errs synced
	p := program{getenv: func(name string) string { return env[name] }, stdout: &out, stderr: &errs, transport: &http.Transport{}}
	// The tests of aztest run the suite of package conformance against Azurite. This test runs a section in
	// which Azurite is known to differ.
	status := p.run(t.Context(), []string{"-only", "^(container|queue|file)$"})
	if status != exitOK {
		t.Errorf("status %d\n%s\n%s", status, grep(out.String(), "DIFFERS|rules:"), errs.String())
	}
	for _, want := range []string{"| known: it deletes at once |", "SKIP file: the account has no endpoint of the file service", "known differences of the emulator"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output does not say %q:\n%s", want, grep(out.String(), "known|SKIP"))
		}
	}
	if got := leftovers(t, account.ConnectionString(), &http.Transport{}); len(got) > 0 {
		t.Errorf("left behind: %s", got)
	}
}

// An account that behaves differently is convicted, by name, and cleaned up nevertheless.
func TestADifferenceIsReportedAndNothingIsLeftBehind(t *testing.T) {
	s := newStandIn(t)
	s.service.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: http.StatusConflict, Code: "LeaseAlreadyPresent", Match: aztest.Op("Renew Blob Lease"), Count: 1})
	stdout, _, status := s.conformance(t, t.Context(), byKey, "-only", "^lease$")
	if status != exitDifferent || !strings.Contains(stdout, "| lease: available: renew a A | 409 LeaseIdMismatchWithLeaseOperation | 409 LeaseAlreadyPresent | REST: Lease Blob | DIFFERS |") ||
		!strings.Contains(stdout, ", 1 differ") {
		t.Errorf("status %d\n%s", status, grep(stdout, "DIFFERS|rules:"))
	}
	if got := s.leftovers(t); len(got) > 0 {
		t.Errorf("left behind: %s", got)
	}
}

// An interrupt ends the suite, not the removal.
func TestAnInterruptedRunRemovesWhatItHasCreated(t *testing.T) {
	s := newStandIn(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	go func() {
		for s.service.Requests() < 60 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Millisecond):
			}
		}
		interrupt()
	}()
	stdout, stderr, status := s.conformance(t, ctx, byKey, "-only", "^(blob|container|table)$")
	if status != exitInterrupted || !strings.Contains(stdout, "interrupted: the table is not complete") || !strings.Contains(stderr, "interrupt again") {
		t.Errorf("status %d\n%s\n%s", status, grep(stdout, "DIFFERS|rules:|interrupted"), stderr)
	}
	if strings.Contains(stdout, "DIFFERS") {
		t.Errorf("answers that were never given are reported:\n%s", grep(stdout, "DIFFERS"))
	}
	if got := s.leftovers(t); len(got) > 0 {
		t.Errorf("left behind: %s", got)
	}
}

// A resource that cannot be removed is named, and the status reports it.
func TestWhatCannotBeRemovedIsNamed(t *testing.T) {
	s := newStandIn(t)
	s.service.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: http.StatusForbidden, Code: "AuthorizationPermissionMismatch", Match: aztest.Op("Delete Container")})
	_, stderr, status := s.conformance(t, t.Context(), byKey, "-only", "^versions$")
	if status != exitDifferent || !strings.Contains(stderr, "could not remove container "+namePrefix) ||
		!strings.Contains(stderr, "hint: azconc container delete "+namePrefix) {
		t.Errorf("status %d, %s", status, stderr)
	}
	s.service.SetFaults()
	if got := s.leftovers(t); len(got) != 1 || !strings.Contains(stderr, "container delete "+got[0]+"\n") {
		t.Errorf("left behind: %s; %s", got, stderr)
	}
}

func TestASASIsACredentialAndNeverShown(t *testing.T) {
	s := newStandIn(t)
	env := map[string]string{"AZURE_STORAGE_CONNECTION_STRING": "DefaultEndpointsProtocol=https;AccountName=" + accountName + ";SharedAccessSignature=" + accountSAS}
	stdout, stderr, status := s.conformance(t, t.Context(), env, "-only", "^sources$")
	if status != exitOK || !strings.Contains(stdout, "by SAS") {
		t.Errorf("status %d\n%s%s", status, grep(stdout, "DIFFERS|rules:"), stderr)
	}
}

func TestWithoutAnAccountNothingIsAsked(t *testing.T) {
	s := newStandIn(t)
	for name, tt := range map[string]struct {
		env  map[string]string
		args []string
		want string
	}{
		"no account":    {nil, nil, "AZURE_STORAGE_ACCOUNT"},
		"a bad key":     {map[string]string{"AZURE_STORAGE_ACCOUNT": "acme", "AZURE_STORAGE_KEY": "x!"}, nil, "AZURE_STORAGE_KEY is not base64"},
		"a bad pattern": {byKey, []string{"-only", "("}, "-only"},
	} {
		if _, stderr, status := s.conformance(t, t.Context(), tt.env, tt.args...); status != exitUsage || !strings.Contains(stderr, tt.want) {
			t.Errorf("%s: status %d, %s", name, status, stderr)
		}
	}
	if n := s.service.Requests(); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}
