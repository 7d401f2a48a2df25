package optimistic

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/pkg/aztest"
)

// faulty is a service whose requests can be made to go wrong.
type faulty interface {
	SetFaults(...aztest.Fault)
	Flush()
	Requests() int
	Log() []aztest.Request
	Reset()
}

// rig is a target with some numbers in it, one per writer, on a service of its own.
type rig struct {
	faulty
	update func(ctx context.Context, change func(numbers []int), opts *UpdateOptions) (Result, error)
	read   func(ctx context.Context) ([]int, error)
}

const slots = 4

// rigOf makes a rig of a target. Each update gets a client of its own.
func rigOf[T any](service faulty, open func() Target[T], get func(T) []int, set func(*T, []int)) rig {
	return rig{
		faulty: service,
		update: func(ctx context.Context, change func([]int), opts *UpdateOptions) (Result, error) {
			return Update(ctx, open(), func(_ context.Context, v *T) error {
				numbers := get(*v)
				change(numbers)
				set(v, numbers)
				return nil
			}, opts)
		},
		read: func(ctx context.Context) ([]int, error) {
			v, err := Read(ctx, open(), nil)
			if err != nil {
				return nil, err
			}
			return get(v.Value), nil
		},
	}
}

func numbersOf(text string) []int {
	n := make([]int, slots)
	for i, part := range strings.Split(text, ".") {
		if i < slots {
			_, _ = fmt.Sscan(part, &n[i])
		}
	}
	return n
}

func textOf(n []int) string { return strings.Trim(strings.ReplaceAll(fmt.Sprint(n), " ", "."), "[]") }

func inMap(m map[string]string) []int { return numbersOf(m["n"]) }

func toMap(m *map[string]string, n []int) { (*m)["n"] = textOf(n) }

// site is a kind of target.
type site struct {
	name     string
	write    string // the operation that changes it, as the log names it
	requests int    // of an Update without contention
	// traceless says that a write leaves nothing to know it by: a lost response may stay open, and one delivered twice
	// reads as another's.
	traceless bool
	// lastWins says that concurrent writers are not noticed.
	lastWins bool
	make     func(t *testing.T, s *aztest.Service) rig
}

// sites are the targets besides blobs, their metadata and entities, which have tests of their own.
var sites = []site{
	{name: "headers", write: "Set Blob Properties", requests: 2, traceless: true,
		make: func(t *testing.T, s *aztest.Service) rig {
			put(t, s.BlockBlob("box", "n"), "x")
			return rigOf(s, func() Target[HTTPHeaders] { return BlobHeaders(s.BlockBlob("box", "n").BlobClient()) },
				func(h HTTPHeaders) []int { return numbersOf(h.ContentLanguage) },
				func(h *HTTPHeaders, n []int) { h.ContentLanguage = textOf(n) })
		},
	},
	{name: "tags", write: "Set Blob Tags", requests: 2,
		make: func(t *testing.T, s *aztest.Service) rig {
			// A blob that is created with the lineage tag is guarded from the first write on.
			putTagged(t, s.BlockBlob("box", "n"), map[string]string{"state": "ready", LineageKey: "-"})
			return tagRig(s)
		},
	},
	{name: "tags, ten of them", write: "Set Blob Tags", requests: 2, traceless: true,
		make: func(t *testing.T, s *aztest.Service) rig {
			tags := map[string]string{"n": "0"}
			for i := range 9 {
				tags[fmt.Sprintf("tag%d", i)] = "x"
			}
			putTagged(t, s.BlockBlob("box", "n"), tags)
			return tagRig(s)
		},
	},
	{name: "pages", write: "Put Page", requests: 2, traceless: true,
		make: func(t *testing.T, s *aztest.Service) rig { return pageRig(t, s, 1024, false) },
	},
	{name: "pages with lineage", write: "Put Page", requests: 2,
		make: func(t *testing.T, s *aztest.Service) rig { return pageRig(t, s, 1024, true) },
	},
	{name: "sequence number", write: "Set Blob Properties", requests: 2, traceless: true,
		make: func(t *testing.T, s *aztest.Service) rig {
			makePages(t, s, 512)
			return rigOf(s, func() Target[int64] { return BlobSequence(pagesOf(s)) },
				func(n int64) []int {
					numbers := make([]int, slots)
					for i := range numbers {
						numbers[i] = int(n >> (12 * i) & 0xfff)
					}
					return numbers
				},
				func(n *int64, numbers []int) {
					*n = 0
					for i, v := range numbers {
						*n |= int64(v) << (12 * i)
					}
				})
		},
	},
	{name: "container metadata", write: "Set Container Metadata", requests: 5,
		make: func(t *testing.T, s *aztest.Service) rig {
			s.BlockBlob("box", "n")
			return rigOf(s, func() Target[map[string]string] { return MetadataOfContainer(s.Container("box")) }, inMap, toMap)
		},
	},
	{name: "container acl", write: "Set Container ACL", requests: 5, traceless: true,
		make: func(t *testing.T, s *aztest.Service) rig {
			s.BlockBlob("box", "n")
			return rigOf(s, func() Target[ACL] { return ACLOfContainer(s.Container("box")) },
				func(v ACL) []int {
					if len(v.Policies) == 0 {
						return make([]int, slots)
					}
					return numbersOf(v.Policies[0].ID)
				},
				func(v *ACL, n []int) {
					v.Policies = []AccessPolicy{{ID: textOf(n), Permissions: "r", Expiry: time.Now().Add(time.Hour)}}
				})
		},
	},
	{name: "queue metadata", write: "Set Container Metadata", requests: 2, lastWins: true,
		make: func(t *testing.T, s *aztest.Service) rig {
			q := newQueues(t, s)
			return rigOf(q, func() Target[map[string]string] { return LastWriterWinsQueueMetadata(q.queue()) }, inMap, toMap)
		},
	},
	{name: "queue acl", write: "Set Container ACL", requests: 2, lastWins: true,
		make: func(t *testing.T, s *aztest.Service) rig {
			q := newQueues(t, s)
			return rigOf(q, func() Target[[]AccessPolicy] { return LastWriterWinsQueueACL(q.queue()) },
				func(p []AccessPolicy) []int {
					if len(p) == 0 {
						return make([]int, slots)
					}
					return numbersOf(p[0].ID)
				},
				func(p *[]AccessPolicy, n []int) { *p = []AccessPolicy{{ID: textOf(n), Permissions: "r"}} })
		},
	},
}

func tagRig(s *aztest.Service) rig {
	return rigOf(s, func() Target[map[string]string] { return BlobTags(s.BlockBlob("box", "n").BlobClient()) }, inMap, toMap)
}

func putTagged(t *testing.T, client *blockblob.Client, tags map[string]string) azcore.ETag {
	t.Helper()
	resp, err := client.Upload(context.Background(), body("x"), &blockblob.UploadOptions{Tags: tags})
	if err != nil {
		t.Fatal(err)
	}
	return *resp.ETag
}

func pageRig(t *testing.T, s *aztest.Service, size int64, lineage bool) rig {
	makePages(t, s, size)
	return rigOf(s, func() Target[[]byte] {
		p := Pages(pagesOf(s), 0, size)
		p.Lineage = lineage
		return p
	}, func(data []byte) []int {
		n := make([]int, slots)
		for i := range n {
			n[i] = int(binary.LittleEndian.Uint32(data[4*i:]))
		}
		return n
	}, func(data *[]byte, n []int) {
		for i := range n {
			binary.LittleEndian.PutUint32((*data)[4*i:], uint32(n[i]))
		}
	})
}

// latencies draws them from a seed.
func latencies(seed int64) func() time.Duration {
	var mu sync.Mutex
	x := uint64(seed)*2862933555777941757 + 3037000493
	return func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		x = x*6364136223846793005 + 1442695040888963407
		return time.Duration(1 + x>>33%9_000_000)
	}
}
