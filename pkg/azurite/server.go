package azurite

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

//go:embed npm/preload.cjs
var preload []byte

// Server is a running Azurite. It is safe for concurrent use.
type Server struct {
	accounts []Account
	temp     string // removed by Stop: the preloaded script, and the data unless Location is set
	keep     bool   // the data belong to the caller
	release  func() // of the folder with the data, when the process has ended
	process  *os.Process
	stdin    io.Closer
	said     *output

	stop     sync.Once
	stopErr  error         // set by stop
	stopping chan struct{} // closed by stop before it ends the process
	done     chan struct{} // closed when the process has ended
	exit     error         // set before done is closed; nil if Stop was called before

	mu   sync.Mutex
	next int // guarded by mu: the account that NewAccount returns
}

// Start starts Azurite, after installing it if necessary, and returns when its three services respond. ctx bounds the
// start, not the life of the server.
//
// Errors are those of [Install], a [ToolError], a [ProcessError] of kind [ErrStart] with the end of Azurite's output,
// the cause of ctx, or those of Options.Location: it cannot be written, or another server uses it. A failed start leaves
// neither a process nor a temporary folder behind.
func Start(ctx context.Context, opts *Options) (*Server, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	release, err := occupy(o.Location)
	if err != nil {
		return nil, err
	}
	s, err := launch(ctx, &o)
	if err != nil {
		release()
		return nil, err
	}
	s.release = release
	return s, nil
}

func launch(ctx context.Context, o *Options) (_ *Server, err error) {
	if o.Dir == "" {
		if o.Dir, err = Install(ctx, &InstallOptions{Progress: o.Progress}); err != nil {
			return nil, err
		}
	}
	node, err := findNode(ctx)
	if err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp("", "azconc-azurite-")
	if err != nil {
		return nil, err
	}
	s := &Server{
		accounts: newAccounts(o.Accounts), temp: temp, keep: o.Location != "", said: newOutput(), next: 1,
		stopping: make(chan struct{}), done: make(chan struct{}),
	}
	if err := s.start(node, o); err != nil {
		return nil, errors.Join(&ProcessError{Kind: ErrStart, Err: err}, os.RemoveAll(temp))
	}
	if o.StartTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.StartTimeout, &startTimeoutError{after: o.StartTimeout})
		defer cancel()
	}
	if err := s.await(ctx); err != nil {
		return nil, errors.Join(err, s.abandon())
	}
	for i := range s.accounts {
		a := &s.accounts[i]
		a.BlobURL, a.QueueURL, a.TableURL = s.said.url("Blob")+"/"+a.Name, s.said.url("Queue")+"/"+a.Name, s.said.url("Table")+"/"+a.Name
	}
	return s, nil
}

type startTimeoutError struct{ after time.Duration }

func (e *startTimeoutError) Error() string { return fmt.Sprintf("not ready after %v", e.after) }

// start starts the process, and a goroutine that waits for its end.
func (s *Server) start(node string, o *Options) error {
	script := filepath.Join(s.temp, "preload.cjs")
	if err := os.WriteFile(script, preload, 0o600); err != nil {
		return err
	}
	data := o.Location
	if data == "" {
		data = filepath.Join(s.temp, "data")
	}
	cmd := exec.Command(node, "-r", script, entry(o.Dir), "--silent", "--disableTelemetry", "--location", data,
		"--blobHost", "127.0.0.1", "--blobPort", strconv.Itoa(o.BlobPort),
		"--queueHost", "127.0.0.1", "--queuePort", strconv.Itoa(o.QueuePort),
		"--tableHost", "127.0.0.1", "--tablePort", strconv.Itoa(o.TablePort))
	cmd.Dir = s.temp
	cmd.Env = append(ownEnvironment(os.Environ()), accountsVariable(s.accounts))
	cmd.Stdout, cmd.Stderr = s.said, s.said
	cmd.SysProcAttr = ownGroup()
	cmd.WaitDelay = time.Second
	// Only this process holds the pipe: its end shows Azurite that this process has ended.
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	s.stdin = stdin
	started := make(chan error, 1)
	go func() {
		defer close(s.done)
		runtime.LockOSThread() // see ownGroup
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		s.process = cmd.Process
		started <- err
		if err != nil {
			return
		}
		err = cmd.Wait()
		select {
		case <-s.stopping:
		default:
			if err == nil {
				err = errors.New("exit status 0")
			}
			s.exit = &ProcessError{Kind: ErrExited, Output: s.said.String(), Err: err}
		}
	}()
	if err := <-started; err != nil {
		<-s.done
		return err
	}
	return nil
}

// ownEnvironment returns environ without variables that would configure Azurite without the caller's knowledge:
// AZURITE_DB, for example, stores the data in a database server.
func ownEnvironment(environ []string) []string {
	var own []string
	for _, v := range environ {
		if !strings.HasPrefix(v, "AZURITE_") {
			own = append(own, v)
		}
	}
	return own
}

// await returns when the three services respond, or with the reason why they will not.
func (s *Server) await(ctx context.Context) error {
	select {
	case <-s.said.ready:
	case <-s.done:
	case <-ctx.Done():
	}
	var err error
	select {
	case <-s.said.ready:
		err = s.probe(ctx)
	default:
	}
	select {
	case <-s.done:
		if p, ok := errors.AsType[*ProcessError](s.exit); ok {
			return &ProcessError{Kind: ErrStart, Output: p.Output, Err: p.Err}
		}
	default:
	}
	if cause := context.Cause(ctx); cause != nil {
		if _, ours := errors.AsType[*startTimeoutError](cause); !ours {
			return cause
		}
		err = cause
	}
	if err != nil {
		return &ProcessError{Kind: ErrStart, Output: s.said.String(), Err: err}
	}
	return nil
}

// probe sends each service a request that it refuses without an account: no better request works without a signature.
// The Server header shows that the port is Azurite's.
func (s *Server) probe(ctx context.Context) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, service := range services {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.said.url(service)+"/", nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		if err := resp.Body.Close(); err != nil {
			return err
		}
		if server := resp.Header.Get("Server"); !strings.HasPrefix(server, "Azurite-"+service+"/") {
			return fmt.Errorf("at %s answers %.40q, not Azurite's %s service", req.URL.Host, server, service)
		}
	}
	return nil
}

// ConnectionString returns the connection string of the first account, with its key.
func (s *Server) ConnectionString() string { return s.accounts[0].ConnectionString() }

// BlobURL returns the first account's Blob endpoint, "http://127.0.0.1:<port>/<account>".
func (s *Server) BlobURL() string { return s.accounts[0].BlobURL }

// QueueURL returns the first account's Queue endpoint.
func (s *Server) QueueURL() string { return s.accounts[0].QueueURL }

// TableURL returns the first account's Table endpoint.
func (s *Server) TableURL() string { return s.accounts[0].TableURL }

// Account returns the first account.
func (s *Server) Account() Account { return s.accounts[0] }

// NewAccount returns an account that no other call has returned, from the second one of Options.Accounts on.
func (s *Server) NewAccount() (Account, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next >= len(s.accounts) {
		return Account{}, fmt.Errorf("Azurite was started with %d accounts, and all are given away: name more in Options.Accounts", len(s.accounts))
	}
	s.next++
	return s.accounts[s.next-1], nil
}

// Done returns a channel that is closed when the process has ended, by Stop or by itself.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err returns a [ProcessError] of kind [ErrExited] if the process ended without Stop, and nil while it runs and after
// Stop.
func (s *Server) Err() error {
	select {
	case <-s.done:
		return s.exit
	default:
		return nil
	}
}

// graceful is the time between TERM and KILL. An unfinished request body keeps the server for 6 seconds, which is worth
// waiting for only if the data are kept.
func (s *Server) graceful() time.Duration {
	if s.keep {
		return 15 * time.Second
	}
	return time.Second
}

// Stop ends the process, waits until it has ended, and removes its temporary folder. It may be called any number of
// times; each call returns when the server is stopped. The error is that of [Server.Err] if the process had ended
// already, or that of removing the folder.
func (s *Server) Stop() error {
	s.stop.Do(func() {
		select {
		case <-s.done: // by itself
		default:
			close(s.stopping)
			s.end()
		}
		s.release()
		s.stopErr = errors.Join(s.exit, os.RemoveAll(s.temp))
	})
	return s.stopErr
}

// abandon is Stop for a server that was never returned: its data are not kept, and the reason for its end is known.
func (s *Server) abandon() (err error) {
	s.stop.Do(func() {
		close(s.stopping)
		_ = s.process.Kill()
		<-s.done
		err = os.RemoveAll(s.temp)
	})
	return err
}

func (s *Server) end() {
	if err := terminate(s.process, s.stdin); err == nil {
		timer := time.NewTimer(s.graceful())
		defer timer.Stop()
		select {
		case <-s.done:
			return
		case <-timer.C:
		}
	}
	_ = s.process.Kill() // fails only if there is nothing to kill
	<-s.done
}
