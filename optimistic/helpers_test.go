package optimistic

import (
	"context"
	"encoding/json"
	"io"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"go.uber.org/goleak"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/azurite/azuritetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(azuritetest.StopAfter(m)) }

type counter struct {
	N int `json:"n"`
}

func increment(_ context.Context, c *counter) error {
	c.N++
	return nil
}

// put stores content without azconc, as a foreign writer does: the lineage and all metadata are gone.
func put(t *testing.T, client *blockblob.Client, content string) azcore.ETag {
	t.Helper()
	resp, err := client.Upload(context.Background(), body(content), nil)
	if err != nil {
		t.Fatalf("put: %v", err)
	}
	return *resp.ETag
}

func get(t *testing.T, client *blockblob.Client) string {
	t.Helper()
	resp, err := client.DownloadStream(context.Background(), nil)
	if err != nil {
		t.Fatalf("get: %v", err)
	}
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("get: %v", err)
	}
	return string(data)
}

func count(t *testing.T, client *blockblob.Client) int {
	t.Helper()
	var c counter
	if err := json.Unmarshal([]byte(get(t, client)), &c); err != nil {
		t.Fatal(err)
	}
	return c.N
}

func etagOf(t *testing.T, client *blockblob.Client) azcore.ETag {
	t.Helper()
	resp, err := client.GetProperties(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return *resp.ETag
}

// quiet returns a service without faults, with a blob holding content.
func quiet(t *testing.T, content string) (*aztest.Service, *blockblob.Client) {
	t.Helper()
	s := aztest.New(nil)
	client := s.BlockBlob("box", "n.json")
	if content != "" {
		put(t, client, content)
	}
	s.Reset()
	return s, client
}

func requests(t *testing.T, s *aztest.Service, res Result, want int) {
	t.Helper()
	if res.Requests != want || s.Requests() != want {
		t.Errorf("reported %d requests, sent %d, want %d:\n%v", res.Requests, s.Requests(), want, s.Log())
	}
}
