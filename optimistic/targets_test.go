package optimistic_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/azconc/azconc/optimistic/pages"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/optimistic/settings"
	"github.com/azconc/azconc/pkg/aztest"
)

// rig is a target whose value holds a counter per writer, on a service of its own.
type rig struct {
	*aztest.Service
	update func(ctx context.Context, change func(numbers []int), opts *optimistic.UpdateOptions) (optimistic.Result, error)
	read   func(ctx context.Context) ([]int, error)
}

// rigOf makes a rig of a target. Each update gets a client of its own.
func rigOf[T any](s *aztest.Service, open func() optimistic.Target[T], get func(T) []int, set func(*T, []int)) rig {
	return rig{
		Service: s,
		update: func(ctx context.Context, change func([]int), opts *optimistic.UpdateOptions) (optimistic.Result, error) {
			return optimistic.Update(ctx, open(), func(_ context.Context, v *T) error {
				numbers := get(*v)
				change(numbers)
				set(v, numbers)
				return nil
			}, opts)
		},
		read: func(ctx context.Context) ([]int, error) {
			v, err := optimistic.Read(ctx, open(), nil)
			if err != nil {
				return nil, err
			}
			return get(v.Value), nil
		},
	}
}

// site is a kind of target.
type site struct {
	name     string
	Change   string // the operation that changes it, as the log names it
	requests int    // of an Update without contention
	// traceless means that a write leaves no trace: a lost response may leave the outcome unknown, and a write that is
	// delivered twice looks like one by another writer.
	traceless bool
	// lastWins means that concurrent writers are not noticed.
	lastWins bool
	make     func(t *testing.T, s *aztest.Service) rig
}

// sites are the targets besides blobs, their metadata and entities, which have tests of their own.
var sites = []site{
	{name: "headers", Change: "Set Blob Properties", requests: 2, traceless: true,
		make: func(t *testing.T, s *aztest.Service) rig {
			optest.Put(t, s.BlockBlob("box", "n"), "x")
			return rigOf(s, func() optimistic.Target[blobs.HTTPHeaders] {
				return blobs.NewHeaders(s.BlockBlob("box", "n").BlobClient())
			},
				func(h blobs.HTTPHeaders) []int { return numbersOf(h.ContentLanguage) },
				func(h *blobs.HTTPHeaders, n []int) { h.ContentLanguage = textOf(n) })
		},
	},
	{name: "tags", Change: "Set Blob Tags", requests: 2,
		make: func(t *testing.T, s *aztest.Service) rig {
			// A blob that is created with the lineage tag is guarded from the first write on.
			optest.PutTagged(t, s.BlockBlob("box", "n"), map[string]string{"state": "ready", optimistic.LineageKey: "-"})
			return tagRig(s)
		},
	},
	{name: "tags, ten of them", Change: "Set Blob Tags", requests: 2, traceless: true,
		make: func(t *testing.T, s *aztest.Service) rig {
			tags := map[string]string{"n": "0"}
			for i := range 9 {
				tags[fmt.Sprintf("tag%d", i)] = "x"
			}
			optest.PutTagged(t, s.BlockBlob("box", "n"), tags)
			return tagRig(s)
		},
	},
	{name: "pages", Change: "Put Page", requests: 2, traceless: true,
		make: func(t *testing.T, s *aztest.Service) rig { return pageRig(t, s, 1024) },
	},
	{name: "container metadata", Change: "Set Container Metadata", requests: 5,
		make: func(t *testing.T, s *aztest.Service) rig {
			s.BlockBlob("box", "n")
			return rigOf(s, func() optimistic.Target[map[string]string] { return settings.NewContainerMetadata(s.Container("box")) }, inMap, toMap)
		},
	},
	{name: "container acl", Change: "Set Container ACL", requests: 5, traceless: true,
		make: func(t *testing.T, s *aztest.Service) rig {
			s.BlockBlob("box", "n")
			return rigOf(s, func() optimistic.Target[settings.ACL] { return settings.NewContainerACL(s.Container("box")) },
				func(v settings.ACL) []int {
					if len(v.Policies) == 0 {
						return make([]int, slots)
					}
					return numbersOf(v.Policies[0].ID)
				},
				func(v *settings.ACL, n []int) {
					v.Policies = []settings.AccessPolicy{{ID: textOf(n), Permissions: "r", Expiry: time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC)}}
				})
		},
	},
	{name: "queue metadata", Change: "Set Queue Metadata", requests: 2, lastWins: true,
		make: func(t *testing.T, s *aztest.Service) rig {
			return rigOf(s, func() optimistic.Target[map[string]string] {
				return settings.NewLastWriterWinsQueueMetadata(s.Queue("jobs"))
			}, inMap, toMap)
		},
	},
	{name: "queue acl", Change: "Set Queue ACL", requests: 2, lastWins: true,
		make: func(t *testing.T, s *aztest.Service) rig {
			return rigOf(s, func() optimistic.Target[[]settings.AccessPolicy] {
				return settings.NewLastWriterWinsQueueACL(s.Queue("jobs"))
			},
				func(p []settings.AccessPolicy) []int {
					if len(p) == 0 {
						return make([]int, slots)
					}
					return numbersOf(p[0].ID)
				},
				func(p *[]settings.AccessPolicy, n []int) {
					*p = []settings.AccessPolicy{{ID: textOf(n), Permissions: "r"}}
				})
		},
	},
}

func tagRig(s *aztest.Service) rig {
	return rigOf(s, func() optimistic.Target[map[string]string] {
		return blobs.NewTags(s.BlockBlob("box", "n").BlobClient())
	}, inMap, toMap)
}

func pageRig(t *testing.T, s *aztest.Service, size int64) rig {
	optest.MakePages(t, s, size)
	return rigOf(s, func() optimistic.Target[[]byte] {
		return pages.NewRange(optest.PagesOf(s), 0, size)
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
