package flags

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestSizesHaveUnits(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "1048576": 1 << 20, "0x10": 16, "1KiB": 1 << 10, "3MiB": 3 << 20, "1GiB": 1 << 30, "2TiB": 2 << 40, "8388607TiB": 8388607 << 40,
		"0": 0, "-1": 0, "0KiB": 0, "1GB": 0, "1 GiB": 0, "GiB": 0, "1.5GiB": 0, "8388608TiB": 0, "x": 0,
	} {
		set, got := pflag.NewFlagSet("", pflag.ContinueOnError), int64(0)
		Size(set, &got, "max-size", "")
		err := set.Parse([]string{"--max-size", text})
		if got != want || (err == nil) != (want > 0) || err != nil && !strings.Contains(err.Error(), text) {
			t.Errorf("%q is %d, %v, want %d", text, got, err, want)
		}
	}
}
