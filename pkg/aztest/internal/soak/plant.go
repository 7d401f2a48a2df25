package main

import (
	"fmt"
	"slices"
	"strings"
)

// plant is a deliberate mistake in the workload, to see that the judge convicts it. Several are separated by commas.
type plant string

// The mistakes.
const (
	plainRetry = "plain-retry" // counts with the usual loop around the SDK, and with the SDK's retries
	noFence    = "no-fence"    // writes under a lock without its fence
	noMarkers  = "no-markers"  // handles messages without looking for copies
	noRelease  = "no-release"  // leases blobs for ever, and forgets them
	noSend     = "no-send"     // says that a message was sent, and does not send it
	grow       = "grow"        // keeps a goroutine and memory of each update
)

var plants = []string{plainRetry, noFence, noMarkers, noRelease, noSend, grow}

func (p plant) has(one string) bool { return slices.Contains(strings.Split(string(p), ","), one) }

func (p plant) check() error {
	for one := range strings.SplitSeq(string(p), ",") {
		if one != "" && !slices.Contains(plants, one) {
			return fmt.Errorf("--plant: %q is none of %s", one, strings.Join(plants, ", "))
		}
	}
	return nil
}
