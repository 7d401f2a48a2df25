package aztest_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/emulator"
)

func start(t *testing.T, opts *emulator.Options) *emulator.Server {
	t.Helper()
	s, err := emulator.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	return s
}

// options has a transport of its own, which the test closes, and no retries.
func options(t *testing.T) policy.ClientOptions {
	pool := &http.Transport{}
	t.Cleanup(pool.CloseIdleConnections)
	return policy.ClientOptions{Transport: &http.Client{Transport: pool}, Retry: policy.RetryOptions{MaxRetries: -1}}
}

// createAll creates a resource in each service of an account.
func createAll(t *testing.T, connection, name string) map[string]error {
	t.Helper()
	o := options(t)
	blobs, err1 := azblob.NewClientFromConnectionString(connection, &azblob.ClientOptions{ClientOptions: o})
	queues, err2 := azqueue.NewServiceClientFromConnectionString(connection, &azqueue.ClientOptions{ClientOptions: o})
	tables, err3 := aztables.NewServiceClientFromConnectionString(connection, &aztables.ClientOptions{ClientOptions: o})
	files, err4 := service.NewClientFromConnectionString(connection, &service.ClientOptions{ClientOptions: o})
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	results := map[string]error{}
	_, results["blob"] = blobs.CreateContainer(t.Context(), name, nil)
	_, results["queue"] = queues.CreateQueue(t.Context(), name, nil)
	_, results["table"] = tables.CreateTable(t.Context(), name, nil)
	_, results["file"] = files.CreateShare(t.Context(), name, nil)
	return results
}

func TestEachServiceOfEachAccountTakesItsOwnKey(t *testing.T) {
	s := start(t, &emulator.Options{Accounts: []string{aztest.Account, "second"}})
	all := s.Accounts()
	if all[0].Key != aztest.Key || all[1].Key == aztest.Key {
		t.Fatalf("the keys are %+v", all)
	}
	for _, a := range all { // the second one finds the names free: accounts share no data
		for service, err := range createAll(t, a.ConnectionString(), "things") {
			if err != nil {
				t.Errorf("%s of %s: %v", service, a.Name, err)
			}
		}
	}
	wrong := all[1]
	wrong.Key = aztest.Key
	for service, err := range createAll(t, wrong.ConnectionString(), "others") {
		var refused *azcore.ResponseError
		if !errors.As(err, &refused) || refused.StatusCode != http.StatusForbidden || refused.ErrorCode != "AuthenticationFailed" {
			t.Errorf("%s with the key of the other account: %v, want 403 AuthenticationFailed", service, err)
		}
	}
}

func TestAnAccountThatIsNotThereIsNamed(t *testing.T) {
	s := start(t, nil)
	a := s.Account()
	a.BlobURL = strings.Replace(a.BlobURL, a.Name, "nobody", 1)
	client, err := azblob.NewClientFromConnectionString(a.ConnectionString(), &azblob.ClientOptions{ClientOptions: options(t)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.CreateContainer(t.Context(), "box", nil)
	if err == nil || !strings.Contains(err.Error(), "does not begin with the name of an account") {
		t.Errorf("a request to an account that is not there: %v", err)
	}
}

func TestABodyThatIsTooLargeIsRefusedUnread(t *testing.T) {
	s := start(t, nil)
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.Split(s.Account().BlobURL, "/")[2])
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	_, _ = connection.Write([]byte("PUT /devstoreaccount1/box/blob HTTP/1.1\r\nHost: x\r\nContent-Length: " + strconv.Itoa(1<<30+1) + "\r\n\r\n"))
	answer := make([]byte, 400)
	n, err := connection.Read(answer)
	if err != nil || !strings.HasPrefix(string(answer[:n]), "HTTP/1.1 413 ") {
		t.Errorf("it says %q, %v", answer[:n], err)
	}
}

func TestFixedPortsAreTaken(t *testing.T) {
	first := start(t, nil)
	_, port, _ := net.SplitHostPort(strings.Split(first.Account().QueueURL, "/")[2])
	number, _ := strconv.Atoi(port)
	if _, err := emulator.Start(t.Context(), &emulator.Options{QueuePort: number}); err == nil || !strings.HasPrefix(err.Error(), "the Queue service: listen tcp 127.0.0.1:"+port) {
		t.Errorf("a second server on a port: %v", err)
	}
	_ = first.Stop()
	if second := start(t, &emulator.Options{QueuePort: number}); !strings.Contains(second.ConnectionString(), ":"+port+"/devstoreaccount1;") {
		t.Errorf("it listens elsewhere: %s", second.ConnectionString())
	}
}

func TestBadOptionsAreNamed(t *testing.T) {
	for want, o := range map[string]*emulator.Options{
		`Accounts[0]: "Shop" is not 3 to 24 lower-case letters and digits`: {Accounts: []string{"Shop"}},
		`Accounts[1]: "shop" is there twice`:                               {Accounts: []string{"shop", "shop"}},
		"the File service: listen tcp: address 70000: invalid port":        {FilePort: 70000},
	} {
		if _, err := emulator.Start(t.Context(), o); err == nil || err.Error() != want {
			t.Errorf("%+v: %v, want %s", o, err, want)
		}
	}
}

// A request that a fault holds back must not keep the server from its end.
func TestStopDoesNotWaitForARequestThatHangs(t *testing.T) {
	s := start(t, &emulator.Options{Faults: []aztest.Fault{{Kind: aztest.Hang}}})
	client, err := azblob.NewClientFromConnectionString(s.ConnectionString(), &azblob.ClientOptions{ClientOptions: options(t)})
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error)
	sent := make(chan struct{})
	go func() {
		ctx := policy.WithHTTPHeader(context.Background(), http.Header{})
		close(sent)
		_, err := client.CreateContainer(ctx, "box", nil)
		failed <- err
	}()
	<-sent
	began := time.Now()
	_ = s.Stop()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	if err := <-failed; err == nil {
		t.Error("the request was answered")
	}
	<-s.Done()
}

func TestManyClientsAtOnceLoseNothing(t *testing.T) {
	s := start(t, nil)
	client, err := azblob.NewClientFromConnectionString(s.ConnectionString(), &azblob.ClientOptions{ClientOptions: options(t)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CreateContainer(t.Context(), "box", nil); err != nil {
		t.Fatal(err)
	}
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() {
			for j := range 10 {
				if _, err := client.UploadBuffer(t.Context(), "box", strconv.Itoa(i)+"-"+strconv.Itoa(j), []byte("x"), nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	clients.Wait()
	page, err := client.NewListBlobsFlatPager("box", nil).NextPage(t.Context())
	if err != nil || len(page.Segment.BlobItems) != 80 {
		t.Errorf("%d blobs, %v", len(page.Segment.BlobItems), err)
	}
}

func TestFaultsAreReadFromAText(t *testing.T) {
	faults, err := emulator.ParseFaults("lose-answer=20%@writes, slow=0.5:20ms,answer=100%:503@Put Blob")
	if err != nil || len(faults) != 3 {
		t.Fatalf("%+v, %v", faults, err)
	}
	if f := faults[0]; f.Kind != aztest.LoseAnswer || f.Probability != 0.2 || f.Match(&aztest.Request{Method: "GET"}) || !f.Match(&aztest.Request{Method: "PUT"}) {
		t.Errorf("the first: %+v", f)
	}
	if f := faults[1]; f.Kind != aztest.Slow || f.Probability != 0.5 || f.Delay != 20*time.Millisecond || f.Match != nil {
		t.Errorf("the second: %+v", f)
	}
	if f := faults[2]; f.Status != 503 || f.Code != "ServerBusy" || !f.Match(&aztest.Request{Op: "Put Blob"}) || f.Match(&aztest.Request{Op: "Get Blob"}) {
		t.Errorf("the third: %+v", f)
	}
	for text, want := range map[string]string{
		"loose-answer=5%":    `"loose-answer" is no kind of fault: give one of lose-answer, `,
		"lose-answer":        "has no rate",
		"lose-answer=0":      "has no rate",
		"lose-answer=120%":   "has no rate",
		"lose-answer=5%:1s":  "1s is neither a delay nor a status that lose-answer takes",
		"slow=5%:503":        "503 is neither",
		"answer=5%:99":       "99 is neither",
		"throttle=5%@":       "names no operation",
		"throttle=5%,":       `"" is no kind of fault`,
		"slow=5%:-1s@writes": "-1s is neither",
	} {
		if _, err := emulator.ParseFaults(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestTheFaultsOfATextHappen loses the responses of all writes: what was created is there, and its creator has an error.
func TestTheFaultsOfATextHappen(t *testing.T) {
	faults, err := emulator.ParseFaults("lose-answer=100%@Create Container")
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, &emulator.Options{Faults: faults})
	client, err := azblob.NewClientFromConnectionString(s.ConnectionString(), &azblob.ClientOptions{ClientOptions: options(t)})
	if err != nil {
		t.Fatal(err)
	}
	var refused *azcore.ResponseError
	if _, err := client.CreateContainer(t.Context(), "box", nil); err == nil || errors.As(err, &refused) {
		t.Errorf("creating: %v, want a broken connection", err)
	}
	if _, err := client.UploadBuffer(t.Context(), "box", "blob", nil, nil); err != nil {
		t.Errorf("the container is not there: %v", err)
	}
}

func TestAFaultOfNoOperationIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"slow=5%@Put Blobs":   `"Put Blobs" is no operation: give writes, or one of the REST reference, such as Put Blob`,
		"slow=5%@put blob":    `"put blob" is no operation`,
		"hang=1%@Put Message": "",
		"hang=1%@writes":      "",
	} {
		_, err := emulator.ParseFaults(text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
