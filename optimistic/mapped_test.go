package optimistic_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/optimistic/settings"
	"github.com/azconc/azconc/pkg/aztest"
)

func number(target optimistic.Target[[]byte]) optimistic.Target[int] {
	return optimistic.Map(target,
		func(text []byte) (int, error) { return strconv.Atoi(string(text)) },
		func(n int) ([]byte, error) {
			if n < 0 {
				return nil, errors.New("negative")
			}
			return []byte(strconv.Itoa(n)), nil
		})
}

func add(n int) func(context.Context, *int) error {
	return func(_ context.Context, v *int) error {
		*v += n
		return nil
	}
}

// TestAMappedTargetKeepsThePromises: a lost response is resolved by the inner target's lineage, what the inner target
// preserves is preserved, and a Document opens it.
func TestAMappedTargetKeepsThePromises(t *testing.T) {
	for name, fault := range optest.Every(aztest.Writes) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, client := optest.Quiet(t, "1")
				if _, err := optimistic.Update(t.Context(), blobs.NewMetadata(client.BlobClient()), optest.SetMeta("owner", "web"), nil); err != nil {
					t.Fatal(err)
				}
				s.SetFaults(fault)
				res, err := optimistic.Update(t.Context(), number(blobs.NewBytes(client)), add(1), &optimistic.UpdateOptions{OperationID: "op"})
				s.SetFaults()
				s.Flush()
				if got := optest.Get(t, client); err != nil || !res.Changed || got != "2" || *optest.PropertiesOf(t, client.BlobClient()).Metadata["Owner"] != "web" {
					t.Errorf("%s, %+v, %v", got, res, err)
				}
				if res, err = optimistic.Update(t.Context(), number(blobs.NewBytes(client)), add(1), &optimistic.UpdateOptions{OperationID: "op"}); err != nil || !res.AlreadyApplied {
					t.Errorf("again: %+v, %v", res, err)
				}
			})
		})
	}
}

func TestAMappedTargetCanBeOpened(t *testing.T) {
	s, client := optest.Quiet(t, "1")
	d, err := optimistic.NewDocument(number(blobs.NewBytes(client)), nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := d.Update(t.Context(), add(1)); err != nil {
			t.Fatal(err)
		}
	}
	if got := optest.Get(t, client); got != "4" || s.Requests() != 1+3+1 {
		t.Errorf("%s after %d requests", got, s.Requests())
	}
	queue := optimistic.Map(settings.NewLastWriterWinsQueueMetadata(s.Queue("jobs")),
		func(m map[string]string) (string, error) { return m["n"], nil }, func(n string) (map[string]string, error) { return map[string]string{"n": n}, nil })
	if _, err := optimistic.NewDocument(queue, nil); err == nil {
		t.Error("a target of which the last writer wins was opened")
	}
}

func TestAMappedTargetRefusesWhatItsFunctionsRefuse(t *testing.T) {
	s, client := optest.Quiet(t, "x")
	if _, err := optimistic.Read(t.Context(), number(blobs.NewBytes(client)), nil); err == nil || !strings.Contains(err.Error(), "decode: ") {
		t.Errorf("Read: %v", err)
	}
	optest.Put(t, client, "1")
	s.Reset()
	if _, err := optimistic.Update(t.Context(), number(blobs.NewBytes(client)), add(-2), nil); err == nil || !strings.Contains(err.Error(), "encode: negative") || s.Requests() != 1 {
		t.Errorf("Update: %v after %d requests", err, s.Requests())
	}
	if _, err := optimistic.Read(t.Context(), optimistic.Map[[]byte, int](blobs.NewBytes(client), nil, nil), nil); err == nil {
		t.Error("a mapped target without functions was read")
	}
}
