package tfstate

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/ptr"
)

// errKilled is the end of a client by KILL.
var errKilled = errors.New("killed")

// client is a run of Terraform: it sends what OpenTofu 1.12.6 sends, in the same order, and repeats as it does.
type client struct {
	t      *testing.T
	server *Server
	info   []byte // of its lock; nil with -lock=false
	id     string

	sent      int // requests so far
	killAt    int // it is killed before or after this request; 0: never
	killAfter bool
	lose      func(n int) bool // whether the answer to the n-th request is lost
}

func newClient(t *testing.T, v *Server, id, who string) *client {
	info, err := json.Marshal(map[string]any{"ID": id, "Operation": "OperationTypeApply", "Info": "", "Who": who, "Version": "1.12.6",
		"Created": time.Now().UTC(), "Path": ""})
	if err != nil {
		t.Fatal(err)
	}
	return &client{t: t, server: v, info: info, id: id}
}

type reply struct {
	status int
	body   []byte
}

// do sends a request as retryablehttp does: after a 5xx, a 429 or a lost answer it waits 1 s and 2 s, and sends it again.
func (c *client) do(method, path string, body []byte) (reply, error) {
	for try := 0; ; try++ {
		c.sent++
		if c.killAt == c.sent && !c.killAfter {
			return reply{}, errKilled
		}
		r := c.once(method, path, body)
		if c.killAt == c.sent {
			return reply{}, errKilled
		}
		lost := c.lose != nil && c.lose(c.sent)
		if !lost && r.status < 500 && r.status != 429 {
			return r, nil
		}
		if try == 2 {
			return r, fmt.Errorf("%s %s: giving up: %d", method, path, r.status)
		}
		bubble.Sleep(time.Duration(try+1) * time.Second)
	}
}

func (c *client) once(method, path string, body []byte) reply {
	r := httptest.NewRequestWithContext(c.t.Context(), method, path, bytes.NewReader(body))
	r.SetBasicAuth(c.server.user, c.server.password)
	if len(body) > 0 {
		sum := md5.Sum(body)
		r.Header.Set("Content-MD5", base64.StdEncoding.EncodeToString(sum[:]))
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	c.server.ServeHTTP(w, r)
	if w.Header().Get("Content-Length") != fmt.Sprint(w.Body.Len()) {
		c.t.Errorf("%s %s: Content-Length %q for %d bytes", method, path, w.Header().Get("Content-Length"), w.Body.Len())
	}
	return reply{w.Code, w.Body.Bytes()}
}

// lockedError is a LOCK that another run has kept from succeeding.
type lockedError struct{ holder Info }

func (e *lockedError) Error() string { return "locked by " + e.holder.Who + ", ID " + e.holder.ID }

func (c *client) lock() error {
	r, err := c.do("LOCK", lockPath, c.info)
	switch {
	case err != nil:
		return err
	case r.status == http.StatusOK:
		return nil
	case r.status == http.StatusLocked, r.status == http.StatusConflict:
		var held struct {
			Info
			Created time.Time
		}
		if err := json.Unmarshal(r.body, &held); err != nil || held.ID == "" {
			return fmt.Errorf("LOCK: %d without a holder: %q", r.status, r.body)
		}
		return &lockedError{held.Info}
	}
	return fmt.Errorf("LOCK: %d", r.status)
}

func (c *client) get() ([]byte, error) {
	r, err := c.do("GET", statePath, nil)
	switch {
	case err != nil:
		return nil, err
	case r.status == http.StatusOK:
		return r.body, nil
	case r.status == http.StatusNotFound, r.status == http.StatusNoContent:
		return nil, nil
	}
	return nil, fmt.Errorf("GET: %d", r.status)
}

func (c *client) post(state string) error {
	path := statePath
	if c.info != nil {
		path += "?ID=" + c.id
	}
	r, err := c.do("POST", path, []byte(state))
	if err == nil && r.status != 200 && r.status != 201 && r.status != 204 {
		return fmt.Errorf("POST: %d", r.status)
	}
	return err
}

func (c *client) unlock() error {
	r, err := c.do("UNLOCK", unlockPath, c.info)
	if err == nil && r.status != 200 {
		return fmt.Errorf("UNLOCK: %d", r.status)
	}
	return err
}

// apply is a terraform apply that appends a word to the state in two steps.
func (c *client) apply(word string) error {
	if c.info != nil {
		if err := c.lock(); err != nil {
			return err
		}
	}
	state, err := c.get()
	if err == nil && state == nil {
		_, err = c.get() // OpenTofu asks twice
	}
	for _, half := range []string{word[:1], word[1:]} {
		if err == nil {
			state = append(state, half...)
			err = c.post(string(state))
		}
	}
	if errors.Is(err, errKilled) || c.info == nil {
		return err
	}
	return errors.Join(err, c.unlock())
}

// world is a service with one state, and the runs on it.
type world struct {
	t       *testing.T
	service *aztest.Service

	mu    sync.Mutex
	notes []string // guarded by mu while a run is at work
	lost  []error
}

const (
	adas = "6d6b9d1c-8f3e-4b1c-9d3c-0d1f6f5a2b11"
	bobs = "00000000-0000-4000-8000-00000000000b"
)

func newWorld(t *testing.T) *world {
	w := &world{t: t, service: aztest.New(nil)}
	w.service.BlockBlob("tfstate", "prod") // creates the container
	return w
}

// run begins a run of azconc tf run. kill ends it like KILL does: nothing is released, and nothing is renewed any more.
func (w *world) run() (v *Server, kill func()) {
	v, kill, _ = w.pausable()
	return v, kill
}

// pausable is run, and resume ends what kill has begun.
func (w *world) pausable() (v *Server, kill, resume func()) {
	v, wire := w.wired()
	return v, func() { wire.SetFaults(aztest.Fault{Kind: aztest.Refuse}) }, func() { wire.SetFaults() }
}

// wired begins a run, and returns its way to the service.
func (w *world) wired() (*Server, *aztest.Injector) {
	wire := aztest.Inject(w.service, 1)
	opts := w.service.ClientOptions()
	opts.Transport = wire
	c := containerOf(w.t, opts)
	s := New(w.t.Context(), c, "prod", Options{Name: "tfstate/prod", Duration: 45 * time.Second,
		Note: func(format string, args ...any) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.notes = append(w.notes, fmt.Sprintf(format, args...))
		},
		Lost: func(err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.lost = append(w.lost, err)
		},
	})
	w.t.Cleanup(func() { s.close() })
	return newServer(s), wire
}

// losses returns how often a run has learnt that its lock is lost or in doubt.
func (w *world) losses() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.lost)
}

func (w *world) state() string {
	w.t.Helper()
	r, err := w.service.BlockBlob("tfstate", "prod").DownloadStream(context.Background(), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := b.ReadFrom(r.Body); err != nil {
		w.t.Fatal(err)
	}
	return b.String()
}

func (w *world) put(state string) {
	w.t.Helper()
	if _, err := w.service.BlockBlob("tfstate", "prod").UploadBuffer(context.Background(), []byte(state), nil); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) leased() bool {
	w.t.Helper()
	p, err := w.service.BlockBlob("tfstate", "prod").GetProperties(context.Background(), &blob.GetPropertiesOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return ptr.Value(p.LeaseState) == lease.StateTypeLeased
}

func containerOf(t *testing.T, opts azcore.ClientOptions) *container.Client {
	t.Helper()
	credential, err := container.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := container.NewClientWithSharedKeyCredential(aztest.New(nil).BlobURL()+"/tfstate", credential, &container.ClientOptions{ClientOptions: opts})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
