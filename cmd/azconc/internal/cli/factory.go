package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/azaccount"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/monitor"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/report"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pkg/azerr"
)

// Factory gives a command its streams, settings and clients. Clients are built on first use, so that help and flag errors
// need no connection.
type Factory struct {
	Streams // Out is for content of blobs, not redacted; everything else goes through Print. Err is redacted, in whole lines.

	Env    Env
	Quiet  bool
	output report.Output
	form   string // -o
	query  string

	verbose   bool
	timeout   time.Duration
	Monitor   *monitor.Monitor
	failure   error // with which the command has ended
	Version   bool
	flags     azaccount.Flags
	urls      map[azaccount.Service]ref.Account
	mu        sync.Mutex         // guards resolved and transport: parts of a live view make their clients at the same time
	resolved  *azaccount.Account // by account
	Redactor  *redactor
	transport *http.Transport
	Wire      policy.Transporter // in place of transport, for tests
	Requests  atomic.Int64
	held      atomic.Pointer[string] // the command that ends the lease on a resource, if its metadata said so
	OnRequest func()                 // is called with each request; nil for nothing
	Began     time.Time
	ctx       context.Context
	cancel    context.CancelFunc
}

func NewFactory(s *Streams, env Env) *Factory {
	f := &Factory{Streams: *s, Env: env, Redactor: &redactor{W: s.Err}, Began: time.Now(), cancel: func() {}}
	f.Err = f.Redactor
	return f
}

func (f *Factory) Close() {
	f.cancel()
	f.Monitor.Close(f.failure)
	if f.transport != nil {
		f.transport.CloseIdleConnections()
	}
	f.Redactor.Flush()
}

func (f *Factory) AddFlags(cmd *cobra.Command) {
	p := cmd.PersistentFlags()
	p.StringVarP(&f.form, "output", "o", report.Text, "form of the result: "+report.Forms)
	p.StringVar(&f.query, "query", "", "print what this JMESPath `expression` selects from the JSON of the result, as JSON unless -o says otherwise")
	p.BoolVarP(&f.Quiet, "quiet", "q", false, "print no result, only messages and the exit code")
	p.BoolVarP(&f.verbose, "verbose", "v", false, "print a line per request to stderr")
	flags.Duration(p, &f.timeout, "timeout", false, "end the whole command after this long, with exit code 124")
	addConnectionFlags(p, &f.flags)
}

// Begin is the root's PersistentPreRunE: a command must not have its own.
func (f *Factory) Begin(cmd *cobra.Command, args []string) error {
	f.ctx = cmd.Context()
	if cmd.Name() == cobra.ShellCompRequestCmd {
		return nil // its arguments are those of another command, and incomplete
	}
	if err := flags.CheckGiven(cmd, args); err != nil {
		return err
	}
	var err error
	if f.output, err = report.Parse(f.form, cmd.Flags().Changed("output"), f.query); err != nil {
		return err
	}
	if asked := f.output.Asked(); asked != "" && (cmd.Annotations[TextOnly] != "" || cmd.HasSubCommands() && len(args) == 0 && !f.Version) {
		return fail.WithHint(fail.Usagef("%s does not apply to %s, which prints text", asked, cmd.CommandPath()), "omit it")
	}
	if err := f.localNames(cmd, args); err != nil {
		return err
	}
	if err := f.monitor(cmd); err != nil {
		return err
	}
	if f.timeout > 0 {
		f.ctx, f.cancel = context.WithTimeoutCause(f.ctx, f.timeout, &fail.TimeoutError{After: f.timeout})
		cmd.SetContext(f.ctx)
	}
	return nil
}

// monitor begins to follow the command, if its flags or the environment ask for that.
func (f *Factory) monitor(cmd *cobra.Command) (err error) {
	o := monitor.Options{Command: strings.TrimPrefix(cmd.CommandPath(), "azconc "), Getenv: f.Env.Get, Warn: f.Notef}
	// With --manifest, the address is one in the container.
	if flag := cmd.Flags().Lookup(flags.MetricsName); flag != nil && !cmd.Flags().Changed("manifest") {
		o.Address = flag.Value.String()
	}
	if !o.Needed() {
		return nil
	}
	f.ctx, f.Monitor, err = monitor.Open(f.ctx, o)
	cmd.SetContext(f.ctx)
	if at := f.Monitor.Address(); at != "" && !f.Quiet {
		f.Notef("metrics are at http://%s/metrics", at)
	}
	return err
}

// JSON reports whether results are JSON, and so are failures.
func (f *Factory) JSON() bool { return f.output.Form() == report.JSON }

// Text reports whether results are text for people, and not in one of the forms for programs.
func (f *Factory) Text() bool { return f.output.Form() == report.Text }

// Selects reports whether --query selects a part of the result.
func (f *Factory) Selects() bool { return f.query != "" }

// Content returns the writer for the content of a blob: stdout, or nothing with --quiet.
func (f *Factory) Content() io.Writer {
	if f.Quiet {
		return io.Discard
	}
	return f.Out
}

// Notef prints a line to stderr, with the program's name before it.
func (f *Factory) Notef(format string, args ...any) {
	line := fmt.Sprintf("azconc: "+format, args...)
	if f.ErrTerminal {
		line = show.Printable(line)
	}
	fmt.Fprintln(f.Err, line)
}

// ClientOptions returns the options of every client. Reads use their Retry; writes turn it off. The options are new each time, because
// some SDK constructors append to them.
func (f *Factory) ClientOptions() azcore.ClientOptions {
	return azcore.ClientOptions{
		Transport: f.sender(),
		Telemetry: policy.TelemetryOptions{ApplicationID: "azconc"},
		Retry:     policy.RetryOptions{RetryDelay: 200 * time.Millisecond, MaxRetryDelay: 10 * time.Second},
		// The service logs the id, and sends it back. The id is signed, so a policy that runs before the signature adds it.
		PerCallPolicies:  []policy.Policy{runtime.NewRequestIDPolicy()},
		PerRetryPolicies: []policy.Policy{azerr.Policy{}, &requestLog{f: f}, f.Monitor},
	}
}

// sender keeps enough idle connections for the parallel parts of azconc (with the SDK's 10, p99 was three times as long
// at 32 workers). It gives up on a server that does not respond for longer than any service timeout.
func (f *Factory) sender() policy.Transporter {
	if f.Wire != nil {
		return f.Wire
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.transport == nil {
		dialer := &net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}
		f.transport = &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			OnProxyConnectResponse: fail.ProxyRefused,
			DialContext:            dialer.DialContext,
			ForceAttemptHTTP2:      true,
			MaxIdleConns:           256,
			MaxIdleConnsPerHost:    64,
			IdleConnTimeout:        60 * time.Second,
			TLSHandshakeTimeout:    15 * time.Second,
			ResponseHeaderTimeout:  90 * time.Second,
		}
	}
	return &http.Client{Transport: f.transport, CheckRedirect: notFollowed}
}

// notFollowed makes a redirect the answer: Azure Storage never redirects, and net/http turns a PUT into a GET when it follows one.
func notFollowed(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Env is an environment in the form of os.Environ. The last of two equal names counts, as it does for os/exec.
type Env []string

// Get returns the value of name, "" when it is not set.
func (e Env) Get(name string) string {
	for i := len(e) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(e[i], "="); ok && k == name {
			return v
		}
	}
	return ""
}

// requestLog counts the requests that were sent and prints them with --verbose: never a query string, since that is
// where a SAS lives.
type requestLog struct{ f *Factory }

func (l *requestLog) Do(req *policy.Request) (*http.Response, error) {
	l.f.Requests.Add(1)
	if l.f.OnRequest != nil {
		l.f.OnRequest()
	}
	began := time.Now()
	resp, err := req.Next()
	if err == nil && resp.Header.Get("x-ms-lease-state") == "leased" {
		for name, way := range map[string]string{"azconclock": "azconc lock break", "terraformlockid": "azconc tf unlock"} {
			if resp.Header.Get("x-ms-meta-"+name) != "" {
				l.f.held.Store(&way)
			}
		}
	}
	if !l.f.verbose {
		return resp, err
	}
	fields := []string{req.Raw().Method, req.Raw().URL.EscapedPath()}
	if err != nil {
		fields = append(fields, "error:", azerr.Clean(err).Error())
	} else {
		fields = append(fields, fmt.Sprint(resp.StatusCode), cmp.Or(resp.Header.Get("x-ms-error-code"), "-"),
			cmp.Or(resp.Header.Get("x-ms-request-id"), "-"))
	}
	l.f.Notef("%s %dms", strings.Join(fields, " "), time.Since(began).Milliseconds())
	return resp, err
}
