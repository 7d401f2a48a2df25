package replay

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var (
	recordings = flag.String("recordings", "", "the directory with recordings to reduce to facts; none are reduced if it is empty")
	factsInto  = flag.String("facts", "testdata/first", "the directory to write the facts to")
)

// TestRecordingsAreDistilled makes the facts in testdata from recordings of real accounts' traffic:
//
//	go test ./pkg/aztest/internal/replay -run Distilled -args -recordings DIRECTORY -facts testdata/SET
//
// The directory holds blob.jsonl.gz, file.jsonl.gz, queue.jsonl.gz and table.jsonl.gz, whose lines the README in testdata
// describes. It is a test because facts are made about once a year, and because only tests need them.
func TestRecordingsAreDistilled(t *testing.T) {
	if *recordings == "" {
		t.Skip("no recordings were given: the facts stay as they are")
	}
	for _, service := range Services {
		name := service + ".jsonl.gz"
		if err := distil(filepath.Join(*recordings, name), filepath.Join(*factsInto, name), service); err != nil {
			t.Errorf("%s: %v", service, err)
		}
	}
}

func distil(from, to, service string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	scenarios, err := Distil(in, service)
	if err != nil {
		return err
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	if err := Write(out, scenarios); err != nil {
		_ = out.Close()
		return err
	}
	return out.Close()
}
