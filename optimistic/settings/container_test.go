package settings

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

func box(t *testing.T, o *aztest.Options) (*aztest.Service, *container.Client) {
	t.Helper()
	s := aztest.New(o)
	s.BlockBlob("box", "any") // makes the container
	return s, s.Container("box")
}

func leaseState(t *testing.T, client *container.Client) lease.StateType {
	t.Helper()
	p, err := client.GetProperties(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return *p.LeaseState
}

func TestContainerMetadataIsWrittenInATurn(t *testing.T) {
	s, client := box(t, nil)
	res, err := optimistic.Update(t.Context(), NewContainerMetadata(client), optest.SetMeta("owner", "team a"), nil)
	if err != nil || !res.Changed {
		t.Fatalf("Update = %+v, %v", res, err)
	}
	optest.Requests(t, s, res, 5)
	var ops []string
	for _, r := range s.Log() {
		ops = append(ops, r.Op)
	}
	if got := fmt.Sprint(ops); got != "[Get Container Properties Acquire Container Lease Get Container Properties Set Container Metadata Release Container Lease]" {
		t.Errorf("sent %s", got)
	}
	log := s.Log()
	id := log[1].Header.Get("X-Ms-Proposed-Lease-Id")
	if id == "" || log[1].Header.Get("X-Ms-Lease-Duration") != "15" || log[3].Header.Get("X-Ms-Lease-Id") != id || log[4].Header.Get("X-Ms-Lease-Id") != id {
		t.Errorf("the lease %s is not carried through: %v", id, log)
	}
	if state := leaseState(t, client); state != lease.StateTypeAvailable {
		t.Errorf("the container is %s", state)
	}
	v, err := metadataTarget{NewContainerMetadata(client)}.Read(t.Context())
	if err != nil || v.Value["owner"] != "team a" || len(v.Value) != 1 || !v.Lineage.Has(res.WriteID) || v.ETag != res.ETag {
		t.Errorf("read %+v, %v", v, err)
	}
}

func TestAnyVersionOfAContainersMetadataIsReplaced(t *testing.T) {
	s, client := box(t, nil)
	target := NewContainerMetadata(client)
	base := &optimistic.Version[map[string]string]{State: optimistic.State{Exists: true, ETag: "*"}}
	res, err := optimistic.Replace(t.Context(), target, base, map[string]string{"owner": "ann"}, nil)
	if err != nil || !res.Changed {
		t.Fatalf("%+v, %v", res, err)
	}
	optest.Requests(t, s, res, 5)
	if v, err := optimistic.Read(t.Context(), target, nil); err != nil || v.Value["owner"] != "ann" || v.ETag != res.ETag {
		t.Errorf("%+v, %v; Replace said %+v", v, err, res)
	}
}

// TestATurnNoticesAnEarlierWrite: a rival writes between our read and our turn.
func TestATurnNoticesAnEarlierWrite(t *testing.T) {
	s, client := box(t, nil)
	attempts := 0
	res, err := optimistic.Update(t.Context(), NewContainerMetadata(client), func(ctx context.Context, m *map[string]string) error {
		if attempts++; attempts == 1 {
			if _, err := optimistic.Update(ctx, NewContainerMetadata(s.Container("box")), optest.SetMeta("rival", "here"), nil); err != nil {
				return err
			}
		}
		(*m)["mine"] = "too"
		return nil
	}, nil)
	if err != nil || res.Conflicts != 1 || res.Attempts != 2 {
		t.Fatalf("Update = %+v, %v", res, err)
	}
	v, err := optimistic.Read(t.Context(), NewContainerMetadata(client), nil)
	if err != nil || v.Value["rival"] != "here" || v.Value["mine"] != "too" {
		t.Errorf("read %+v, %v", v, err)
	}
}

// TestATurnBindsOnlyWritersThatTakeTurns: a writer that asks for no lease gets in between the comparison and the write,
// and is overwritten. The doc comment says so; if the service ever prevents it, this test fails.
func TestATurnBindsOnlyWritersThatTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := box(t, &aztest.Options{Latency: func() time.Duration { return 10 * time.Millisecond }})
		s.SetFaults(aztest.Fault{Kind: aztest.Slow, Match: aztest.Op("Set Container Metadata"), Count: 1, Delay: time.Second})
		time.AfterFunc(500*time.Millisecond, func() {
			if _, err := client.SetMetadata(context.Background(), &container.SetMetadataOptions{Metadata: map[string]*string{"foreign": new("1")}}); err != nil {
				t.Error(err)
			}
		})
		if _, err := optimistic.Update(t.Context(), NewContainerMetadata(client), optest.SetMeta("mine", "1"), nil); err != nil {
			t.Fatal(err)
		}
		v, err := optimistic.Read(t.Context(), NewContainerMetadata(client), nil)
		if err != nil || v.Value["foreign"] != "" || v.Value["mine"] != "1" {
			t.Errorf("read %+v, %v", v, err)
		}
	})
}

func TestManyWritersOfAContainerTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := box(t, &aztest.Options{Latency: optest.Latencies(5)})
		s.SetFaults(
			aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Probability: 0.05},
			aztest.Fault{Kind: aztest.FailAfterCommit, Match: aztest.Writes, Probability: 0.03},
			aztest.Fault{Kind: aztest.LoseRequest, Match: aztest.Writes, Probability: 0.03},
		)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 10 {
					if _, err := optimistic.Update(context.Background(), NewContainerMetadata(s.Container("box")), func(_ context.Context, m *map[string]string) error {
						(*m)["n"] += "x"
						return nil
					}, &optimistic.UpdateOptions{Attempts: -1, Elapsed: -1}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		s.SetFaults()
		v, err := optimistic.Read(t.Context(), NewContainerMetadata(client), nil)
		if err != nil || len(v.Value["n"]) != 40 {
			t.Errorf("counted %v, %v, want 40", v, err)
		}
	})
}

// TestACancelledWriteReleasesItsLease: whenever the caller gives up, the lease is released at once, not after 15 s.
func TestACancelledWriteReleasesItsLease(t *testing.T) {
	gaveUp := errors.New("gave up")
	for after := 1 * time.Millisecond; after < 60*time.Millisecond; after += 3 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			_, client := box(t, &aztest.Options{Latency: func() time.Duration { return 10 * time.Millisecond }})
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(after, func() { cancel(gaveUp) })
			_, err := optimistic.Update(ctx, NewContainerMetadata(client), optest.SetMeta("a", "1"), nil)
			if err != nil && !errors.Is(err, gaveUp) {
				t.Errorf("after %v: err = %v", after, err)
			}
			if state := leaseState(t, client); state != lease.StateTypeAvailable {
				t.Errorf("after %v: the container is %s", after, state)
			}
			v, readErr := optimistic.Read(t.Context(), NewContainerMetadata(client), nil)
			if readErr != nil {
				t.Fatal(readErr)
			}
			if applied := v.Value["a"] == "1"; err == nil && !applied || err != nil && applied && !errors.Is(err, optimistic.ErrOutcomeUnknown) {
				t.Errorf("after %v: err = %v, applied %t", after, err, applied)
			}
		})
	}
}

// TestAWriterWaitsForAnAbandonedTurn: a writer has crashed while it held the lease.
func TestAWriterWaitsForAnAbandonedTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := box(t, nil)
		dead, err := lease.NewContainerClient(client, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := dead.AcquireLease(t.Context(), 15, nil); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := optimistic.Update(t.Context(), NewContainerMetadata(client), optest.SetMeta("a", "1"), nil); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited < 14*time.Second || waited > 17*time.Second {
			t.Errorf("waited %v, want the 15 s of the lease", waited)
		}
		if _, err := dead.AcquireLease(t.Context(), 60, nil); err != nil {
			t.Fatal(err)
		}
		_, err = optimistic.Update(t.Context(), NewContainerMetadata(client), optest.SetMeta("a", "2"), nil)
		if azerr.Classify(err).Kind != azerr.Held || errors.Is(err, optimistic.ErrOutcomeUnknown) {
			t.Errorf("err = %v, want it held", err)
		}
		// The holder may write, and keeps the lease.
		res, err := optimistic.Update(t.Context(), NewContainerMetadata(client), optest.SetMeta("a", "3"), &optimistic.UpdateOptions{Conditions: optimistic.Conditions{LeaseID: *dead.LeaseID()}})
		if err != nil || res.Requests != 3 || leaseState(t, client) != lease.StateTypeLeased {
			t.Errorf("Update = %+v, %v", res, err)
		}
	})
}

// TestALostResponseIsNotForgottenWhenTheTurnEnds: the write lands, its response is lost, and another client breaks the
// lease, so that the repetition is refused. The refusal says nothing about the first.
func TestALostResponseIsNotForgottenWhenTheTurnEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := box(t, nil)
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Set Container Metadata"), Count: 1})
		go func() {
			bubble.Sleep(time.Microsecond)
			breaker, err := lease.NewContainerClient(client, nil)
			if err != nil {
				t.Error(err)
			}
			if _, err := breaker.BreakLease(context.Background(), &lease.ContainerBreakOptions{BreakPeriod: new(int32(0))}); err != nil {
				t.Error(err)
			}
		}()
		res, err := optimistic.Update(t.Context(), NewContainerMetadata(client), optest.SetMeta("a", "1"), nil)
		if err != nil || res.Attempts != 1 || res.Ambiguous != 1 || res.Resolved != 1 {
			t.Errorf("Update = %+v, %v\n%v", res, err, s.Log())
		}
	})
}

// TestADelayedWriteIsNotAppliedInALaterTurn: its request arrives after the turn is over and a rival has written.
func TestADelayedWriteIsNotAppliedInALaterTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := box(t, nil)
		s.SetFaults(aztest.Fault{Kind: aztest.DelayCommit, Match: aztest.Op("Set Container Metadata"), Count: 1, Delay: time.Hour})
		if _, err := optimistic.Update(t.Context(), NewContainerMetadata(client), optest.SetMeta("a", "1"), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := optimistic.Update(t.Context(), NewContainerMetadata(client), optest.SetMeta("a", "2"), nil); err != nil {
			t.Fatal(err)
		}
		s.Flush()
		v, err := optimistic.Read(t.Context(), NewContainerMetadata(client), nil)
		if err != nil || v.Value["a"] != "2" {
			t.Errorf("read %+v, %v, want the second value", v, err)
		}
	})
}

func TestAContainerIsCreatedAndDeletedOnce(t *testing.T) {
	for name, fault := range optest.Every(aztest.Op("Create Container")) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := aztest.New(nil)
				target := NewContainerMetadata(s.Container("new"))
				s.SetFaults(fault)
				res, err := optimistic.Create(t.Context(), target, map[string]string{"owner": "me"}, &optimistic.WriteOptions{SendOptions: optest.Recreate})
				s.SetFaults()
				if err != nil || !res.Created {
					t.Fatalf("Create = %+v, %v\n%v", res, err, s.Log())
				}
				if _, err := optimistic.Create(t.Context(), target, nil, nil); !errors.Is(err, optimistic.ErrExists) {
					t.Errorf("a second create: %v", err)
				}
				v, err := optimistic.Read(t.Context(), target, nil)
				if err != nil || v.Value["owner"] != "me" {
					t.Fatalf("read %+v, %v", v, err)
				}
				if _, err := optimistic.Delete(t.Context(), target, optimistic.State{ETag: `"0x1"`}, nil); !errors.Is(err, optimistic.ErrConflict) {
					t.Errorf("deleting another version: %v", err)
				}
				if state := leaseState(t, s.Container("new")); state != lease.StateTypeAvailable {
					t.Errorf("the container is %s", state)
				}
				s.Reset()
				res, err = optimistic.Delete(t.Context(), target, v.State, nil)
				if err != nil {
					t.Fatal(err)
				}
				optest.Requests(t, s, res, 3)
				if _, err := optimistic.Delete(t.Context(), target, optimistic.State{}, nil); err != nil {
					t.Errorf("deleting a container that is being deleted: %v", err)
				}
				if _, err := optimistic.Delete(t.Context(), NewContainerMetadata(s.Container("other")), optimistic.State{}, nil); !errors.Is(err, optimistic.ErrNotFound) {
					t.Errorf("deleting a missing container: %v", err)
				}
				if _, err := optimistic.Update(t.Context(), target, optest.SetMeta("a", "1"), nil); !errors.Is(err, optimistic.ErrNotFound) {
					t.Errorf("updating a missing container: %v", err)
				}
			})
		})
	}
}

func TestUnchangedPublicAccessAndPoliciesSurvive(t *testing.T) {
	s, client := box(t, nil)
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	_, err := client.SetAccessPolicy(t.Context(), &container.SetAccessPolicyOptions{
		Access: new(container.PublicAccessTypeBlob),
		ContainerACL: []*container.SignedIdentifier{
			{ID: new("readers"), AccessPolicy: &container.AccessPolicy{Expiry: &at, Permission: new("r")}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Reset()
	add := func(_ context.Context, acl *ACL) error {
		acl.Policies = append(acl.Policies, AccessPolicy{ID: "writers", Permissions: "rw", Start: at})
		return nil
	}
	res, err := optimistic.Update(t.Context(), NewContainerACL(client), add, nil)
	if err != nil || !res.Changed {
		t.Fatalf("Update = %+v, %v", res, err)
	}
	optest.Requests(t, s, res, 5)
	if got := s.Log()[3].Header.Get("If-Unmodified-Since"); got == "" {
		t.Error("the date is not guarded")
	}
	v, err := optimistic.Read(t.Context(), NewContainerACL(client), nil)
	want := []AccessPolicy{{ID: "readers", Expiry: at, Permissions: "r"}, {ID: "writers", Start: at, Permissions: "rw"}}
	if err != nil || v.Value.Access != container.PublicAccessTypeBlob || fmt.Sprint(v.Value.Policies) != fmt.Sprint(want) {
		t.Errorf("read %+v, %v", v, err)
	}
	// The metadata are another resource's business, and survive.
	if _, err := optimistic.Update(t.Context(), NewContainerMetadata(client), optest.SetMeta("a", "1"), nil); err != nil {
		t.Fatal(err)
	}
	if after, err := optimistic.Read(t.Context(), NewContainerACL(client), nil); err != nil || !after.Value.equal(v.Value) || after.ETag == v.ETag {
		t.Errorf("read %+v, %v", after, err)
	}
}

// TestALostResponseToAnACLIsResolvedWithinTheTurn: nobody else writes meanwhile, so sending it again is no risk.
func TestALostResponseToAnACLIsResolvedWithinTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := box(t, nil)
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Set Container ACL"), Count: 3})
		grant := func(_ context.Context, acl *ACL) error {
			acl.Policies = append(acl.Policies, AccessPolicy{ID: "a", Permissions: "r"})
			return nil
		}
		res, err := optimistic.Update(t.Context(), NewContainerACL(client), grant, nil)
		if err != nil || res.Requests != 8 || res.Ambiguous != 0 {
			t.Errorf("Update = %+v, %v", res, err)
		}
		// Lost for good: the container has changed, and nothing shows by whom.
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Set Container ACL")})
		_, err = optimistic.Update(t.Context(), NewContainerACL(client), func(_ context.Context, acl *ACL) error { acl.Policies = nil; return nil }, nil)
		if !errors.Is(err, optimistic.ErrOutcomeUnknown) {
			t.Errorf("err = %v, want unknown", err)
		}
		s.SetFaults()
		if state := leaseState(t, client); state != lease.StateTypeAvailable {
			t.Errorf("the container is %s", state)
		}
	})
}

// TestTheDateGuardsOnlyTheFirstTry: the first try lands two seconds later than the version that was read, and its
// response is lost. The second must not fail because of the first.
func TestTheDateGuardsOnlyTheFirstTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := box(t, &aztest.Options{Latency: func() time.Duration { return time.Second }})
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Set Container ACL"), Count: 1})
		if res, err := optimistic.Update(t.Context(), NewContainerACL(client), setACL(ACL{Access: "blob"}), nil); err != nil || !res.Changed {
			t.Errorf("Update = %+v, %v\n%v", res, err, s.Log())
		}
	})
}

func TestARefusedDeletionEndsTheTurn(t *testing.T) {
	s, client := box(t, nil)
	v, err := optimistic.Read(t.Context(), NewContainerMetadata(client), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.SetFaults(aztest.Fault{Kind: aztest.Answer, Match: aztest.Op("Delete Container"), Status: 403, Code: "AuthorizationPermissionMismatch"})
	if _, err := optimistic.Delete(t.Context(), NewContainerMetadata(client), v.State, nil); azerr.Classify(err).Kind != azerr.Unauthorised {
		t.Errorf("err = %v, want it refused", err)
	}
	if state := leaseState(t, client); state != lease.StateTypeAvailable {
		t.Errorf("the container is %s", state)
	}
}

func TestContainersRefuseInvalidChanges(t *testing.T) {
	s, client := box(t, nil)
	six := ACL{Policies: make([]AccessPolicy, 6)}
	for name, err := range map[string]error{
		"tags":         optest.ErrorOf(optimistic.Update(t.Context(), NewContainerMetadata(client), optest.SetMeta("a", "1"), &optimistic.UpdateOptions{Conditions: optimistic.Conditions{IfTags: `"a" = 'b'`}})),
		"bad name":     optest.ErrorOf(optimistic.Update(t.Context(), NewContainerMetadata(client), optest.SetMeta("a-b", "1"), nil)),
		"acl tags":     optest.ErrorOf(optimistic.Update(t.Context(), NewContainerACL(client), setACL(ACL{Access: "blob"}), &optimistic.UpdateOptions{Conditions: optimistic.Conditions{IfTags: `"a" = 'b'`}})),
		"operation":    optest.ErrorOf(optimistic.Update(t.Context(), NewContainerACL(client), setACL(ACL{Access: "blob"}), &optimistic.UpdateOptions{OperationID: "x"})),
		"six policies": optest.ErrorOf(optimistic.Update(t.Context(), NewContainerACL(client), setACL(six), nil)),
		"no id":        optest.ErrorOf(optimistic.Update(t.Context(), NewContainerACL(client), setACL(ACL{Policies: six.Policies[:1]}), nil)),
		"twice":        optest.ErrorOf(optimistic.Update(t.Context(), NewContainerACL(client), setACL(ACL{Policies: []AccessPolicy{{ID: "a"}, {ID: "a"}}}), nil)),
		"delete acl":   optest.ErrorOf(optimistic.Delete(t.Context(), NewContainerACL(client), optimistic.State{}, nil)),
		"create acl":   optest.ErrorOf(optimistic.Create(t.Context(), NewContainerACL(client), ACL{}, nil)),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, r := range s.Log() {
		if aztest.Writes(&r) {
			t.Errorf("sent %v", r)
		}
	}
}

func setACL(acl ACL) func(context.Context, *ACL) error {
	return func(_ context.Context, v *ACL) error {
		*v = acl
		return nil
	}
}
