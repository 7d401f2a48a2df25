package explore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"

	"github.com/azconc/azconc/pkg/aztest"
)

// Client is one client of a program. It is a policy.Transporter whose requests wait for the explorer.
type Client struct {
	World  *World
	Number int // from 0, as in Program.Clients

	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}

	// Guarded by World.mu.
	sent   int
	err    error
	ended  bool
	killed bool
}

// ClientOptions are for any client of the SDK whose requests shall be explored.
func (c *Client) ClientOptions() azcore.ClientOptions { return policy.ClientOptions{Transport: c} }

// Container returns this client's view of a container, which need not exist.
func (c *Client) Container(name string) *container.Client {
	credential, err := container.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		panic(err) // the account's own key is wrong
	}
	client, err := container.NewClientWithSharedKeyCredential(c.World.Service.BlobURL()+"/"+name, credential, &container.ClientOptions{ClientOptions: c.ClientOptions()})
	if err != nil {
		panic(err)
	}
	return client
}

// BlockBlob returns this client's view of a blob, and creates the container if it is missing, without a request.
func (c *Client) BlockBlob(containerName, blobName string) *blockblob.Client {
	c.World.Service.BlockBlob(containerName, blobName)
	return c.Container(containerName).NewBlockBlobClient(blobName)
}

// Table returns this client's view of a table, which need not exist.
func (c *Client) Table(name string) *aztables.Client {
	credential, err := aztables.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		panic(err)
	}
	service, err := aztables.NewServiceClientWithSharedKey(c.World.Service.TableURL(), credential, &aztables.ClientOptions{ClientOptions: c.ClientOptions()})
	if err != nil {
		panic(err)
	}
	return service.NewClient(name)
}

// Queue returns this client's view of a queue, which need not exist.
func (c *Client) Queue(name string) *azqueue.QueueClient {
	credential, err := azqueue.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		panic(err)
	}
	client, err := azqueue.NewQueueClientWithSharedKeyCredential(c.World.Service.QueueURL()+"/"+name, credential, &azqueue.ClientOptions{ClientOptions: c.ClientOptions()})
	if err != nil {
		panic(err)
	}
	return client
}

// pending is a request at the gate.
type pending struct {
	client   *Client
	number   int
	op       string
	resource string
	reads    bool
	request  *http.Request
	body     []byte
	answer   chan response // has room for one
}

type response struct {
	response *http.Response
	err      error
}

func (p *pending) label() string {
	return strconv.Itoa(p.client.Number) + "#" + strconv.Itoa(p.number) + " " + p.op
}

var (
	errBroken = &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	errOver   = errors.New("the schedule is over")
)

// Do implements policy.Transporter.
func (c *Client) Do(r *http.Request) (*http.Response, error) {
	p, err := c.arrive(r)
	if err != nil {
		return nil, &url.Error{Op: r.Method, URL: r.URL.String(), Err: err}
	}
	var got response
	select {
	case got = <-p.answer:
	case <-c.World.over:
		got.err = errOver
	case <-r.Context().Done():
		c.World.withdraw(p)
		got.err = r.Context().Err()
	}
	if got.err != nil {
		return nil, &url.Error{Op: r.Method, URL: r.URL.String(), Err: got.err}
	}
	return got.response, nil
}

func (c *Client) arrive(r *http.Request) (*pending, error) {
	described := aztest.Describe(r)
	p := &pending{client: c, op: described.Op, resource: resourceOf(described), request: r, answer: make(chan response, 1)}
	p.reads = !aztest.Writes(&described)
	if r.Body != nil {
		var err error
		if p.body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r.Body.Close()
	}
	w := c.World
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.killed {
		return nil, errOver
	}
	p.number = c.sent
	c.sent++
	w.pending = append(w.pending, p)
	w.signal()
	return p, nil
}

// everything is the resource of a request that more than one resource may depend on.
const everything = "*"

// resourceOf names the smallest thing that a request depends on and changes.
func resourceOf(r aztest.Request) string {
	first, rest, _ := strings.Cut(r.Resource, "/")
	switch {
	case r.Query.Get("restype") == "container", r.Query.Get("comp") == "list", first == "", strings.Contains(r.Op, "Table"):
		return everything
	case strings.Contains(r.Op, "Entity"), strings.Contains(r.Op, "Entities"), strings.Contains(first, "("), first == "$batch":
		return "tables" // a transaction names its entities in its body
	case rest == "":
		return everything
	case rest == "messages" || strings.HasPrefix(rest, "messages/"):
		return "queue " + first
	}
	return r.Resource
}

// withdraw takes a request away whose sender no longer waits. It was never sent.
func (w *World) withdraw(p *pending) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, q := range w.pending {
		if q == p {
			w.pending = append(w.pending[:i], w.pending[i+1:]...)
			break
		}
	}
}

// apply sends the request to the service.
func (p *pending) apply() response {
	r := p.request.Clone(context.WithoutCancel(p.request.Context()))
	r.Body = io.NopCloser(bytes.NewReader(p.body))
	resp, err := p.client.World.Service.Do(r) //nolint:bodyclose // the client closes it; one that is dropped holds nothing
	return response{resp, err}
}

// meet does to the request what was chosen.
func (p *pending) meet(k Kind) {
	switch k {
	case Deliver:
		p.answer <- p.apply()
	case arrive:
		p.apply()
	case LoseResponse:
		p.apply()
		p.answer <- response{err: errBroken}
	case LoseRequest, Hold:
		p.answer <- response{err: errBroken}
	case Twice:
		p.apply()
		p.answer <- p.apply()
	case Kill:
		p.client.World.mu.Lock()
		p.client.killed = true
		p.client.World.mu.Unlock()
		p.client.cancel()
		p.answer <- response{err: errOver}
	}
}
