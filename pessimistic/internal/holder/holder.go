// Package holder knows how a holder is named in the metadata of what it holds.
package holder

import (
	"fmt"
	"os"
)

// The names in the metadata. The lease id is not among them, and must never be: a client that read it could act as the
// holder.
const (
	KeyOwner     = "azconcowner"     // the name the holder gave itself, percent-encoded
	KeySince     = "azconcsince"     // when it was acquired, by the service's clock
	KeyHeartbeat = "azconcheartbeat" // of the holder of a file's lease, by the service's clock
)

// MaxOwner is the longest name in bytes. It leaves room in 8 KiB of metadata even when every byte has to be escaped.
const MaxOwner = 512

// Own returns the name of this process: "host/pid".
func Own() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	if len(host) > MaxOwner-32 {
		host = host[:MaxOwner-32]
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}
