package markers

import (
	"encoding/json"
	"time"
)

// The states of a marker.
const (
	Owned    = "owned"    // claimed: the owner is being handled, or will be again
	Done     = "done"     // handled
	Poisoned = "poisoned" // the owner went to the poison queue: a copy may be handled
)

// Marker is the stored entity.
type Marker struct {
	Owner   string    `json:"owner"` // the service's id of the message
	State   string    `json:"state"`
	Expires time.Time `json:"expires"`        // when no copy of the owner can arrive any more
	Until   time.Time `json:"until,omitzero"` // when the claim ends, by the queue's clock
	Buried  bool      `json:"buried,omitempty"`
	Result  []byte    `json:"result,omitempty"`
	Holding
	Ledger
}

// Holding is the part of a marker about the session of its owner. Without Sessions it is empty.
type Holding struct {
	Session  string    `json:"session,omitempty"`
	Delivery int       `json:"delivery,omitempty"` // the owner's delivery that was claimed
	Waited   int       `json:"waited,omitempty"`   // the owner's deliveries that were not claimed
	Awaited  time.Time `json:"awaited,omitzero"`   // since when another waits for it, by the queue's clock
	Freed    int       `json:"freed,omitempty"`    // the delivery given back, if the message does not say
}

// Ledger holds the counts that a marker stores for a message that cannot carry them.
type Ledger struct {
	Attempts   int `json:"attempts,omitempty"`
	Excused    int `json:"excused,omitempty"`
	Unfinished int `json:"unfinished,omitempty"`
}

// stored configures how a marker is written, without a lineage: its owner shows who wrote it.
type stored struct {
	PartitionKey, RowKey string
	Owner                string `json:"owner"`
	State                string `json:"state"`
	Expires              string `json:"expires"`
	ExpiresType          string `json:"expires@odata.type"`
	Until                string `json:"until,omitempty"`
	UntilType            string `json:"until@odata.type,omitempty"`
	Awaited              string `json:"awaited,omitempty"`
	AwaitedType          string `json:"awaited@odata.type,omitempty"`
	Buried               bool   `json:"buried,omitempty"`
	Result               []byte `json:"result,omitempty"`
	ResultType           string `json:"result@odata.type,omitempty"`
	Session              string `json:"session,omitempty"`
	Delivery             int    `json:"delivery,omitempty"`
	Waited               int    `json:"waited,omitempty"`
	Freed                int    `json:"freed,omitempty"`
	Ledger
}

// Encode returns the entity.
func (m Marker) Encode(partition, row string) ([]byte, error) {
	s := stored{PartitionKey: partition, RowKey: row, Owner: m.Owner, State: m.State, Buried: m.Buried, Result: m.Result,
		Session: m.Session, Delivery: m.Delivery, Waited: m.Waited, Freed: m.Freed, Ledger: m.Ledger}
	s.Expires, s.ExpiresType = dateTime(m.Expires)
	s.Until, s.UntilType = dateTime(m.Until)
	s.Awaited, s.AwaitedType = dateTime(m.Awaited)
	if len(m.Result) > 0 {
		s.ResultType = "Edm.Binary"
	}
	return json.Marshal(s)
}

func dateTime(t time.Time) (text, edm string) {
	if t.IsZero() {
		return "", ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.0000000Z"), "Edm.DateTime"
}
