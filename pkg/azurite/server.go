package azurite

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"

	"github.com/azconc/azconc/pkg/ptr"
)

//go:embed npm/preload.cjs
var preload []byte

// Options are the options of [Start].
type Options struct {
	// Accounts are the names of the server's accounts, 3 to 24 lower-case letters and digits each, without repetition. Azurite reads
	// them when it starts, so none can be added later. DefaultAccount gets its well-known key, every other account a key of its own.
	// Defaults to DefaultAccount alone.
	Accounts []string
	// Location is a folder for the data, which Stop leaves as it is. It is created if it is missing, and locked: a second
	// server on it is refused. Defaults to a temporary folder that Stop removes.
	Location string
	// BlobPort, QueuePort and TablePort are TCP ports on 127.0.0.1. UseDevelopmentStorage=true means 10000, 10001 and
	// 10002. Each defaults to one that is free.
	BlobPort, QueuePort, TablePort int
	// Progress is called with a line for each step that takes time. Defaults to none.
	Progress io.Writer

	_ struct{}
}

// Server is a running Azurite. It is safe for concurrent use.
type Server struct {
	accounts []Account
	temp     string       // removed by Stop: the preloaded script, and the data unless Location is set
	location *flock.Flock // nil unless Location is set
	process  *os.Process
	stdin    io.Closer
	said     *output

	stop     sync.Once
	stopErr  error         // set by stop
	stopping atomic.Bool   // set before the process is ended
	done     chan struct{} // closed when the process has ended
	exit     error         // set before done is closed; nil if it was stopped
}

const (
	startTimeout = time.Minute
	// An unfinished request body keeps the server for 6 seconds, which is worth waiting for if the data are kept.
	stopTimeout = 15 * time.Second
)

// Start starts Azurite, after installing it if necessary, and returns when its three services listen. ctx bounds the
// start, not the life of the server. It takes a minute at most, without an installation.
//
// Errors are those of [Install], a [ToolError], a [ProcessError] with the end of Azurite's output, the cause of ctx, or those of
// Options.Location: it cannot be written, or another server uses it. A failed start leaves neither a process nor a temporary folder
// behind.
func Start(ctx context.Context, opts *Options) (_ *Server, err error) {
	o := ptr.Value(opts)
	if len(o.Accounts) == 0 {
		o.Accounts = []string{DefaultAccount}
	}
	s := &Server{accounts: newAccounts(o.Accounts), said: newOutput(), done: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.cleanUp())
		}
	}()
	if o.Location != "" {
		if err := s.occupy(&o); err != nil {
			return nil, fmt.Errorf("Location: %w", err)
		}
	}
	dir, err := Install(ctx, o.Progress)
	if err != nil {
		return nil, err
	}
	node, err := findNode(ctx)
	if err != nil {
		return nil, err
	}
	if s.temp, err = os.MkdirTemp("", "azconc-azurite-"); err != nil {
		return nil, err
	}
	if err := s.start(node, filepath.Join(dir, azurite.entry), cmp.Or(o.Location, filepath.Join(s.temp, "data")), &o); err != nil {
		return nil, notStarted("", err)
	}
	starting, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %v", startTimeout))
	defer cancel()
	select {
	case <-s.said.ready:
		for i := range s.accounts {
			a := &s.accounts[i]
			a.BlobURL, a.QueueURL, a.TableURL = s.said.urls["Blob"]+"/"+a.Name, s.said.urls["Queue"]+"/"+a.Name, s.said.urls["Table"]+"/"+a.Name
		}
		return s, nil
	case <-s.done:
		return nil, notStarted(s.said.String(), errors.Unwrap(s.exit))
	case <-starting.Done():
		s.stopping.Store(true)
		_ = s.process.Kill()
		<-s.done
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, notStarted(s.said.String(), context.Cause(starting))
	}
}

func notStarted(output string, err error) error {
	return &ProcessError{What: azurite.name + " did not start", Output: output, Err: err}
}

// occupy locks the folder for data, because two Azurites on one folder overwrite each other's data, and creates it if it is missing.
// It fails at once if the folder cannot be written, which Azurite itself retries for ever.
func (s *Server) occupy(o *Options) (err error) {
	if o.Location, err = filepath.Abs(o.Location); err != nil {
		return err
	}
	if err := os.MkdirAll(o.Location, 0o755); err != nil {
		return err
	}
	lock := flock.New(filepath.Join(o.Location, ".azconc-lock"), flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o644))
	held, err := lock.TryLock()
	if err == nil && !held {
		err = fmt.Errorf("%s is in use by another Azurite", o.Location)
	}
	if err == nil {
		s.location = lock
	}
	return err
}

// start starts the process, and a goroutine that waits for its end.
func (s *Server) start(node, entry, data string, o *Options) error {
	script := filepath.Join(s.temp, "preload.cjs")
	if err := os.WriteFile(script, preload, 0o600); err != nil {
		return err
	}
	cmd := exec.Command(node, "-r", script, entry, "--silent", "--disableTelemetry", "--location", data,
		"--blobHost", "127.0.0.1", "--blobPort", strconv.Itoa(o.BlobPort),
		"--queueHost", "127.0.0.1", "--queuePort", strconv.Itoa(o.QueuePort),
		"--tableHost", "127.0.0.1", "--tablePort", strconv.Itoa(o.TablePort))
	cmd.Dir = s.temp
	// Variables of others would configure it: AZURITE_DB, for example, stores the data in a database server.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "AZURITE_") })
	var pairs []string
	for _, a := range s.accounts {
		pairs = append(pairs, a.Name+":"+a.Key)
	}
	cmd.Env = append(cmd.Env, "AZURITE_ACCOUNTS="+strings.Join(pairs, ";"))
	cmd.Stdout, cmd.Stderr = s.said, s.said
	cmd.SysProcAttr = ownGroup()
	cmd.WaitDelay = time.Second
	// Only this process holds the pipe. At its end Azurite shuts down, whether Stop closes it or this process has ended.
	var err error
	if s.stdin, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.process = cmd.Process
	go func() {
		defer close(s.done)
		if err := cmd.Wait(); !s.stopping.Load() {
			s.exit = &ProcessError{What: azurite.name + " ended by itself", Output: s.said.String(), Err: cmp.Or(err, errors.New("exit status 0"))}
		}
	}()
	return nil
}

// cleanUp removes what the server has on disk, and opens its folder to others.
func (s *Server) cleanUp() error {
	if s.location != nil {
		_ = s.location.Close()
	}
	if s.temp == "" {
		return nil
	}
	return os.RemoveAll(s.temp)
}

// Accounts returns the accounts, in the order of Options.Accounts.
func (s *Server) Accounts() []Account { return slices.Clone(s.accounts) }

// Account returns the first account.
func (s *Server) Account() Account { return s.accounts[0] }

// ConnectionString returns the connection string of the first account, with its key.
func (s *Server) ConnectionString() string { return s.accounts[0].ConnectionString() }

// Done returns a channel that is closed when the process has ended, by Stop or by itself.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err returns a [ProcessError] if the process ended without Stop, and nil while it runs and after Stop.
func (s *Server) Err() error {
	select {
	case <-s.done:
		return s.exit
	default:
		return nil
	}
}

// Stop ends the process, waits until it has ended, and removes its temporary folder. It may be called any number of
// times; each call returns when the server is stopped. The error is that of [Server.Err] if the process had ended
// already, or that of removing the folder.
func (s *Server) Stop() error {
	s.stop.Do(func() {
		if s.Err() == nil {
			s.stopping.Store(true)
		}
		if s.location != nil && s.stdin.Close() == nil {
			select {
			case <-s.done:
			case <-time.After(stopTimeout):
			}
		}
		_ = s.process.Kill() // fails only if there is nothing to kill
		<-s.done
		s.stopErr = errors.Join(s.exit, s.cleanUp())
	})
	return s.stopErr
}

// outputLimit is the number of bytes of a process's output that are kept for error texts.
const outputLimit = 4 << 10

var (
	listening = regexp.MustCompile(`(?m)^Azurite (Blob|Queue|Table) service is successfully listening at (http://\S+)\r?\n`)
	services  = []string{"Blob", "Queue", "Table"}
)

// output receives Azurite's output. It finds the addresses in it and keeps its end.
type output struct {
	ready chan struct{} // closed when all three addresses are known, which do not change any more

	mu   sync.Mutex
	tail []byte            // guarded by mu
	urls map[string]string // guarded by mu until ready: by the name of the service
}

func newOutput() *output { return &output{ready: make(chan struct{}), urls: make(map[string]string)} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tail = append(o.tail, p...)
	if len(o.urls) < len(services) {
		for _, m := range listening.FindAllSubmatch(o.tail, -1) {
			o.urls[string(m[1])] = string(m[2])
		}
		if len(o.urls) == len(services) {
			close(o.ready)
		}
	}
	o.tail = o.tail[max(0, len(o.tail)-outputLimit):]
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(o.tail), ""))
}
