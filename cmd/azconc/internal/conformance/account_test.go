package conformance

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
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/azurite/azuritetest"
)

// variable selects the sections that are asked of the account which the environment names.
const variable = "AZCONC_CONFORMANCE"

// TestAnAccountAnswersAsTheServiceDoes is scripts/conformance.
func TestAnAccountAnswersAsTheServiceDoes(t *testing.T) {
	only := os.Getenv(variable)
	if only == "" {
		t.Skip("scripts/conformance asks an account of yours")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, func() {
		stop() // a second interrupt ends the process at once
		fmt.Fprintln(os.Stderr, "conformance: interrupted: removing what was created; interrupt again to leave it")
	})()
	r, err := newRig(ctx, os.Getenv, only, http.DefaultTransport.(*http.Transport).Clone())
	if err != nil {
		t.Fatal(err)
	}
	defer r.transport.CloseIdleConnections()
	r.out, r.stderr = os.Stdout, os.Stderr
	r.ask(t)
	if problem := r.problem(); problem != "" {
		t.Error(problem)
	}
}

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

// ask asks sections of the account, and returns the rig and its output. It fails if the output has a secret.
func (s *standIn) ask(ctx context.Context, t *testing.T, connection, only string) (r *rig, stdout, stderr string) {
	t.Helper()
	r, stdout, stderr = asked(ctx, t, connection, only, s.transport())
	for _, secret := range []string{accountKey, "VDBQU0VDUkVUVDBQU0VDUkVU", accountName} {
		if strings.Contains(stdout+stderr, secret) {
			t.Errorf("the output shows %s", secret)
		}
	}
	return r, stdout, stderr
}

func asked(ctx context.Context, t *testing.T, connection, only string, transport *http.Transport) (_ *rig, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	r := rigOf(ctx, t, connection, only, transport)
	r.out, r.stderr = &out, &errs
	r.ask(t)
	return r, out.String(), errs.String()
}

func rigOf(ctx context.Context, t *testing.T, connection, only string, transport *http.Transport) *rig {
	t.Helper()
	r, err := newRig(ctx, env{"AZURE_STORAGE_CONNECTION_STRING": connection}.get, only, transport)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.CloseIdleConnections)
	return r
}

type env map[string]string

func (e env) get(name string) string { return e[name] }

const byKey = "DefaultEndpointsProtocol=https;AccountName=" + accountName + ";AccountKey=" + accountKey

// leftovers returns the names of what was created and still exists.
func leftovers(t *testing.T, connectionString string, transport *http.Transport) (names []string) {
	t.Helper()
	r := rigOf(t.Context(), t, connectionString, ".", transport)
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
	return leftovers(t, byKey, s.transport())
}

var documentedRequests = regexp.MustCompile(`about ([\d,]+) requests`)

// The whole run, on an account that behaves as the service does: every rule holds, nothing is left behind, and the
// number of requests is the one in the README, within a tenth.
func TestARunOnAnAccountThatAnswersAsTheServiceDoes(t *testing.T) {
	s := newStandIn(t)
	r, stdout, stderr := s.ask(t.Context(), t, byKey, "^([^e]|entity)") // all except the one that waits
	if r.problem() != "" || !strings.Contains(stdout, ", 0 differ") || strings.Contains(stdout, "DIFFERS") {
		t.Errorf("%s\n%s\n%s", r.problem(), grep(stdout, "DIFFERS|rules:|SKIP"), stderr)
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
	readme, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	said := documentedRequests.FindSubmatch(readme)
	if said == nil {
		t.Fatal("the README does not say what a run costs")
	}
	want, err := strconv.ParseInt(strings.ReplaceAll(string(said[1]), ",", ""), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.requests.Load(); got < want*9/10 || got > want*11/10 {
		t.Errorf("%d requests, the README says about %d", got, want)
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

// TestARunOnAzuriteAsIfItWereAnAccount asks sections in which Azurite is known to differ.
func TestARunOnAzuriteAsIfItWereAnAccount(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: other tests ask Azurite, and this is a short run")
	}
	connection := azuritetest.Account(t).ConnectionString()
	r, stdout, stderr := asked(t.Context(), t, connection, "^(container|queue|file)$", &http.Transport{})
	if r.problem() != "" {
		t.Errorf("%s\n%s\n%s", r.problem(), grep(stdout, "DIFFERS|rules:"), stderr)
	}
	for _, want := range []string{"| known: it deletes at once |", "SKIP file: the account has no endpoint of the file service", "known differences of the emulator"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the output does not say %q:\n%s", want, grep(stdout, "known|SKIP"))
		}
	}
	if got := leftovers(t, connection, &http.Transport{}); len(got) > 0 {
		t.Errorf("left behind: %s", got)
	}
}

// An account that behaves differently is convicted, by name, and cleaned up nevertheless.
func TestADifferenceIsReportedAndNothingIsLeftBehind(t *testing.T) {
	s := newStandIn(t)
	s.service.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: http.StatusConflict, Code: "LeaseAlreadyPresent", Match: aztest.Op("Renew Blob Lease"), Count: 1})
	r, stdout, _ := s.ask(t.Context(), t, byKey, "^lease$")
	if r.problem() == "" || !strings.Contains(stdout, "| lease: available: renew a A | 409 LeaseIdMismatchWithLeaseOperation | 409 LeaseAlreadyPresent | REST: Lease Blob | DIFFERS |") ||
		!strings.Contains(stdout, ", 1 differ") {
		t.Errorf("%s\n%s", r.problem(), grep(stdout, "DIFFERS|rules:"))
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
	var requests atomic.Int32
	s.service.SetFaults(aztest.Fault{Kind: aztest.Slow, Match: func(*aztest.Request) bool {
		if requests.Add(1) == 60 {
			interrupt()
		}
		return false
	}})
	r, stdout, _ := s.ask(ctx, t, byKey, "^(blob|container|table)$")
	if r.problem() != "interrupted" || !strings.Contains(stdout, "interrupted: the table is not complete") {
		t.Errorf("%s\n%s", r.problem(), grep(stdout, "DIFFERS|rules:|interrupted"))
	}
	if strings.Contains(stdout, "DIFFERS") {
		t.Errorf("answers that were never given are reported:\n%s", grep(stdout, "DIFFERS"))
	}
	if got := s.leftovers(t); len(got) > 0 {
		t.Errorf("left behind: %s", got)
	}
}

// A resource that cannot be removed is named.
func TestWhatCannotBeRemovedIsNamed(t *testing.T) {
	s := newStandIn(t)
	s.service.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: http.StatusForbidden, Code: "AuthorizationPermissionMismatch", Match: aztest.Op("Delete Container")})
	r, _, stderr := s.ask(t.Context(), t, byKey, "^versions$")
	if r.problem() == "" || !strings.Contains(stderr, "could not remove container "+namePrefix) {
		t.Errorf("%s, %s", r.problem(), stderr)
	}
	s.service.SetFaults()
	if got := s.leftovers(t); len(got) != 1 || !strings.Contains(stderr, "hint: azconc container delete "+got[0]+"\n") {
		t.Errorf("left behind: %s; %s", got, stderr)
	}
}

func TestASASIsACredentialAndNeverShown(t *testing.T) {
	s := newStandIn(t)
	r, stdout, stderr := s.ask(t.Context(), t, "DefaultEndpointsProtocol=https;AccountName="+accountName+";SharedAccessSignature="+accountSAS, "^sources$")
	if r.problem() != "" || !strings.Contains(stdout, "by SAS") {
		t.Errorf("%s\n%s%s", r.problem(), grep(stdout, "DIFFERS|rules:"), stderr)
	}
}

func TestWithoutAnAccountNothingIsAsked(t *testing.T) {
	for name, tt := range map[string]struct {
		env  env
		only string
		want string
	}{
		"no account":    {nil, ".", "AZURE_STORAGE_ACCOUNT"},
		"a bad key":     {env{"AZURE_STORAGE_ACCOUNT": "acme", "AZURE_STORAGE_KEY": "x!"}, ".", "AZURE_STORAGE_KEY is not base64"},
		"a bad pattern": {env{"AZURE_STORAGE_CONNECTION_STRING": byKey}, "(", "-only"},
	} {
		if _, err := newRig(t.Context(), tt.env.get, tt.only, &http.Transport{}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
