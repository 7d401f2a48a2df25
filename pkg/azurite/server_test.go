package azurite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
)

// needAzurite skips a test when its user has said so, and never for another reason.
func needAzurite(t *testing.T) {
	t.Helper()
	if os.Getenv("AZCONC_SKIP_AZURITE") == "1" {
		t.Skip("AZCONC_SKIP_AZURITE=1")
	}
}

func start(t *testing.T, opts *Options) *Server {
	t.Helper()
	needAzurite(t)
	s, err := Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	return s
}

// wire gives each test connections of its own, closed at its end, for goleak's sake.
func wire(t *testing.T) policy.ClientOptions {
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return policy.ClientOptions{Transport: &http.Client{Transport: tr}, Retry: policy.RetryOptions{MaxRetries: -1}}
}

// use sends a request of each SDK to an account.
func use(t *testing.T, a Account) {
	t.Helper()
	blobs, err := azblob.NewClientFromConnectionString(a.ConnectionString(), &azblob.ClientOptions{ClientOptions: wire(t)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := blobs.CreateContainer(t.Context(), "jobs", nil); err != nil {
		t.Errorf("create a container: %v", err)
	}
	if _, err := blobs.UploadBuffer(t.Context(), "jobs", "state", []byte("1"), nil); err != nil {
		t.Errorf("upload a blob: %v", err)
	}
	queues, err := azqueue.NewServiceClientFromConnectionString(a.ConnectionString(), &azqueue.ClientOptions{ClientOptions: wire(t)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := queues.CreateQueue(t.Context(), "jobs", nil); err != nil {
		t.Errorf("create a queue: %v", err)
	}
	tables, err := aztables.NewServiceClientFromConnectionString(a.ConnectionString(), &aztables.ClientOptions{ClientOptions: wire(t)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tables.CreateTable(t.Context(), "jobs", nil); err != nil {
		t.Errorf("create a table: %v", err)
	}
}

func gone(path string) bool {
	_, err := os.Lstat(path)
	return os.IsNotExist(err)
}

func TestAServerAnswersUntilItIsStopped(t *testing.T) {
	s := start(t, nil)
	if a := s.Account(); a.Name != DefaultAccount || a.Key != DefaultKey || s.ConnectionString() != a.ConnectionString() {
		t.Errorf("the first account is %+v, want the well-known one", a)
	}
	use(t, s.Account())
	if err := s.Err(); err != nil {
		t.Errorf("Err() = %v while it runs", err)
	}
	if gone(filepath.Join(s.temp, "data", "__azurite_db_blob__.json")) {
		t.Error("the data are not on disk")
	}

	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if err := s.Stop(); err != nil {
				t.Errorf("Stop() = %v", err)
			}
			select {
			case <-s.Done():
			default:
				t.Error("Stop has returned before the process was gone")
			}
			if !gone(s.temp) {
				t.Error("Stop has left the temporary folder behind")
			}
		})
	}
	wg.Wait()
	if err := s.Err(); err != nil {
		t.Errorf("Err() = %v after Stop", err)
	}
	host := strings.TrimSuffix(strings.TrimPrefix(s.Account().BlobURL, "http://"), "/"+DefaultAccount)
	if c, err := net.Dial("tcp", host); err == nil {
		c.Close()
		t.Errorf("a process still listens at %s", host)
	}
}

func TestAccountsDoNotSeeEachOther(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: it starts a server of its own, and this is a short run")
	}
	t.Setenv("AZURITE_ACCOUNTS", "other:"+DefaultKey) // not meant for this server
	s := start(t, &Options{Accounts: []string{"first", "second", "third"}})
	all := s.Accounts()
	if len(all) != 3 || all[0].Name != "first" || all[1].Name != "second" || all[2].Name != "third" {
		t.Fatalf("accounts are %v", all)
	}
	second, third := all[1], all[2]
	if second.Key == third.Key || second.Key == DefaultKey {
		t.Error("accounts share a key")
	}
	for _, a := range all {
		use(t, a) // would fail with 409 in an account where it was before
	}
	stranger := third
	stranger.Key = second.Key
	blobs, err := azblob.NewClientFromConnectionString(stranger.ConnectionString(), &azblob.ClientOptions{ClientOptions: wire(t)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := blobs.CreateContainer(t.Context(), "more", nil); !bloberror.HasCode(err, bloberror.AuthorizationFailure) {
		t.Errorf("with the key of another account: %v, want AuthorizationFailure", err)
	}
}

func TestALocationBelongsToOneServer(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: it starts a server of its own, and this is a short run")
	}
	dir := filepath.Join(t.TempDir(), "new", "data")
	start(t, &Options{Location: dir})
	second, err := Start(t.Context(), &Options{Location: dir})
	if err == nil {
		_ = second.Stop()
		t.Fatal("two servers use one folder")
	}
	if want := fmt.Sprintf("Location: %s is in use by another Azurite", dir); err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// Azurite itself would try to write for ever.
func TestALocationThatCannotBeWrittenIsRefusedAtOnce(t *testing.T) {
	tools(t) // there is no node: it is not needed
	dir := t.TempDir()
	file, readOnly := filepath.Join(dir, "file"), filepath.Join(dir, "read-only")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Mkdir(readOnly, 0o500)); err != nil {
		t.Fatal(err)
	}
	locations := []string{file, filepath.Join(file, "data")}
	if os.Getuid() > 0 { // not root, who can write anywhere, and not Windows
		locations = append(locations, readOnly, filepath.Join(readOnly, "data"))
	}
	for _, location := range locations {
		if _, err := Start(t.Context(), &Options{Location: location}); err == nil || !strings.HasPrefix(err.Error(), "Location: ") || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v, want an error about it", location, err)
		}
	}
}

func TestDataInAGivenLocationOutliveTheServer(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: it starts a server of its own, and this is a short run")
	}
	dir := t.TempDir()
	s := start(t, &Options{Location: dir})
	use(t, s.Account())
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	s = start(t, &Options{Location: dir})
	blobs, err := azblob.NewClientFromConnectionString(s.ConnectionString(), &azblob.ClientOptions{ClientOptions: wire(t)})
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 1)
	if _, err := blobs.DownloadBuffer(t.Context(), "jobs", "state", got, nil); err != nil || string(got) != "1" {
		t.Errorf("the blob holds %q (%v), want what the first server was given", got, err)
	}
}

func TestAProcessThatDiesIsNoticed(t *testing.T) {
	s := start(t, nil)
	if err := s.process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), "ended by itself") || !strings.Contains(err.Error(), "killed") {
		t.Errorf("Err() = %v, want the signal", err)
	}
	for range 2 {
		if err := s.Stop(); err == nil || err.Error() != s.Err().Error() {
			t.Errorf("Stop() = %v, want %v", err, s.Err())
		}
	}
	if !gone(s.temp) {
		t.Error("the temporary folder was left behind")
	}
}

func TestAzuriteDoesNotOutliveItsOwner(t *testing.T) {
	needAzurite(t)
	cmd := self(t, "owner")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var temp, url string
	_, err = fmt.Fscan(bufio.NewReader(stdout), &temp, &url)
	if killed := cmd.Process.Kill(); killed != nil {
		t.Error(killed)
	}
	_ = cmd.Wait()
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(temp)
	host := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/"+DefaultAccount)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 1500 {
		c, err := net.Dial("tcp", host)
		if err != nil {
			return
		}
		c.Close()
		<-tick.C
	}
	t.Errorf("Azurite still listens at %s", host)
}

// failedStart runs Start with a node that misbehaves and sees to it that nothing of it is left.
func failedStart(t *testing.T, ctx context.Context, opts *Options) error {
	t.Helper()
	tools(t, "node")
	tmp := t.TempDir()
	for _, name := range []string{"TMPDIR", "TMP", "TEMP"} {
		t.Setenv(name, tmp)
	}
	dir := t.TempDir()
	copied(t, dir)
	t.Setenv(DirVariable, dir)
	s, err := Start(ctx, opts)
	if err == nil {
		s.Stop()
		t.Fatal("Start succeeded")
	}
	if names := entries(t, tmp); len(names) != 0 {
		t.Errorf("%v was left behind", names)
	}
	return err
}

func TestAnAzuriteThatExitsIsReportedWithItsOutput(t *testing.T) {
	t.Setenv("AZCONC_TEST_NODE", "taken")
	err := failedStart(t, t.Context(), &Options{})
	if err == nil || !strings.Contains(err.Error(), "did not start: exit status 1") || !strings.Contains(err.Error(), "EADDRINUSE") {
		t.Errorf("Start = %v, want its status and what it said", err)
	}
}

func TestAStartThatIsGivenUpReturnsTheCause(t *testing.T) {
	t.Setenv("AZCONC_TEST_NODE", "silent")
	why := errors.New("the user went home")
	ctx, cancel := context.WithCancelCause(t.Context())
	timer := time.AfterFunc(100*time.Millisecond, func() { cancel(why) })
	defer timer.Stop()
	if err := failedStart(t, ctx, &Options{}); !errors.Is(err, why) {
		t.Errorf("Start = %v, want the context's cause", err)
	}
}
