package emulator

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
)

// memory refuses bodies that the process has no room for. The nil memory refuses none.
type memory struct {
	limit   int64
	reading atomic.Int64 // the bodies that are being read: how much of them is in the heap already is not known
	mu      sync.Mutex   // one collects at a time
}

// take reserves room for a body until give, or reports that there is none.
func (m *memory) take(n int64) bool {
	if m == nil {
		return true
	}
	due := m.reading.Add(n)
	if heap()+due <= m.limit {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	runtime.GC() // what was deleted still counts
	if heap()+due <= m.limit {
		return true
	}
	m.reading.Add(-n)
	return false
}

func (m *memory) give(n int64) {
	if m != nil {
		m.reading.Add(-n)
	}
}

// heap is the size of what is live, and of what has not been collected yet.
func heap() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}
