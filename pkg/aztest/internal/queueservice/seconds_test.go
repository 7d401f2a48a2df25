package queueservice

import (
	"net/url"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// TestATimeToLiveThatOverflowsIsRefused: in nanoseconds it is negative or small, so the message would be gone early.
func TestATimeToLiveThatOverflowsIsRefused(t *testing.T) {
	for text, ok := range map[string]bool{
		"9223372036854775807": false, "18446744074": false, "-9223372036854775807": false, "-18446744074": false, "-2": false,
		"-1": true, "604800": true, "2147483647": true,
	} {
		d, bad := seconds(&storage.Request{Query: url.Values{"messagettl": {text}}}, "messagettl", week, -time.Second, 1<<62)
		if ok != (bad == nil) {
			t.Errorf("messagettl=%s: %v, refused: %v", text, d, bad != nil)
		}
	}
}
