package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/azconc/azconc/pkg/aztest"
)

// shortScripts are those of a short run, which stand for the others.
var shortScripts = []string{"blob", "queue", "table"}

// TestScripts runs testdata/*.txtar. Each script has a service of its own, over loopback; every azconc is a process.
func TestScripts(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	if testing.Short() {
		scripts = nil
		for _, name := range shortScripts {
			scripts = append(scripts, filepath.Join("testdata", name+".txtar"))
		}
	}
	testscript.Run(t, testscript.Params{
		Files:               scripts,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			service := aztest.New(nil)
			server := httptest.NewServer(service.BlobHandler())
			env.Defer(server.Close)
			tables := httptest.NewServer(service.TableHandler())
			env.Defer(tables.Close)
			queues := httptest.NewServer(service.QueueHandler())
			env.Defer(queues.Close)
			files := httptest.NewServer(service.FileHandler())
			env.Defer(files.Close)
			endpoint := server.URL + "/" + aztest.Account
			env.Values["service"] = service
			env.Values["faults"] = new([]aztest.Fault)
			env.Setenv("ENDPOINT", endpoint)
			env.Setenv("NOBODY", "http://"+closedPort()+"/"+aztest.Account)
			env.Setenv("AZURE_STORAGE_CONNECTION_STRING", aztest.ConnectionString(endpoint)+"TableEndpoint="+tables.URL+"/"+aztest.Account+";QueueEndpoint="+queues.URL+"/"+aztest.Account+
				";FileEndpoint="+files.URL+"/"+aztest.Account+";")
			env.Setenv("GORACE", os.Getenv("GORACE"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":       exits,
			"unconnected": unconnected,
			"etag":        etagOf,
			"content":     contentIs,
			"lease":       leaseBlob,
			"wait-held":   waitHeld,
			"sas":         makeSAS,
			"requests":    requestsSent,
			"fault":       fault,
			"empty-dir":   emptyDir,
			"grep-in":     grepIn,
			"lines":       linesIn,
			"follow-hint": followHint,
			"smb":         smb,
		},
	})
}

// closedPort is an address at which nothing listens.
func closedPort() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer l.Close()
	return l.Addr().String()
}

var secret = regexp.MustCompile(`sig=|Eby8vdM02xNOcq`)

// exits runs a command and pins its exit status: exits 4 azconc blob put …; 1|124 is either, where both are true.
// Whatever the command is about, none of its streams may show a secret.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits status command [args...]")
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
		if w, ok := exit.Sys().(syscall.WaitStatus); ok && w.Signaled() {
			got = 128 + int(w.Signal()) // as a shell says it
		}
	}
	for _, stream := range []string{"stdout", "stderr"} {
		shown := strings.ReplaceAll(ts.ReadFile(stream), "sig=REDACTED", "")
		if s := secret.FindString(shown); s != "" {
			ts.Fatalf("%s shows a secret: %s…", stream, s)
		}
	}
	if !slices.Contains(strings.Split(args[0], "|"), strconv.Itoa(got)) {
		ts.Fatalf("exit status %d, want %s\nstdout: %s\nstderr: %s", got, args[0], ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

func unconnected(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Setenv("AZURE_STORAGE_CONNECTION_STRING", "")
}

func service(ts *testscript.TestScript) *aztest.Service { return ts.Value("service").(*aztest.Service) }

// clientOf talks to the service directly, so that a script's judge is not what it judges.
func clientOf(ts *testscript.TestScript, path string) *blob.Client {
	container, name, _ := strings.Cut(path, "/")
	return service(ts).Container(container).NewBlobClient(name)
}

// etag sets a variable to a blob's ETag, without its quotes: etag jobs/a E.
func etagOf(ts *testscript.TestScript, _ bool, args []string) {
	p, err := clientOf(ts, args[0]).GetProperties(context.Background(), nil)
	ts.Check(err)
	ts.Setenv(args[1], strings.Trim(string(*p.ETag), `"`))
}

// content fails unless the blob holds this, with or without a newline at the end.
func contentIs(ts *testscript.TestScript, _ bool, args []string) {
	buf := make([]byte, 1<<16)
	n, err := clientOf(ts, args[0]).DownloadBuffer(context.Background(), buf, nil)
	ts.Check(err)
	if got := strings.TrimSuffix(string(buf[:n]), "\n"); got != args[1] {
		ts.Fatalf("%s holds %q, want %q", args[0], got, args[1])
	}
}

// lease takes an infinite lease and sets a variable to its id: lease jobs/a L.
func leaseBlob(ts *testscript.TestScript, _ bool, args []string) {
	l, err := lease.NewBlobClient(clientOf(ts, args[0]), nil)
	ts.Check(err)
	r, err := l.AcquireLease(context.Background(), -1, nil)
	ts.Check(err)
	ts.Setenv(args[1], *r.LeaseID)
}

// patience is the time after which something hangs. What takes a second can take minutes on a machine that others use.
const patience = 8 * time.Minute

// wait-held waits until a lock is held and its holder is recorded: wait-held jobs/nightly.
func waitHeld(ts *testscript.TestScript, _ bool, args []string) {
	for began := time.Now(); time.Since(began) < patience; <-time.After(10 * time.Millisecond) {
		p, err := clientOf(ts, args[0]).GetProperties(context.Background(), nil)
		if err == nil && *p.LeaseState == lease.StateTypeLeased && len(p.Metadata) > 1 {
			return
		}
	}
	ts.Fatalf("nobody holds %s", args[0])
}

// sas sets a variable to a shared access signature of the account.
func makeSAS(ts *testscript.TestScript, _ bool, args []string) {
	cred, err := container.NewSharedKeyCredential(aztest.Account, aztest.Key)
	ts.Check(err)
	q, err := sas.AccountSignatureValues{
		Protocol: sas.ProtocolHTTPSandHTTP, ExpiryTime: time.Now().Add(time.Hour),
		Permissions:   (&sas.AccountPermissions{Read: true, Write: true, List: true, Create: true}).String(),
		ResourceTypes: (&sas.AccountResourceTypes{Service: true, Container: true, Object: true}).String(),
	}.SignWithSharedKey(cred)
	ts.Check(err)
	ts.Setenv(args[0], q.Encode())
}

// requests 2 pins how many requests came since requests reset; requests 2 3 allows either.
func requestsSent(ts *testscript.TestScript, _ bool, args []string) {
	if args[0] == "reset" {
		service(ts).Reset()
		return
	}
	if got := fmt.Sprint(service(ts).Requests()); !slices.Contains(args, got) {
		ts.Fatalf("%s requests, want %s", got, strings.Join(args, " or "))
	}
}

// fault makes the service misbehave: fault {lose | 500 | 403} METHOD COUNT, where 0 is for ever. Faults add up until
// fault none.
func fault(ts *testscript.TestScript, _ bool, args []string) {
	faults := ts.Value("faults").(*[]aztest.Fault)
	if args[0] == "none" {
		*faults = nil
		service(ts).SetFaults()
		return
	}
	count, err := strconv.Atoi(args[2])
	ts.Check(err)
	f := aztest.Fault{Match: func(r *aztest.Request) bool { return r.Method == args[1] }, Count: count}
	switch args[0] {
	case "lose":
		f.Kind = aztest.LoseAnswer
	case "500":
		f.Kind, f.Status, f.Code = aztest.Answer, 500, "InternalError"
	case "403":
		f.Kind, f.Status, f.Code = aztest.Answer, 403, "AuthorizationPermissionMismatch"
	default:
		ts.Fatalf("no such fault: %s", args[0])
	}
	*faults = append(*faults, f)
	service(ts).SetFaults(*faults...)
}

func emptyDir(ts *testscript.TestScript, _ bool, args []string) {
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(entries) > 0 {
		ts.Fatalf("%s is left behind in %s", entries[0].Name(), args[0])
	}
}

// grep-in looks for a line in the one file of a directory.
func grepIn(ts *testscript.TestScript, _ bool, args []string) {
	files, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), "*"))
	ts.Check(err)
	if len(files) != 1 {
		ts.Fatalf("%d files in %s, want 1", len(files), args[0])
	}
	data, err := os.ReadFile(files[0])
	ts.Check(err)
	if !regexp.MustCompile("(?m)" + args[1]).Match(data) {
		ts.Fatalf("%s holds %q", files[0], data)
	}
}

// lines N FILE: the file has so many lines.
func linesIn(ts *testscript.TestScript, _ bool, args []string) {
	if text := ts.ReadFile(args[1]); fmt.Sprint(strings.Count(text, "\n")) != args[0] {
		ts.Fatalf("%s holds %q, want %s lines", args[1], text, args[0])
	}
}

// follow-hint runs the command that the last hint names, as a person would who copies it.
func followHint(ts *testscript.TestScript, _ bool, _ []string) {
	_, command, ok := strings.Cut(ts.ReadFile("stderr"), "overwrite the current version with it: ")
	if !ok {
		ts.Fatalf("no command in the hint")
	}
	ts.Check(ts.Exec("sh", "-c", strings.TrimSpace(command)))
}
