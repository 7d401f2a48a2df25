package samba

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/directory"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/lease"
)

// content is the content of a test's file.
const content = "hello"

// operationsOnFiles are the operations of Microsoft's table of share modes, in its order, as the SDK sends them.
var operationsOnFiles = []struct {
	name string
	do   func(context.Context, *file.Client) error
}{
	{opCreate, func(ctx context.Context, f *file.Client) error {
		_, err := f.Create(ctx, int64(len(content)), nil)
		return err
	}},
	{opGet, func(ctx context.Context, f *file.Client) error {
		resp, err := f.DownloadStream(ctx, nil)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}},
	{opSetProperties, func(ctx context.Context, f *file.Client) error {
		_, err := f.SetHTTPHeaders(ctx, nil)
		return err
	}},
	{opSetMetadata, func(ctx context.Context, f *file.Client) error {
		_, err := f.SetMetadata(ctx, nil)
		return err
	}},
	{opDelete, func(ctx context.Context, f *file.Client) error {
		_, err := f.Delete(ctx, nil)
		return err
	}},
	{opPutRange, func(ctx context.Context, f *file.Client) error {
		_, err := f.UploadRange(ctx, 0, streaming.NopCloser(bytes.NewReader([]byte(content))), nil)
		return err
	}},
	{opListRanges, func(ctx context.Context, f *file.Client) error {
		_, err := f.GetRangeList(ctx, nil)
		return err
	}},
	{opLease, func(ctx context.Context, f *file.Client) error {
		l, err := lease.NewFileClient(f, nil)
		if err != nil {
			return err
		}
		_, err = l.Acquire(ctx, nil)
		return err
	}},
}

// do carries out one of them.
func do(ctx context.Context, f *file.Client, name string) error {
	for _, op := range operationsOnFiles {
		if op.name == name {
			return op.do(ctx, f)
		}
	}
	return errors.New(name + " is no operation of the table")
}

const succeeded = "ok"

// outcome returns "ok", or the code of the service's response.
func outcome(err error) string {
	if err == nil {
		return succeeded
	}
	if r, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return r.ErrorCode
	}
	return err.Error()
}

func wantCode(t *testing.T, what string, err error, status int, code string) {
	t.Helper()
	r, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok || r.StatusCode != status || r.ErrorCode != code {
		t.Errorf("%s: %v, want %d %s", what, err, status, code)
	}
}

func wantOK(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// listed returns the names in the root of the share.
func listed(t *testing.T, d *directory.Client) []string {
	t.Helper()
	var names []string
	for pager := d.NewListFilesAndDirectoriesPager(nil); pager.More(); {
		page, err := pager.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range page.Segment.Files {
			names = append(names, *f.Name)
		}
	}
	return names
}

func contentOf(t *testing.T, f *file.Client) string {
	t.Helper()
	resp, err := f.DownloadStream(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// place writes a file into the share's directory, not through Samba.
func place(t *testing.T, s *Server, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.Dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
