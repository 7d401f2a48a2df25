package aztest_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"

	"github.com/azconc/azconc/pkg/aztest/emulator"
)

// boxOf returns a client for the container "box" of an account, which it creates.
func boxOf(t *testing.T, a emulator.Account) *container.Client {
	t.Helper()
	c, err := container.NewClientFromConnectionString(a.ConnectionString(), "box", &container.ClientOptions{ClientOptions: options(t)})
	if err == nil {
		_, err = c.Create(t.Context(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// copies are the operations that read a blob by its URL.
func copies(to *blockblob.Client) map[string]func(context.Context, string) error {
	return map[string]func(context.Context, string) error{
		"Copy Blob": func(ctx context.Context, from string) error {
			_, err := to.StartCopyFromURL(ctx, from, nil)
			return err
		},
		"Copy Blob From URL": func(ctx context.Context, from string) error { _, err := to.CopyFromURL(ctx, from, nil); return err },
		"Put Blob From URL": func(ctx context.Context, from string) error {
			_, err := to.UploadBlobFromURL(ctx, from, nil)
			return err
		},
		"Put Block From URL": func(ctx context.Context, from string) error {
			_, err := to.StageBlockFromURL(ctx, base64.StdEncoding.EncodeToString([]byte("1")), from, nil)
			return err
		},
	}
}

func TestACopyReadsWhatTheURLOfItsSourceMayRead(t *testing.T) {
	s := start(t, &emulator.Options{Accounts: []string{"alpha", "beta"}})
	alpha, beta := boxOf(t, s.Accounts()[0]), boxOf(t, s.Accounts()[1])
	source := alpha.NewBlockBlobClient("source")
	for _, c := range []*blockblob.Client{source, beta.NewBlockBlobClient("source")} {
		if _, err := c.Upload(t.Context(), streaming.NopCloser(bytes.NewReader([]byte("secret"))), nil); err != nil {
			t.Fatal(err)
		}
	}
	signed := func(c *blockblob.Client, p sas.BlobPermissions, until time.Duration) string {
		t.Helper()
		u, err := c.GetSASURL(p, time.Now().Add(until), &blob.GetSASURLOptions{StartTime: new(time.Now().Add(-2 * time.Hour))})
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	read, write := sas.BlobPermissions{Read: true}, sas.BlobPermissions{Write: true}
	good := signed(source, read, time.Hour)
	address, err := url.Parse(good)
	if err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string]string{
		"garbage":                        source.URL() + "?sv=2024-11-04&sr=b&sp=r&se=2099-01-01T00:00:00Z&sig=AAAA",
		"expired":                        signed(source, read, -time.Hour),
		"a SAS that only writes":         signed(source, write, time.Hour),
		"a SAS for another blob":         signed(alpha.NewBlockBlobClient("other"), read, time.Hour) + "#",
		"another account, not signed":    beta.NewBlockBlobClient("source").URL(),
		"another account, by its SAS":    signed(beta.NewBlockBlobClient("source"), read, time.Hour),
		"another host":                   strings.Replace(good, address.Host, "acme.blob.core.windows.net", 1),
		"another port":                   strings.Replace(good, address.Host, "127.0.0.1:1", 1),
		"its account with a SAS of beta": strings.Replace(signed(beta.NewBlockBlobClient("source"), read, time.Hour), "/beta/", "/alpha/", 1),
	} {
		if name == "a SAS for another blob" {
			from = strings.Replace(strings.TrimSuffix(from, "#"), "/box/other", "/box/source", 1)
		}
		to := alpha.NewBlockBlobClient("copy")
		for op, do := range copies(to) {
			var refused *azcore.ResponseError
			if err := do(t.Context(), from); !errors.As(err, &refused) || refused.ErrorCode != "CannotVerifyCopySource" {
				t.Errorf("%s, %s: %v, want CannotVerifyCopySource", op, name, err)
			}
		}
		if _, err := to.GetProperties(t.Context(), nil); err == nil {
			t.Errorf("%s: it was copied", name)
		}
	}
	for op, do := range copies(alpha.NewBlockBlobClient("copy")) {
		if err := do(t.Context(), good); err != nil {
			t.Errorf("%s with a SAS that reads: %v", op, err)
		}
		if err := do(t.Context(), strings.Replace(good, "127.0.0.1", "localhost", 1)); err != nil {
			t.Errorf("%s by another name of the host: %v", op, err)
		}
		err := do(t.Context(), source.URL())
		if allowed := op == "Copy Blob"; (err == nil) != allowed {
			t.Errorf("%s without a SAS, in the same account: %v", op, err)
		}
	}
}
