package samba

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// RequireVariable names the environment variable that, set to 1, makes a test fail if Samba is not available. Otherwise
// such a test is skipped.
const RequireVariable = "AZCONC_REQUIRE_SAMBA"

// ShareName is the name of the only share of a Server.
const ShareName = "share"

const (
	startTimeout = time.Minute
	stopTimeout  = 10 * time.Second
	poll         = 5 * time.Millisecond
	maxTemp      = 45 // the longest path of the parent directory: the path of a socket has at most 108 bytes
)

// Server is an smbd of a single test, on a free port of 127.0.0.1. It shares no file with an smbd that the machine may
// run.
type Server struct {
	Address  string // host:port
	User     string
	Password string
	Dir      string // the directory of the share

	config string // the path of smb.conf
	log    string
	blind  error // why smbstatus does not list handles, nil if it does
}

// Start starts an smbd that is killed when the test ends. It needs Samba's programs and Unix; handles also need root,
// see NeedHandles. Without them the test is skipped, or fails if AZCONC_REQUIRE_SAMBA=1.
func Start(tb testing.TB) *Server {
	tb.Helper()
	if why := missing(); why != "" {
		refuse(tb, why)
	}
	ctx, cancel := context.WithTimeout(tb.Context(), startTimeout)
	defer cancel()
	var err error
	for range 5 { // another process may have taken the free port
		var s *Server
		if s, err = start(ctx, tb); err == nil {
			return s
		}
	}
	if os.Geteuid() != 0 {
		refuse(tb, fmt.Sprintf("smbd does not start for a user who is not root: %v", err))
	}
	tb.Fatalf("smbd does not start: %v", err)
	return nil
}

// NeedHandles skips a test of handles if Samba does not list them: smbstatus requires root, and Samba 4.17. A test that
// runs as root fails instead if AZCONC_REQUIRE_SAMBA=1.
func (s *Server) NeedHandles(tb testing.TB) {
	tb.Helper()
	switch {
	case s.blind == nil:
	case os.Geteuid() != 0:
		tb.Skip("SKIP: smbstatus lists handles for root only; nothing was tested of handles")
	default:
		refuse(tb, fmt.Sprintf("handles cannot be listed, which takes Samba 4.17: %v", s.blind))
	}
}

// missing returns why Samba cannot be started here.
func missing() string {
	if !detachable {
		return "smbd needs a Unix"
	}
	if len(os.TempDir()) > maxTemp {
		return os.TempDir() + " is too long for the sockets in it: set TMPDIR to something shorter"
	}
	for _, name := range []string{"smbd", "pdbedit", "smbstatus", "smbcontrol"} {
		if program(name) == "" {
			return name + " is not installed: apt-get install samba"
		}
	}
	return ""
}

func refuse(tb testing.TB, why string) {
	tb.Helper()
	switch v := os.Getenv(RequireVariable); v {
	case "", "0":
		tb.Skipf("SKIP: %s; nothing was tested against SMB", why)
	case "1":
		tb.Fatalf("%s, and %s=1 says that the tests with SMB must run", why, RequireVariable)
	default:
		tb.Fatalf("%s is %q, want 1 or nothing", RequireVariable, v)
	}
}

// program returns the path of a Samba program. Daemons are not on every user's PATH.
func program(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin", "/usr/local/samba/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	return ""
}

// start selects a port and starts smbd there.
func start(ctx context.Context, tb testing.TB) (*Server, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	s, err := prepare(ctx, tb, address)
	if err != nil {
		return nil, err
	}
	if err := s.serve(ctx, tb); err != nil {
		return nil, err
	}
	_, s.blind = s.status(ctx)
	return s, nil
}

// prepare creates the folder, which is removed at the end of the test, the configuration and the user.
func prepare(ctx context.Context, tb testing.TB, address string) (*Server, error) {
	dir, err := os.MkdirTemp("", "smb") // t.TempDir contains the test's name, which is too long for sockets
	if err != nil {
		return nil, err
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	me, err := user.Current()
	if err != nil {
		return nil, fmt.Errorf("smbd serves nobody without a name: %w", err)
	}
	s := &Server{Address: address, User: me.Username, Password: rand.Text(), Dir: filepath.Join(dir, ShareName),
		config: filepath.Join(dir, "smb.conf"), log: filepath.Join(dir, "log")}
	for _, name := range []string{ShareName, "private", "lock", "state", "cache", "pid", "rpc"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			return nil, err
		}
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(s.config, []byte(configuration(dir, port)), 0o600); err != nil {
		return nil, err
	}
	secret := s.Password + "\n" + s.Password + "\n"
	_, err = s.run(ctx, strings.NewReader(secret), "pdbedit", "--configfile="+s.config, "--create", "--password-from-stdin", "--user="+s.User)
	return s, err
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// configuration keeps everything in dir. Locks are strict, as on Windows, where a read is refused in a range that
// another client has locked. DOS attributes are stored as extended attributes, and no helper is started for calls that
// are never made.
func configuration(dir, port string) string {
	return strings.NewReplacer("DIR", dir, "PORT", port, "SHARE", ShareName).Replace(`[global]
interfaces = 127.0.0.1
bind interfaces only = yes
smb ports = PORT
disable netbios = yes
server role = standalone server
server min protocol = SMB2_10
map to guest = never
load printers = no
disable spoolss = yes
rpc start on demand helpers = no
usershare path =
passdb backend = tdbsam:DIR/private/passdb.tdb
private dir = DIR/private
lock directory = DIR/lock
state directory = DIR/state
cache directory = DIR/cache
pid directory = DIR/pid
ncalrpc dir = DIR/rpc
winbindd socket directory = DIR/rpc
log file = DIR/log
log level = 0
strict locking = yes
deadtime = 0
[SHARE]
path = DIR/SHARE
read only = no
store dos attributes = yes
`)
}

// serve starts smbd and waits for its port. Its standard input is a pipe that closes when this process ends, which
// makes smbd end too: nothing cleans up after a test that was killed.
func (s *Server) serve(ctx context.Context, tb testing.TB) error {
	cmd := exec.Command(program("smbd"), "--foreground", "--no-process-group", "--configfile="+s.config, "--log-basename="+filepath.Dir(s.log)) //nolint:noctx // it outlives the start
	detach(cmd)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.WaitDelay = stopTimeout
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan struct{})
	go func() {
		err := cmd.Wait()
		cancel(fmt.Errorf("it ended: %w", err))
		close(ended)
	}()
	stop := func() {
		select {
		case <-ended: // by itself
		default:
			killGroup(cmd)
			<-ended
		}
		stdin.Close()
	}
	if err := s.listening(ctx); err != nil {
		stop()
		log, _ := os.ReadFile(s.log)
		return fmt.Errorf("%w: %s%s", err, said.Bytes(), log)
	}
	tb.Cleanup(stop)
	return nil
}

// listening waits until an SMB server at the port accepts the password, or for the end of ctx.
func (s *Server) listening(ctx context.Context) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		c, err := s.Dial(ctx)
		if err == nil {
			return c.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w, the last: %w", context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

// status returns the clients and their open files.
func (s *Server) status(ctx context.Context) ([]byte, error) {
	return s.run(ctx, nil, "smbstatus", "--configfile="+s.config, "--json", "--numeric")
}

// run runs a Samba program and returns its output.
func (s *Server) run(ctx context.Context, stdin io.Reader, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program(name), args...)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = stdin, &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", name, err, stderr.Bytes())
	}
	return out, nil
}
