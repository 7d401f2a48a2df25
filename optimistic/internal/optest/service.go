package optest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/pageblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/retry"
)

// PutTagged stores a blob with index tags, without azconc.
func PutTagged(t *testing.T, client *blockblob.Client, tags map[string]string) azcore.ETag {
	t.Helper()
	resp, err := client.Upload(context.Background(), Body("x"), &blockblob.UploadOptions{Tags: tags})
	if err != nil {
		t.Fatal(err)
	}
	return *resp.ETag
}

// Latencies returns a function that draws latencies of 1 ns to 9 ms from a seed. It is safe for concurrent use.
func Latencies(seed int64) func() time.Duration {
	var mu sync.Mutex
	x := uint64(seed)*2862933555777941757 + 3037000493
	return func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		x = x*6364136223846793005 + 1442695040888963407
		return time.Duration(1 + x>>33%9_000_000)
	}
}

// Quick shortens the waits of tests whose server is on this machine.
var Quick = optimistic.SendOptions{Pause: retry.Backoff{Base: 5 * time.Millisecond, Cap: 20 * time.Millisecond}, Tries: 12}

// ErrorOf returns the error of a call and drops its result.
func ErrorOf[A any](_ A, err error) error { return err }

// Original returns the blob box/n.json to copy, and the destination box/copy.
func Original(t *testing.T) (s *aztest.Service, from, to *blob.Client) {
	t.Helper()
	s, client := Quiet(t, "x")
	if _, err := client.SetMetadata(t.Context(), map[string]*string{"Owner": new("web")}, nil); err != nil {
		t.Fatal(err)
	}
	s.Reset()
	return s, client.BlobClient(), s.Container("box").NewBlobClient("copy")
}

// PropertiesOf returns the properties of the blob.
func PropertiesOf(t *testing.T, client *blob.Client) blob.GetPropertiesResponse {
	t.Helper()
	p, err := client.GetProperties(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TagsOf returns the index tags of the blob.
func TagsOf(t *testing.T, client *blob.Client) map[string]string {
	t.Helper()
	resp, err := client.GetTags(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	tags := map[string]string{}
	for _, tag := range resp.BlobTagSet {
		tags[*tag.Key] = *tag.Value
	}
	return tags
}

// Row returns a service with a table that holds the entity p/r with the properties, given in JSON. Without properties
// the table is empty.
func Row(t *testing.T, properties string) (*aztest.Service, *aztables.Client) {
	t.Helper()
	s := aztest.New(nil)
	client := s.Table("orders")
	if properties != "" {
		Insert(t, client, "r", properties)
	}
	s.Reset()
	return s, client
}

// Insert stores an entity without azconc, and so without a lineage.
func Insert(t *testing.T, client *aztables.Client, row, properties string) azcore.ETag {
	t.Helper()
	resp, err := client.AddEntity(context.Background(), []byte(`{"PartitionKey":"p","RowKey":"`+row+`"`+comma(properties)+`}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	return resp.ETag
}

func comma(properties string) string {
	if properties = strings.Trim(properties, "{}"); properties == "" {
		return ""
	}
	return "," + properties
}

// Number returns the property n of an entity, or -1 if the entity does not exist.
func Number(t *testing.T, client *aztables.Client, row string) int {
	t.Helper()
	resp, err := client.GetEntity(context.Background(), "p", row, nil)
	if azerr.Classify(err).Kind == azerr.NotFound {
		return -1
	}
	var properties map[string]any
	if err == nil {
		err = json.Unmarshal(resp.Value, &properties)
	}
	var n int
	if err == nil {
		_, err = fmt.Sscan(fmt.Sprint(properties["n"]), &n)
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// SetMeta returns a change that sets one name.
func SetMeta(name, value string) func(context.Context, *map[string]string) error {
	return func(_ context.Context, m *map[string]string) error {
		(*m)[name] = value
		return nil
	}
}

// Ops returns the operations of all requests that were sent.
func Ops(s *aztest.Service) (all []string) {
	for _, r := range s.Log() {
		all = append(all, r.Op)
	}
	return all
}

// PagesOf returns a client of the page blob box/pages.
func PagesOf(s *aztest.Service) *pageblob.Client {
	return s.Container("box").NewPageBlobClient("pages")
}

// MakePages creates the page blob of PagesOf, empty.
func MakePages(t *testing.T, s *aztest.Service, size int64) *pageblob.Client {
	t.Helper()
	s.BlockBlob("box", "any") // makes the container
	client := PagesOf(s)
	if _, err := client.Create(t.Context(), size, nil); err != nil {
		t.Fatal(err)
	}
	s.Reset()
	return client
}
