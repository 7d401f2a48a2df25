//go:build unix && !race

// Every command with a result, several times, which takes ten times as long with the race detector.

package root

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/pkg/aztest"
)

// asked is a command line of a transcript that succeeded, and what the service answered.
type asked struct {
	path    string
	args    []string
	stdin   string
	answers map[string]answered // by request
}

type answered struct {
	status int
	header http.Header
	body   []byte
}

func requestKey(r *http.Request) string {
	return r.Method + " " + r.URL.Host + r.URL.Path + " " + r.URL.Query().Get("comp")
}

// strangers answer in the place of the service. They report whether they gave an answer that is not the service's.
var strangers = map[string]func(a asked, seen func()) transport{
	"HTML 200":  page(200, "text/html", "<html><title>Sign in</title></html>"),
	"empty 200": page(200, "", ""),
	"301":       page(301, "text/html", "<html>moved"),
	"302":       page(302, "", ""),
	// As the service would, but the connection ends in the middle of the content.
	"cut short": func(a asked, seen func()) transport {
		return replay(a, func(body []byte) io.Reader {
			seen()
			return io.MultiReader(bytes.NewReader(body[:len(body)/2]), failing{io.ErrUnexpectedEOF})
		}, func(answered) bool { return true })
	},
	// As the service would, but without what is not content of a blob or file.
	"nothing": func(a asked, seen func()) transport {
		return replay(a, func([]byte) io.Reader { seen(); return http.NoBody }, func(r answered) bool { return r.header.Get("x-ms-blob-type")+r.header.Get("x-ms-type") == "" })
	},
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func page(status int, contentType, text string) func(asked, func()) transport {
	return func(_ asked, seen func()) transport {
		return func(r *http.Request) (*http.Response, error) {
			seen()
			header := http.Header{"Content-Type": {contentType}, "Content-Length": {strconv.Itoa(len(text))}}
			if status/100 == 3 {
				header.Set("Location", "https://login.example/?continue="+r.URL.String())
			}
			return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text)), Request: r}, nil
		}
	}
}

// replay answers a read as the service did, with its content as cut leaves it.
func replay(a asked, cut func([]byte) io.Reader, cuts func(answered) bool) transport {
	return func(r *http.Request) (*http.Response, error) {
		was, known := a.answers[requestKey(r)]
		if !known {
			return nil, syscall.ECONNREFUSED
		}
		body := io.Reader(bytes.NewReader(was.body))
		if r.Method == http.MethodGet && was.status/100 == 2 && len(was.body) > 1 && cuts(was) {
			body = cut(was.body)
		}
		return &http.Response{StatusCode: was.status, Header: was.header.Clone(), Body: io.NopCloser(body), ContentLength: -1, Request: r}, nil
	}
}

// recorded is a service that keeps its answers.
func recorded(s policy.Transporter, into *sync.Map) transport {
	return func(r *http.Request) (*http.Response, error) {
		resp, err := s.Do(r)
		if err != nil {
			return resp, err
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return nil, err
		}
		resp.Body = io.NopCloser(bytes.NewReader(body))
		into.Store(requestKey(r), answered{resp.StatusCode, resp.Header.Clone(), body})
		return resp, nil
	}
}

// TestNoCommandBelievesAStranger runs every command of the transcripts that succeeds, and then again with answers that are not the
// service's. go's client would follow 301 and 302 and turn a PUT into a GET, so that a write that never happened was reported as
// done; and the SDK takes a login page for an empty list, which blob list did not survive.
func TestNoCommandBelievesAStranger(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "results", "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	tried := map[string]bool{}
	for _, file := range files {
		script, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			dir := t.TempDir()
			within := func(t *testing.T, do func(*testing.T)) { synctest.Test(t, do) }
			timeout := 2 * time.Minute
			if filepath.Base(file) == "processes.txt" { // they handle signals, which a bubble does not allow
				within, timeout = func(t *testing.T, do func(*testing.T)) { do(t) }, 300*time.Millisecond
			}
			var all []asked
			within(t, func(t *testing.T) {
				tr := &transcript{service: aztest.New(nil), dir: dir, vars: map[string]string{"DIR": dir}, ran: map[string]bool{}}
				for _, step := range strings.Split(strings.TrimSpace(string(script)), "\n\n") {
					var answers sync.Map
					tr.wire = recorded(tr.service, &answers)
					tr.after = func(args []string, stdin string, r ran) {
						if cmd := leaf(args); r.code == 0 && cmd != nil && cmd.Name() != "completion" && !tried[cmd.CommandPath()] {
							tried[cmd.CommandPath()] = true
							a := asked{path: cmd.CommandPath(), args: withoutFD(args), stdin: stdin, answers: map[string]answered{}}
							answers.Range(func(key, value any) bool { a.answers[key.(string)] = value.(answered); return true })
							all = append(all, a)
						}
					}
					tr.step(t, step)
				}
			})
			for i, a := range all {
				within(t, func(t *testing.T) {
					var wg sync.WaitGroup
					for n, name := range slices.Sorted(maps.Keys(strangers)) {
						if testing.Short() && (i+n)%4 != 0 {
							continue // one in four answers each command
						}
						wg.Go(func() { a.mustFail(t, name, strangers[name], timeout) })
					}
					wg.Wait()
				})
			}
		})
	}
	for _, c := range commands() {
		if path := c.CommandPath(); c.Runnable() && !c.HasSubCommands() && !tried[path] && untranscribed[path] == "" {
			t.Errorf("%s was not tried", path)
		}
	}
}

func withoutFD(args []string) []string {
	if i := slices.Index(args, "--status-fd"); i >= 0 {
		return slices.Delete(slices.Clone(args), i, i+2)
	}
	return args
}

func (a asked) mustFail(t *testing.T, name string, stranger func(asked, func()) transport, timeout time.Duration) {
	t.Helper()
	var mu sync.Mutex
	seen := 0
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s: %v panics: %v", name, a.args, p)
		}
	}()
	wire := stranger(a, func() { mu.Lock(); seen++; mu.Unlock() })
	r := runOn(t.Context(), wire, func(s *cli.Streams) { s.In = strings.NewReader(a.stdin) }, allServices, append([]string{"--timeout", timeout.String()}, a.args...)...)
	mu.Lock()
	defer mu.Unlock()
	if seen == 0 {
		return // it asked nobody, or the answer has no content
	}
	problem := ""
	switch text := r.out + r.stderr; {
	case r.code == 0:
		problem = "succeeds"
	case strings.Contains(text, "panic"), strings.Contains(text, "goroutine "):
		problem = "panics"
	case strings.Contains(text, "sig="):
		problem = "prints a secret"
	case name != "nothing" && name != "cut short" && r.code != 124 && !strings.Contains(text, "127.0.0.1"):
		if timeout < time.Minute { // on a busy machine, the time can be up before the answer is read
			a.mustFail(t, name, stranger, 10*timeout)
			return
		}
		problem = "does not name the host"
	}
	if problem != "" {
		t.Errorf("%s: azconc %s %s: exit %d\n%s%s", name, strings.Join(a.args, " "), problem, r.code, r.out, r.stderr)
	}
}

// TestTheShellFollowsNoRedirect: with a SAS and an intermediary that redirects, a metadata update said "updated", nothing was written,
// and the other host received the SAS.
func TestTheShellFollowsNoRedirect(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { t.Errorf("%s %s was followed", r.Method, r.URL.Path) }))
	defer elsewhere.Close()
	between := httptest.NewServer(http.RedirectHandler(elsewhere.URL+"/jobs/a", http.StatusMovedPermanently))
	defer between.Close()
	for _, args := range [][]string{{"blob", "metadata", "set", "jobs/a", "owner=me"}, {"blob", "list", "jobs"}, {"queue", "list"}} {
		env := cli.Env{"AZURE_STORAGE_CONNECTION_STRING=BlobEndpoint=" + between.URL + "/acc;QueueEndpoint=" + between.URL + "/acc;SharedAccessSignature=sv=2024-11-04&sig=secret%3D"}
		r := runOn(t.Context(), nil, nil, env, append(args, "--timeout", "3s")...)
		if text := r.out + r.stderr; r.code == 0 || strings.Contains(text, "secret") || !strings.Contains(text, "redirects to "+strings.TrimPrefix(elsewhere.URL, "http://")) {
			t.Errorf("%v: exit %d, %s", args, r.code, text)
		}
	}
}
