package optimistic_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

func TestUpdateAppliesOnceUnderEveryFault(t *testing.T) {
	for name, fault := range optest.Every(aztest.Writes) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, client := optest.Quiet(t, `{"n":0}`)
				s.SetFaults(fault)
				res, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), optest.Increment, nil)
				if err != nil || !res.Changed {
					t.Fatalf("Update = %+v, %v\n%v", res, err, s.Log())
				}
				s.SetFaults()
				s.Flush()
				if got := optest.Count(t, client); got != 1 {
					t.Errorf("n = %d, want 1\n%v", got, s.Log())
				}
				if res.ETag != optest.ETagOf(t, client) && (res.Resolved == 0 || res.ETag != "") {
					t.Errorf("ETag = %s, the blob has %s", res.ETag, optest.ETagOf(t, client))
				}
			})
		})
	}
}

func TestUpdateUnderFaultsOfItsReads(t *testing.T) {
	for name, fault := range optest.Every(aztest.Op("Get Blob", "Get Blob Properties")) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, client := optest.Quiet(t, `{"n":0}`)
				s.SetFaults(fault)
				res, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), optest.Increment, nil)
				s.SetFaults()
				if err != nil || res.Ambiguous != 0 || optest.Count(t, client) != 1 {
					t.Errorf("Update = %+v, %v, n = %d", res, err, optest.Count(t, client))
				}
			})
		})
	}
}

// TestALostResponseIsResolvedByTheEntryInTheLineage: a rival overwrites the blob between our write, whose response was
// lost, and our look at it. The lineage proves the write, but not the version that it produced: the current version is
// the rival's.
func TestALostResponseIsResolvedByTheEntryInTheLineage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := optest.Quiet(t, `{"n":0}`)
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Count: 1})
		go func() {
			bubble.Sleep(time.Microsecond) // our write was applied, and waits to be sent again
			for range 5 {
				if _, err := optimistic.Update(context.Background(), blobs.NewJSON[optest.Counter](client), optest.Increment, nil); err != nil {
					t.Error(err)
				}
			}
		}()
		res, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), optest.Increment, nil)
		if err != nil || res.Ambiguous != 1 || res.Resolved != 1 || res.Conflicts != 0 || res.Attempts != 1 {
			t.Fatalf("Update = %+v, %v", res, err)
		}
		if got := optest.Count(t, client); got != 6 {
			t.Errorf("n = %d, want 6", got)
		}
		if res.ETag != "" || res.WriteID == "" {
			t.Errorf("ETag = %s, WriteID = %s; want no version, and the id", res.ETag, res.WriteID)
		}
	})
}

// TestAWipedLineageLeavesTheOutcomeUnknown: the same, but the rival is a writer outside azconc.
func TestAWipedLineageLeavesTheOutcomeUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := optest.Quiet(t, `{"n":0}`)
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Count: 1})
		go func() {
			bubble.Sleep(time.Microsecond)
			optest.Put(t, client, `{"n":100}`)
		}()
		_, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), optest.Increment, nil)
		unknown, ok := errors.AsType[*optimistic.UnknownError](err)
		if !ok || !errors.Is(err, optimistic.ErrOutcomeUnknown) || unknown.Resource != "box/n.json" || unknown.WriteID == "" {
			t.Fatalf("err = %v, want unknown", err)
		}
		if got := optest.Count(t, client); got != 100 {
			t.Errorf("n = %d: it was applied again", got)
		}
		if err := unknown.Resolve(t.Context()); !errors.Is(err, optimistic.ErrOutcomeUnknown) {
			t.Errorf("Resolve = %v, want it still unknown", err)
		}
	})
}

// TestAVersionOfWhichOnlyTheETagIsKnownMayHaveBeenReplacedBeforeTheResourceWasCreatedAgain: it was reported as not applied,
// because the lineage of what is there now is complete.
func TestAVersionOfWhichOnlyTheETagIsKnownMayHaveBeenReplacedBeforeTheResourceWasCreatedAgain(t *testing.T) {
	for name, open := range map[string]func(*aztest.Service) optimistic.Target[optest.Counter]{
		"blob": func(s *aztest.Service) optimistic.Target[optest.Counter] {
			return blobs.NewJSON[optest.Counter](s.BlockBlob("box", "n.json"))
		},
		"entity": func(s *aztest.Service) optimistic.Target[optest.Counter] {
			target := tables.NewEntity[optest.Counter](s.Table("orders"), "p", "r")
			target.Mode = tables.ReplaceGiven
			return target
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := aztest.New(nil)
				target := open(s)
				created, err := optimistic.Create(t.Context(), target, optest.Counter{N: 1}, nil)
				if err != nil {
					t.Fatal(err)
				}
				s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Count: 1})
				go func() {
					bubble.Sleep(time.Microsecond) // our write was applied, and waits to be sent again
					_, gone := optimistic.Delete(context.Background(), target, optimistic.State{}, nil)
					_, again := optimistic.Create(context.Background(), target, optest.Counter{N: 7}, nil)
					if err := errors.Join(gone, again); err != nil {
						t.Error(err)
					}
				}()
				base := &optimistic.Version[optest.Counter]{State: optimistic.State{Exists: true, ETag: created.ETag}}
				res, err := optimistic.Replace(t.Context(), target, base, optest.Counter{N: 2}, nil)
				if !errors.Is(err, optimistic.ErrOutcomeUnknown) || res.Changed {
					t.Errorf("Replace = %+v, %v\n%v", res, err, s.Log())
				}
			})
		})
	}
}

// TestAReplaceAtAnyVersionIsAppliedOnce: the repetition overwrote what a rival had written over ours.
func TestAReplaceAtAnyVersionIsAppliedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := optest.Quiet(t, `{"n":0}`)
		target := blobs.NewJSON[optest.Counter](client)
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Count: 1})
		go func() {
			bubble.Sleep(time.Microsecond) // our write was applied, and waits to be sent again
			if _, err := optimistic.Update(context.Background(), target, optest.Increment, nil); err != nil {
				t.Error(err)
			}
		}()
		base := &optimistic.Version[optest.Counter]{State: optimistic.State{Exists: true, ETag: azcore.ETagAny}}
		res, err := optimistic.Replace(t.Context(), target, base, optest.Counter{N: 10}, nil)
		if err != nil || !res.Changed || res.Created || res.Resolved != 1 || res.Requests != 4 {
			t.Errorf("Replace = %+v, %v", res, err)
		}
		if got := optest.Count(t, client); got != 11 {
			t.Errorf("n = %d, want 11\n%v", got, s.Log())
		}
	})
}

// TestALineageThatIsTooShortLeavesTheOutcomeUnknown: too many writes follow, and no marks are kept, because their writer
// met no others.
func TestALineageThatIsTooShortLeavesTheOutcomeUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := optest.Quiet(t, `{"n":0}`)
		if _, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](s.BlockBlob("box", "n.json")), optest.Increment, nil); err != nil {
			t.Fatal(err)
		}
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Count: 1})
		go func() {
			bubble.Sleep(time.Microsecond)
			for range protocol.LineageSize {
				if _, err := optimistic.Update(context.Background(), blobs.NewJSON[optest.Counter](client), optest.Increment, nil); err != nil {
					t.Error(err)
				}
			}
		}()
		_, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), optest.Increment, nil)
		if !errors.Is(err, optimistic.ErrOutcomeUnknown) {
			t.Errorf("err = %v, want unknown", err)
		}
		if got := optest.Count(t, client); got != 2+protocol.LineageSize {
			t.Errorf("n = %d, want %d", got, 2+protocol.LineageSize)
		}
	})
}

func TestWithoutLineageAConflictAfterALostResponseIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := optest.Quiet(t, `{"n":0}`)
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Count: 1})
		_, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), optest.Increment, &optimistic.UpdateOptions{SendOptions: optimistic.SendOptions{NoLineage: true}})
		if !errors.Is(err, optimistic.ErrOutcomeUnknown) {
			t.Errorf("err = %v, want unknown", err)
		}
		props, _ := client.GetProperties(t.Context(), nil)
		if len(props.Metadata) != 0 {
			t.Errorf("metadata = %v, want none", props.Metadata)
		}
	})
}

// TestTheOutcomeIsReportedWhenTheCallerStopsWaiting ends the context while the response is outstanding.
func TestTheOutcomeIsReportedWhenTheCallerStopsWaiting(t *testing.T) {
	gaveUp := errors.New("gave up")
	for name, tt := range map[string]struct {
		fault   aztest.Fault
		applied int
		check   func(error) bool
	}{
		"applied":     {aztest.Fault{Kind: aztest.Slow, Delay: 0}, 1, func(err error) bool { return err == nil }},
		"not applied": {aztest.Fault{Kind: aztest.Hang}, 0, func(err error) bool { return errors.Is(err, optimistic.ErrOutcomeUnknown) && errors.Is(err, gaveUp) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := aztest.New(&aztest.Options{Latency: func() time.Duration { return 4 * time.Second }})
				client := s.BlockBlob("box", "n.json")
				optest.Put(t, client, `{"n":0}`)
				tt.fault.Match = aztest.Writes
				s.SetFaults(tt.fault)
				ctx, cancel := context.WithCancelCause(t.Context())
				// The read takes 4 s, the write is carried out after 6 s and answers after 8 s.
				time.AfterFunc(7*time.Second, func() { cancel(gaveUp) })
				_, err := optimistic.Update(ctx, blobs.NewJSON[optest.Counter](client), optest.Increment, &optimistic.UpdateOptions{SendOptions: optimistic.SendOptions{Grace: 5 * time.Second}})
				if !tt.check(err) {
					t.Errorf("err = %v", err)
				}
				s.SetFaults()
				if got := optest.Count(t, client); got != tt.applied {
					t.Errorf("n = %d, want %d", got, tt.applied)
				}
			})
		})
	}
}

func TestACancelledContextSendsNothing(t *testing.T) {
	s, client := optest.Quiet(t, `{"n":0}`)
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("shutting down")
	cancel(reason)
	_, err := optimistic.Update(ctx, blobs.NewJSON[optest.Counter](client), optest.Increment, nil)
	if !errors.Is(err, reason) || errors.Is(err, optimistic.ErrOutcomeUnknown) {
		t.Errorf("err = %v, want the cause", err)
	}
	if got := optest.Count(t, client); got != 0 {
		t.Errorf("n = %d", got)
	}
	_ = s
}

// TestAnUnknownOutcomeCanBeResolvedLater: the service does not respond within the budget; when it is back, Resolve
// proves the outcome of the write.
func TestAnUnknownOutcomeCanBeResolvedLater(t *testing.T) {
	for _, landed := range []bool{true, false} {
		t.Run(fmt.Sprintf("landed %t", landed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, client := optest.Quiet(t, `{"n":0}`)
				first := aztest.Fault{Kind: aztest.LoseRequest, Match: aztest.Writes, Count: 1}
				if landed {
					first.Kind = aztest.LoseAnswer
				}
				down := aztest.Fault{Kind: aztest.LoseRequest, Skip: 0}
				reads := aztest.Fault{Kind: aztest.Slow, Match: aztest.Op("Get Blob"), Count: 1}
				s.SetFaults(reads, first, down)
				_, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), optest.Increment, nil)
				unknown, ok := errors.AsType[*optimistic.UnknownError](err)
				if !ok {
					t.Fatalf("err = %v, want unknown", err)
				}
				s.SetFaults()
				switch err := unknown.Resolve(t.Context()); {
				case landed && err != nil:
					t.Errorf("Resolve = %v, want applied", err)
				case !landed && !errors.Is(err, optimistic.ErrOutcomeUnknown):
					t.Errorf("Resolve = %v, want still open: the request may be under way", err)
				}
				if _, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), optest.Increment, nil); err != nil {
					t.Fatal(err)
				}
				if err := unknown.Resolve(t.Context()); landed && err != nil || !landed && !errors.Is(err, optimistic.ErrConflict) {
					t.Errorf("after another write: Resolve = %v", err)
				}
			})
		})
	}
}

func TestAnUnreachableServiceIsAPlainFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := optest.Quiet(t, `{"n":0}`)
		s.SetFaults(aztest.Fault{Kind: aztest.Refuse, Match: aztest.Writes})
		_, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), optest.Increment, nil)
		if err == nil || errors.Is(err, optimistic.ErrOutcomeUnknown) || errors.Is(err, optimistic.ErrConflict) {
			t.Errorf("err = %v, want a plain failure: nothing was sent", err)
		}
	})
}
