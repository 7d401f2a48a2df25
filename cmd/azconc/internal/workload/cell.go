package workload

import (
	"fmt"
	"slices"
	"time"
)

// The workloads.
const (
	Blob      = "blob"       // clients increment one counter in a blob
	Entity    = "entity"     // clients increment one counter in an entity
	Document  = "document"   // goroutines of one process increment one counter in a blob
	Lock      = "lock"       // clients acquire and release one lock
	TableLock = "table-lock" // clients increment an entity under a lock
	Consume   = "consume"    // workers take messages from one queue
)

// The ways to carry out a workload.
const (
	Azconc     = "azconc"
	Plain      = "plain loop"  // read, change, write with If-Match, at once again on 412
	Jitter     = "full jitter" // the same with pauses of full jitter
	Lease      = "lease"       // the lease of a blob is acquired, with full jitter, around a read and a write
	Shared     = "one process" // azconc, where all clients share one Document or Locker
	BareLoop   = "bare loop"   // receive and delete
	None       = "none"        // azconc's Consumer without deduplication, and then with each mode of it
	Redelivery = "redelivery"
	Owner      = "owner"
	Inbox      = "inbox"
)

// Kind is a workload with its ways and the usual numbers of clients.
type Kind struct {
	Name    string
	What    string // one commit, in words
	Ways    []string
	Clients []int
}

// Kinds returns all workloads.
func Kinds() []Kind {
	crowd := []int{1, 2, 8, 32, 128}
	return []Kind{
		{Blob, "an increment of a counter in one blob", []string{Azconc, Plain, Jitter, Lease}, crowd},
		{Entity, "an increment of a counter in one entity", []string{Azconc, Plain, Jitter, Lease}, crowd},
		{Document, "an increment of a counter in one blob, by goroutines of one process", []string{Shared, Azconc}, []int{64}},
		{Lock, "an acquisition of one lock and its release", []string{Azconc, Shared, Lease}, []int{1, 8, 32}},
		{TableLock, "an increment of an entity under the lock of its table", []string{Azconc, Lease}, []int{1, 8}},
		{Consume, "a message received, handled and deleted", []string{BareLoop, None, Redelivery, Owner, Inbox}, []int{8}},
	}
}

// Cell is one measurement.
type Cell struct {
	Workload string `json:"workload"`
	Way      string `json:"way"`
	Clients  int    `json:"clients"`
}

func (c Cell) String() string { return fmt.Sprintf("%s, %s, %d clients", c.Workload, c.Way, c.Clients) }

// Cells returns the cells of the named workloads, all if there are none, with the given numbers of clients, or the usual ones.
// The ways stand side by side, so that a machine that becomes slow in between disturbs all alike.
func Cells(workloads []string, clients []int) []Cell {
	var cells []Cell
	for _, k := range Kinds() {
		if len(workloads) > 0 && !slices.Contains(workloads, k.Name) {
			continue
		}
		numbers := k.Clients
		if len(clients) > 0 {
			numbers = clients
		}
		for _, n := range numbers {
			for _, way := range k.Ways {
				cells = append(cells, Cell{k.Name, way, n})
			}
		}
	}
	return cells
}

// Bounds end a cell. Zero is no bound; one of them must be set.
type Bounds struct {
	For      time.Duration // of the measurement; before it the clients settle, for as long at most
	Commits  int           // of all clients together, without those in which the clients settle
	Requests int           // of a cell, with those in which the clients settle. A request of each client may follow, and a release
}

// settling is how much passes before the measurement, so that the clients have found their rhythm: four commits for each client,
// but no longer than the measurement, and no more than half of the requests.
func (b Bounds) settling(clients int) (commits, requests int) {
	commits = 4 * clients
	if b.Commits > 0 {
		commits = min(commits, b.Commits)
	}
	return commits, b.Requests / 2
}

// Cost returns the most requests that the cells cost within b, preparation and removal included. It needs a bound of requests.
func Cost(cells []Cell, b Bounds) int {
	n := 10 // creates and deletes
	for _, c := range cells {
		n += b.Requests + 5*c.Clients + 10
		if c.Workload == Consume {
			n += b.messages()
		}
	}
	return n
}

// Measured is what a cell has shown.
type Measured struct {
	Cell
	Commits  int
	Failed   int // commits that failed, such as by a fault of the network
	Requests int64
	Elapsed  time.Duration
	// Least is the commits of the client with the fewest, as a part of the mean: 1 is fair. It is negative if it is not known: with
	// fewer than four commits for each client, chance alone would make it small.
	Least float64

	took []time.Duration // of each commit, in order of length; none if it is not known
}

// Rate returns the commits per second, 0 if no time has passed.
func (m Measured) Rate() float64 {
	if m.Elapsed <= 0 {
		return 0
	}
	return float64(m.Commits) / m.Elapsed.Seconds()
}

// PerCommit returns the requests per commit, 0 without a commit.
func (m Measured) PerCommit() float64 {
	if m.Commits == 0 {
		return 0
	}
	return float64(m.Requests) / float64(m.Commits)
}

// Quantile returns the duration within which a part q of the commits was done, and whether it is known.
func (m Measured) Quantile(q float64) (time.Duration, bool) {
	if len(m.took) == 0 {
		return 0, false
	}
	return m.took[min(len(m.took)-1, int(q*float64(len(m.took))))], true
}
