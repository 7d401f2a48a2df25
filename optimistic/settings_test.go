package optimistic

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// TestTheLastWriterWinsAndTheNameSaysSo: two writers read the same metadata, both are told that they succeeded, and the
// change of one is lost. That is what the service offers; it is shown here so that nobody takes it for more.
func TestTheLastWriterWinsAndTheNameSaysSo(t *testing.T) {
	q := newQueues(t, nil)
	attempts := 0
	_, err := Update(t.Context(), LastWriterWinsQueueMetadata(q.queue()), func(ctx context.Context, m *map[string]string) error {
		if attempts++; attempts == 1 {
			if _, err := Update(ctx, LastWriterWinsQueueMetadata(q.queue()), setMeta("rival", "here"), nil); err != nil {
				return err
			}
		}
		(*m)["mine"] = "too"
		return nil
	}, nil)
	v, readErr := Read(t.Context(), LastWriterWinsQueueMetadata(q.queue()), nil)
	if err != nil || readErr != nil || attempts != 1 || v.Value["mine"] != "too" || v.Value["rival"] != "" {
		t.Errorf("%v, %v, %d attempts, %+v", err, readErr, attempts, v)
	}
}

// TestARepetitionDoesNotOverwriteWhatIsSeen: the response is lost, and a rival writes before the repetition.
func TestARepetitionDoesNotOverwriteWhatIsSeen(t *testing.T) {
	for name, kind := range map[string]aztest.FaultKind{"landed": aztest.LoseAnswer, "did not land": aztest.LoseRequest} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueues(t, nil)
				if _, err := Update(t.Context(), LastWriterWinsQueueMetadata(q.queue()), setMeta("old", "1"), nil); err != nil {
					t.Fatal(err)
				}
				q.SetFaults(aztest.Fault{Kind: kind, Match: aztest.Writes, Count: 1})
				go func() {
					bubble.Sleep(time.Microsecond)
					if _, err := Update(context.Background(), LastWriterWinsQueueMetadata(q.queue()), setMeta("rival", "1"), nil); err != nil {
						t.Error(err)
					}
				}()
				res, err := Update(t.Context(), LastWriterWinsQueueMetadata(q.queue()), setMeta("mine", "1"), nil)
				if err != nil || res.Resolved != 1 || kind == aztest.LoseAnswer && res.Attempts != 1 {
					t.Errorf("Update = %+v, %v", res, err)
				}
				v, err := Read(t.Context(), LastWriterWinsQueueMetadata(q.queue()), nil)
				if err != nil || v.Value["mine"] != "1" || v.Value["rival"] != "1" || v.Value["old"] != "1" {
					t.Errorf("read %+v, %v", v, err)
				}
			})
		})
	}
}

func TestAnOperationOnAQueuesMetadataIsRemembered(t *testing.T) {
	q := newQueues(t, nil)
	for i := range 3 {
		res, err := Update(t.Context(), LastWriterWinsQueueMetadata(q.queue()), setMeta("n", strings.Repeat("x", i+1)), &UpdateOptions{OperationID: "op"})
		if err != nil || res.AlreadyApplied != (i > 0) {
			t.Errorf("Update = %+v, %v", res, err)
		}
	}
}

func enableLogging(_ context.Context, p *azqueue.SetPropertiesOptions) error {
	p.Logging.Read = new(true)
	return nil
}

func TestOnlySectionsThatWereChangedAreSent(t *testing.T) {
	q := newQueues(t, nil)
	target := LastWriterWinsQueueService(q.queueService())
	res, err := Update(t.Context(), target, func(_ context.Context, p *azqueue.SetPropertiesOptions) error {
		p.CORS = []*azqueue.CORSRule{{AllowedOrigins: new("*"), AllowedMethods: new("GET")}}
		return nil
	}, nil)
	if err != nil || !res.Changed || res.Requests != 2 || strings.Contains(q.settings, "<Read>true") {
		t.Fatalf("Update = %+v, %v: %s", res, err, q.settings)
	}
	v, err := Read(t.Context(), target, nil)
	if err != nil || len(v.Value.CORS) != 1 || v.Value.Logging == nil || *v.Value.Logging.Read {
		t.Errorf("read %+v, %v", v, err)
	}
	// A rival changes another section between our read and our write: both changes are there.
	attempts := 0
	_, err = Update(t.Context(), target, func(ctx context.Context, p *azqueue.SetPropertiesOptions) error {
		if attempts++; attempts == 1 {
			if _, err := Update(ctx, LastWriterWinsQueueService(q.queueService()), enableLogging, nil); err != nil {
				return err
			}
		}
		p.CORS = []*azqueue.CORSRule{}
		return nil
	}, nil)
	if v, readErr := Read(t.Context(), target, nil); err != nil || readErr != nil || len(v.Value.CORS) != 0 || !*v.Value.Logging.Read {
		t.Errorf("%v, %v: %s", err, readErr, q.settings)
	}
	if res, err := Update(t.Context(), target, enableLogging, nil); err != nil || res.Changed || res.Requests != 1 {
		t.Errorf("the same again: %+v, %v", res, err)
	}
	_, err = Update(t.Context(), target, func(_ context.Context, p *azqueue.SetPropertiesOptions) error { p.Logging = nil; return nil }, nil)
	if err == nil || !strings.Contains(err.Error(), "Logging") {
		t.Errorf("err = %v, want it said that a section cannot be unset", err)
	}
}

func TestServicePropertiesUnderEveryFault(t *testing.T) {
	for name, fault := range every(aztest.Writes) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueues(t, nil)
				q.SetFaults(fault)
				res, err := Update(t.Context(), LastWriterWinsBlobService(q.blobService()), func(_ context.Context, p *service.SetPropertiesOptions) error {
					p.Logging.Write = new(true)
					return nil
				}, nil)
				q.SetFaults()
				if err != nil || !res.Changed || !strings.Contains(q.settings, "<Write>true") {
					t.Errorf("Update = %+v, %v: %s", res, err, q.settings)
				}
			})
		})
	}
}

func TestSettingsRefuseConditionsThatNobodyWouldCheck(t *testing.T) {
	q := newQueues(t, nil)
	withTags, withLease := &UpdateOptions{Conditions: Conditions{IfTags: `"a" = 'b'`}}, &UpdateOptions{Conditions: Conditions{LeaseID: "x"}}
	for name, err := range map[string]error{
		"metadata, tags":       errorOf(Update(t.Context(), LastWriterWinsQueueMetadata(q.queue()), setMeta("a", "1"), withTags)),
		"metadata, lease":      errorOf(Update(t.Context(), LastWriterWinsQueueMetadata(q.queue()), setMeta("a", "1"), withLease)),
		"metadata, create":     errorOf(Create(t.Context(), LastWriterWinsQueueMetadata(q.queue()), nil, nil)),
		"metadata, delete":     errorOf(Delete(t.Context(), LastWriterWinsQueueMetadata(q.queue()), State{}, nil)),
		"acl, operation":       errorOf(Update(t.Context(), LastWriterWinsQueueACL(q.queue()), addPolicy, &UpdateOptions{OperationID: "x"})),
		"acl, lease":           errorOf(Update(t.Context(), LastWriterWinsQueueACL(q.queue()), addPolicy, withLease)),
		"properties, lease":    errorOf(Update(t.Context(), LastWriterWinsQueueService(q.queueService()), enableLogging, withLease)),
		"properties, deletion": errorOf(Delete(t.Context(), LastWriterWinsQueueService(q.queueService()), State{}, nil)),
	} {
		if err == nil || errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("%s: err = %v", name, err)
		}
	}
	for _, r := range q.Log() {
		if aztest.Writes(&r) {
			t.Errorf("sent %v", r)
		}
	}
}

func addPolicy(_ context.Context, p *[]AccessPolicy) error {
	*p = append(*p, AccessPolicy{ID: "readers", Permissions: "r"})
	return nil
}
