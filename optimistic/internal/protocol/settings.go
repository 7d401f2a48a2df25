package protocol

import (
	"cmp"
	"fmt"
	"time"

	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/retry"
)

const (
	DefaultLineageSize = 32 // entries
	maxLineageSize     = 128
	DefaultMinRate     = 64 << 10 // bytes per second
)

// Settings are the fields of optimistic.SendOptions, which describes them.
type Settings struct {
	LineageSize int
	Tries       int
	TryTimeout  time.Duration
	MinRate     int64
	Recreate    bool
	Pause       retry.Backoff
	Grace       time.Duration
	Confirm     Confirm
	Hooks       observe.Hooks
}

// Confirm is optimistic.Confirm.
type Confirm uint8

// The values of Confirm.
const (
	ConfirmByPath Confirm = iota
	ConfirmAlways
	ConfirmNever
)

// WithDefaults returns s with its defaults filled in, or an error that names the field that is out of range.
func (s Settings) WithDefaults() (Settings, error) {
	s.LineageSize = cmp.Or(s.LineageSize, DefaultLineageSize)
	s.Tries = cmp.Or(s.Tries, 6)
	s.TryTimeout = cmp.Or(s.TryTimeout, 30*time.Second)
	s.MinRate = cmp.Or(s.MinRate, DefaultMinRate)
	s.Grace = cmp.Or(s.Grace, 2*time.Second)
	s.Pause = OrBackoff(s.Pause, 200*time.Millisecond, 10*time.Second)
	if s.LineageSize > maxLineageSize {
		return s, fmt.Errorf("LineageSize: %d is more than %d, which would not fit the 8 KB of metadata", s.LineageSize, maxLineageSize)
	}
	if s.Confirm > ConfirmNever {
		return s, fmt.Errorf("ConfirmConflicts: %d is none of ConfirmByPath, ConfirmAlways and ConfirmNever", s.Confirm)
	}
	if s.Grace < 0 {
		return s, fmt.Errorf("Grace: %v is negative; give the time a last look may take", s.Grace)
	}
	return s, nil
}

// OrBackoff returns b with base and limit in place of a zero Base and Cap.
func OrBackoff(b retry.Backoff, base, limit time.Duration) retry.Backoff {
	b.Base = cmp.Or(b.Base, base)
	b.Cap = max(cmp.Or(b.Cap, limit), b.Base)
	return b
}
