package optimistic_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/optimistic/pages"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// creation is a way to create something that must not exist, under the name "new".
type creation struct {
	name string
	run  func(ctx context.Context, s *aztest.Service, o optimistic.SendOptions) (optimistic.Result, error)
	// consume deletes the resource as another client does, and reports whether it existed.
	consume func(t *testing.T, s *aztest.Service) bool
}

func consumeBlob(t *testing.T, s *aztest.Service) bool {
	_, err := s.BlockBlob("box", "new").Delete(t.Context(), nil)
	if err != nil && !azerr.Has(err, "BlobNotFound") {
		t.Error(err)
	}
	return err == nil
}

func consumeRow(t *testing.T, s *aztest.Service) bool {
	_, err := rows(s).DeleteEntity(t.Context(), "p", "new", nil)
	if err != nil && azerr.Classify(err).Kind != azerr.NotFound {
		t.Error(err)
	}
	return err == nil
}

func rows(s *aztest.Service) *aztables.Client { return s.Table("accounts") }

var creations = []creation{
	{"create", func(ctx context.Context, s *aztest.Service, o optimistic.SendOptions) (optimistic.Result, error) {
		return optimistic.Create(ctx, blobs.NewJSON[optest.Counter](s.BlockBlob("box", "new")), optest.Counter{N: 1}, &optimistic.WriteOptions{SendOptions: o})
	}, consumeBlob},
	{"update", func(ctx context.Context, s *aztest.Service, o optimistic.SendOptions) (optimistic.Result, error) {
		return optimistic.Update(ctx, blobs.NewJSON[optest.Counter](s.BlockBlob("box", "new")), optest.Increment, &optimistic.UpdateOptions{Create: true, SendOptions: o})
	}, consumeBlob},
	{"update of a document", func(ctx context.Context, s *aztest.Service, o optimistic.SendOptions) (optimistic.Result, error) {
		d, err := optimistic.NewDocument(blobs.NewJSON[optest.Counter](s.BlockBlob("box", "new")), &optimistic.DocumentOptions{Update: optimistic.UpdateOptions{Create: true, SendOptions: o}})
		if err != nil {
			return optimistic.Result{}, err
		}
		return d.Update(ctx, optest.Increment)
	}, consumeBlob},
	{"upload", func(ctx context.Context, s *aztest.Service, o optimistic.SendOptions) (optimistic.Result, error) {
		return blobs.Upload(ctx, s.BlockBlob("box", "new"), optest.Body("x"), &blobs.UploadOptions{Conditions: optimistic.Conditions{IfNoneMatch: "*"}, SendOptions: o})
	}, consumeBlob},
	{"upload in blocks", func(ctx context.Context, s *aztest.Service, o optimistic.SendOptions) (optimistic.Result, error) {
		return blobs.Upload(ctx, s.BlockBlob("box", "new"), optest.Body("xyz"), &blobs.UploadOptions{Conditions: optimistic.Conditions{IfNoneMatch: "*"}, BlockSize: 1, SendOptions: o})
	}, consumeBlob},
	{"create pages", func(ctx context.Context, s *aztest.Service, o optimistic.SendOptions) (optimistic.Result, error) {
		return pages.Create(ctx, s.Container("box").NewPageBlobClient("new"), 512, &pages.CreateOptions{Conditions: optimistic.Conditions{IfNoneMatch: "*"}, SendOptions: o})
	}, consumeBlob},
	{"copy", func(ctx context.Context, s *aztest.Service, o optimistic.SendOptions) (optimistic.Result, error) {
		res, err := blobs.Copy(ctx, s.BlockBlob("box", "new").BlobClient(), s.BlockBlob("box", "source").BlobClient(), &blobs.CopyOptions{Conditions: optimistic.Conditions{IfNoneMatch: "*"}, SendOptions: o})
		return res.Result, err
	}, consumeBlob},
	{"insert", func(ctx context.Context, s *aztest.Service, o optimistic.SendOptions) (optimistic.Result, error) {
		return optimistic.Create(ctx, tables.NewEntity[optest.Counter](rows(s), "p", "new"), optest.Counter{N: 1}, &optimistic.WriteOptions{SendOptions: o})
	}, consumeRow},
	{"insert by an update", func(ctx context.Context, s *aztest.Service, o optimistic.SendOptions) (optimistic.Result, error) {
		return optimistic.Update(ctx, tables.NewEntity[optest.Counter](rows(s), "p", "new"), optest.Increment, &optimistic.UpdateOptions{Create: true, SendOptions: o})
	}, consumeRow},
	{"insert in a transaction", func(ctx context.Context, s *aztest.Service, o optimistic.SendOptions) (optimistic.Result, error) {
		res, err := tables.Transact(ctx, rows(s), "p", func(_ context.Context, tx *tables.Tx) error { return tx.Insert("new", optest.Counter{N: 1}) }, &tables.TransactOptions{SendOptions: o})
		return res.Result, err
	}, consumeRow},
}

// shop returns a service with the resources that the creations need, and a matcher of the requests that create.
func shop(t *testing.T) (*aztest.Service, func(*aztest.Request) bool) {
	t.Helper()
	s := aztest.New(nil)
	optest.Put(t, s.BlockBlob("box", "source"), "x")
	s.Reset()
	return s, func(r *aztest.Request) bool { return aztest.Writes(r) && r.Op != "Put Block" }
}

// missing reports whether a request with the fault is not carried out before its caller looks for the result, and no
// response says so.
func missing(f aztest.Fault) bool {
	switch f.Kind {
	case aztest.LoseRequest, aztest.Hang, aztest.Page:
		return true
	case aztest.DelayCommit, aztest.CommitAfterBreak:
		return f.Delay >= time.Hour
	case aztest.Slow:
		return f.Delay > 30*time.Second
	}
	return false
}

// TestEveryCreationUnderEveryFault: the outcome of a creation is unknown if the resource is absent, because it may have
// been created and consumed. The creation is never sent again.
func TestEveryCreationUnderEveryFault(t *testing.T) {
	for _, c := range creations {
		_, creates := shop(t)
		for name, fault := range optest.Every(creates) {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, _ := shop(t)
					s.SetFaults(fault)
					res, err := c.run(t.Context(), s, optimistic.SendOptions{TryTimeout: 30 * time.Second})
					s.SetFaults()
					if missing(fault) {
						if unknown, ok := errors.AsType[*optimistic.UnknownError](err); !ok || unknown.Why != protocol.WhyAbsent {
							t.Errorf("%+v, %v, want an unknown outcome\n%v", res, err, s.Log())
						}
						sent := 0
						for _, r := range s.Log() {
							if creates(&r) {
								sent++
							}
						}
						if sent != 1 {
							t.Errorf("it was sent %d times\n%v", sent, s.Log())
						}
						return
					}
					if err != nil || !res.Changed {
						t.Errorf("%+v, %v\n%v", res, err, s.Log())
					}
					if !c.consume(t, s) {
						t.Error("it is not there")
					}
				})
			})
		}
	}
}

// TestAConsumedResourceIsNotCreatedAgain: the response to a creation is lost, and a consumer deletes what was created
// before its creator looks. With Recreate it is created a second time.
func TestAConsumedResourceIsNotCreatedAgain(t *testing.T) {
	for _, c := range creations {
		for _, kind := range []aztest.FaultKind{aztest.LoseAnswer, aztest.FailAfterCommit, aztest.PageAfterCommit} {
			for _, again := range []bool{false, true} {
				name := c.name + "/" + string(kind)
				if again {
					name += "/recreate"
				}
				t.Run(name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s, creates := shop(t)
						s.SetFaults(aztest.Fault{Kind: kind, Match: creates, Count: 1})
						go func() {
							bubble.Sleep(time.Microsecond)
							if !c.consume(t, s) {
								t.Error("nothing was created")
							}
						}()
						res, err := c.run(t.Context(), s, optimistic.SendOptions{Recreate: again})
						again := again && c.name != "upload in blocks" // whose blocks went with the blob
						if created := c.consume(t, s); created != again {
							t.Errorf("it was created again: %t, want %t: %+v, %v\n%v", created, again, res, err, s.Log())
						}
						if again && err != nil || !again && !errors.Is(err, optimistic.ErrOutcomeUnknown) {
							t.Errorf("%+v, %v\n%v", res, err, s.Log())
						}
					})
				})
			}
		}
	}
}

// TestACreationThatArrivesLateCanBeResolved: the request is carried out after its creator has given up.
func TestACreationThatArrivesLateCanBeResolved(t *testing.T) {
	for _, c := range creations {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, creates := shop(t)
				s.SetFaults(aztest.Fault{Kind: aztest.CommitAfterBreak, Match: creates, Count: 1, Delay: time.Hour})
				_, err := c.run(t.Context(), s, optimistic.SendOptions{})
				unknown, ok := errors.AsType[*optimistic.UnknownError](err)
				if !ok {
					t.Fatalf("err = %v, want unknown", err)
				}
				if err := unknown.Resolve(t.Context()); !errors.Is(err, optimistic.ErrOutcomeUnknown) {
					t.Errorf("before it has arrived: %v", err)
				}
				bubble.Sleep(time.Hour)
				if err := unknown.Resolve(t.Context()); err != nil {
					t.Errorf("after it has arrived: %v", err)
				}
				if !c.consume(t, s) {
					t.Error("it is not there")
				}
				if err := unknown.Resolve(t.Context()); !errors.Is(err, optimistic.ErrOutcomeUnknown) {
					t.Errorf("after it was consumed: %v", err)
				}
			})
		})
	}
}

// TestACreationIsRepeatedWhenTheServiceWasBusy: ServerBusy says that the request was not carried out. A proxy's page
// with the same status does not.
func TestACreationIsRepeatedWhenTheServiceWasBusy(t *testing.T) {
	for _, c := range creations {
		for _, f := range []aztest.Fault{{Kind: aztest.Throttle}, {Kind: aztest.Page, Status: 503}} {
			synctest.Test(t, func(t *testing.T) {
				s, creates := shop(t)
				f.Match, f.Count = creates, 2
				s.SetFaults(f)
				res, err := c.run(t.Context(), s, optimistic.SendOptions{})
				if busy := f.Kind == aztest.Throttle; (err == nil) != busy || !busy && !errors.Is(err, optimistic.ErrOutcomeUnknown) {
					t.Errorf("%s, %s: %+v, %v", c.name, f.Kind, res, err)
				}
			})
		}
	}
}

// TestATransactionThatDependsOnAVersionIsSentAgain: the condition on the entity that it changes prevents a second
// application of the whole, so it is sent again, even if the created entity has been consumed.
func TestATransactionThatDependsOnAVersionIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, creates := shop(t)
		if _, err := optimistic.Create(t.Context(), tables.NewEntity[optest.Counter](rows(s), "p", "sum"), optest.Counter{}, nil); err != nil {
			t.Fatal(err)
		}
		s.SetFaults(aztest.Fault{Kind: aztest.LoseRequest, Match: creates, Count: 1})
		run := func() error {
			_, err := tables.Transact(t.Context(), rows(s), "p", func(ctx context.Context, tx *tables.Tx) error {
				var sum optest.Counter
				if _, err := tx.Get(ctx, "sum", &sum); err != nil {
					return err
				}
				sum.N++
				return errors.Join(tx.Put("sum", sum), tx.Insert("new", optest.Counter{N: 1}))
			}, nil)
			return err
		}
		if err := run(); err != nil || !consumeRow(t, s) {
			t.Errorf("request lost: %v", err)
		}
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: creates, Count: 1})
		time.AfterFunc(time.Microsecond, func() { consumeRow(t, s) })
		if err := run(); err != nil || consumeRow(t, s) || optest.Number(t, rows(s), "sum") != 2 {
			t.Errorf("response lost: %v, sum %d", err, optest.Number(t, rows(s), "sum"))
		}
	})
}

// TestAServiceThatIsBusyLeavesNothingUnknown: it has not carried out what it refuses, however often it does so.
func TestAServiceThatIsBusyLeavesNothingUnknown(t *testing.T) {
	for _, c := range creations {
		synctest.Test(t, func(t *testing.T) {
			s, creates := shop(t)
			s.SetFaults(aztest.Fault{Kind: aztest.Throttle, Match: creates})
			res, err := c.run(t.Context(), s, optimistic.SendOptions{})
			if !azerr.Has(err, "ServerBusy") || errors.Is(err, optimistic.ErrOutcomeUnknown) || res.Ambiguous != 0 {
				t.Errorf("%s: %+v, %v", c.name, res, err)
			}
		})
	}
}
