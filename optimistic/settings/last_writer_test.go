package settings

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// TestTheLastWriterWins: two writers read the same metadata, both succeed, and the change of one is lost. The service
// allows no more, and the doc comment says so.
func TestTheLastWriterWins(t *testing.T) {
	q := aztest.New(nil)
	attempts := 0
	_, err := optimistic.Update(t.Context(), NewLastWriterWinsQueueMetadata(q.Queue("jobs")), func(ctx context.Context, m *map[string]string) error {
		if attempts++; attempts == 1 {
			if _, err := optimistic.Update(ctx, NewLastWriterWinsQueueMetadata(q.Queue("jobs")), optest.SetMeta("rival", "here"), nil); err != nil {
				return err
			}
		}
		(*m)["mine"] = "too"
		return nil
	}, nil)
	v, readErr := optimistic.Read(t.Context(), NewLastWriterWinsQueueMetadata(q.Queue("jobs")), nil)
	if err != nil || readErr != nil || attempts != 1 || v.Value["mine"] != "too" || v.Value["rival"] != "" {
		t.Errorf("%v, %v, %d attempts, %+v", err, readErr, attempts, v)
	}
}

// TestARepetitionDoesNotOverwriteARivalsChange: the response is lost, and a rival writes before the repetition.
func TestARepetitionDoesNotOverwriteARivalsChange(t *testing.T) {
	for name, kind := range map[string]aztest.FaultKind{"landed": aztest.LoseAnswer, "did not land": aztest.LoseRequest} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := aztest.New(nil)
				if _, err := optimistic.Update(t.Context(), NewLastWriterWinsQueueMetadata(q.Queue("jobs")), optest.SetMeta("old", "1"), nil); err != nil {
					t.Fatal(err)
				}
				q.SetFaults(aztest.Fault{Kind: kind, Match: aztest.Writes, Count: 1})
				go func() {
					bubble.Sleep(time.Microsecond)
					if _, err := optimistic.Update(context.Background(), NewLastWriterWinsQueueMetadata(q.Queue("jobs")), optest.SetMeta("rival", "1"), nil); err != nil {
						t.Error(err)
					}
				}()
				res, err := optimistic.Update(t.Context(), NewLastWriterWinsQueueMetadata(q.Queue("jobs")), optest.SetMeta("mine", "1"), nil)
				if err != nil || res.Resolved != 1 || kind == aztest.LoseAnswer && res.Attempts != 1 {
					t.Errorf("Update = %+v, %v", res, err)
				}
				v, err := optimistic.Read(t.Context(), NewLastWriterWinsQueueMetadata(q.Queue("jobs")), nil)
				if err != nil || v.Value["mine"] != "1" || v.Value["rival"] != "1" || v.Value["old"] != "1" {
					t.Errorf("read %+v, %v", v, err)
				}
			})
		})
	}
}

func TestAnOperationOnAQueuesMetadataIsRemembered(t *testing.T) {
	q := aztest.New(nil)
	for i := range 3 {
		res, err := optimistic.Update(t.Context(), NewLastWriterWinsQueueMetadata(q.Queue("jobs")), optest.SetMeta("n", strings.Repeat("x", i+1)), &optimistic.UpdateOptions{OperationID: "op"})
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
	q := newServices()
	target := NewLastWriterWinsQueueService(q.QueueService())
	res, err := optimistic.Update(t.Context(), target, func(_ context.Context, p *azqueue.SetPropertiesOptions) error {
		p.CORS = []*azqueue.CORSRule{{AllowedOrigins: new("*"), AllowedMethods: new("GET")}}
		return nil
	}, nil)
	if err != nil || !res.Changed || res.Requests != 2 || strings.Contains(q.Settings, "<Read>true") {
		t.Fatalf("Update = %+v, %v: %s", res, err, q.Settings)
	}
	v, err := optimistic.Read(t.Context(), target, nil)
	if err != nil || len(v.Value.CORS) != 1 || v.Value.Logging == nil || *v.Value.Logging.Read {
		t.Errorf("read %+v, %v", v, err)
	}
	// A rival changes another section between our read and our write: both changes are there.
	attempts := 0
	_, err = optimistic.Update(t.Context(), target, func(ctx context.Context, p *azqueue.SetPropertiesOptions) error {
		if attempts++; attempts == 1 {
			if _, err := optimistic.Update(ctx, NewLastWriterWinsQueueService(q.QueueService()), enableLogging, nil); err != nil {
				return err
			}
		}
		p.CORS = []*azqueue.CORSRule{}
		return nil
	}, nil)
	if v, readErr := optimistic.Read(t.Context(), target, nil); err != nil || readErr != nil || len(v.Value.CORS) != 0 || !*v.Value.Logging.Read {
		t.Errorf("%v, %v: %s", err, readErr, q.Settings)
	}
	if res, err := optimistic.Update(t.Context(), target, enableLogging, nil); err != nil || res.Changed || res.Requests != 1 {
		t.Errorf("the same again: %+v, %v", res, err)
	}
	_, err = optimistic.Update(t.Context(), target, func(_ context.Context, p *azqueue.SetPropertiesOptions) error { p.Logging = nil; return nil }, nil)
	if err == nil || !strings.Contains(err.Error(), "Logging") {
		t.Errorf("err = %v, want it said that a section cannot be unset", err)
	}
}

// TestUnsetFieldsOfARuleAreTheirDefaults: the SDK sends defaults for them, and so a look after a lost response found other
// properties than those that were sent: the outcome was unknown.
func TestUnsetFieldsOfARuleAreTheirDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newServices()
		q.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Count: 1})
		target := NewLastWriterWinsQueueService(q.QueueService())
		for _, sets := range []bool{true, false} {
			res, err := optimistic.Update(t.Context(), target, func(_ context.Context, p *azqueue.SetPropertiesOptions) error {
				p.CORS = []*azqueue.CORSRule{{AllowedOrigins: new("*"), AllowedMethods: new("GET")}}
				p.Logging.Version = nil
				return nil
			}, nil)
			if err != nil || res.Changed != sets {
				t.Errorf("Update = %+v, %v, want a change: %v", res, err, sets)
			}
		}
	})
}

func TestServicePropertiesUnderEveryFault(t *testing.T) {
	for name, fault := range optest.Every(aztest.Writes) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newServices()
				q.SetFaults(fault)
				res, err := optimistic.Update(t.Context(), NewLastWriterWinsQueueService(q.QueueService()), func(_ context.Context, p *azqueue.SetPropertiesOptions) error {
					p.Logging.Write = new(true)
					return nil
				}, nil)
				q.SetFaults()
				if err != nil || !res.Changed || !strings.Contains(q.Settings, "<Write>true") {
					t.Errorf("Update = %+v, %v: %s", res, err, q.Settings)
				}
			})
		})
	}
}

func TestSettingsRefuseUnsupportedConditions(t *testing.T) {
	q, services := aztest.New(nil), newServices()
	withTags, withLease := &optimistic.UpdateOptions{Conditions: optimistic.Conditions{IfTags: `"a" = 'b'`}}, &optimistic.UpdateOptions{Conditions: optimistic.Conditions{LeaseID: "x"}}
	for name, err := range map[string]error{
		"metadata, tags":       optest.ErrorOf(optimistic.Update(t.Context(), NewLastWriterWinsQueueMetadata(q.Queue("jobs")), optest.SetMeta("a", "1"), withTags)),
		"metadata, lease":      optest.ErrorOf(optimistic.Update(t.Context(), NewLastWriterWinsQueueMetadata(q.Queue("jobs")), optest.SetMeta("a", "1"), withLease)),
		"metadata, create":     optest.ErrorOf(optimistic.Create(t.Context(), NewLastWriterWinsQueueMetadata(q.Queue("jobs")), nil, nil)),
		"metadata, delete":     optest.ErrorOf(optimistic.Delete(t.Context(), NewLastWriterWinsQueueMetadata(q.Queue("jobs")), optimistic.State{}, nil)),
		"acl, operation":       optest.ErrorOf(optimistic.Update(t.Context(), NewLastWriterWinsQueueACL(q.Queue("jobs")), addPolicy, &optimistic.UpdateOptions{OperationID: "x"})),
		"acl, lease":           optest.ErrorOf(optimistic.Update(t.Context(), NewLastWriterWinsQueueACL(q.Queue("jobs")), addPolicy, withLease)),
		"properties, lease":    optest.ErrorOf(optimistic.Update(t.Context(), NewLastWriterWinsQueueService(services.QueueService()), enableLogging, withLease)),
		"properties, deletion": optest.ErrorOf(optimistic.Delete(t.Context(), NewLastWriterWinsQueueService(services.QueueService()), optimistic.State{}, nil)),
	} {
		if err == nil || errors.Is(err, optimistic.ErrOutcomeUnknown) {
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
