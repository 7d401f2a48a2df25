package optimistic

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

func setMeta(name, value string) func(context.Context, *map[string]string) error {
	return func(_ context.Context, m *map[string]string) error {
		(*m)[name] = value
		return nil
	}
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
	res, err := Update(t.Context(), MetadataOfContainer(client), setMeta("owner", "team a"), nil)
	if err != nil || !res.Changed {
		t.Fatalf("Update = %+v, %v", res, err)
	}
	requests(t, s, res, 5)
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
	v, err := Read(t.Context(), MetadataOfContainer(client), nil)
	if err != nil || v.Value["owner"] != "team a" || len(v.Value) != 1 || !v.Lineage.Has(res.WriteID) || v.ETag != res.ETag {
		t.Errorf("read %+v, %v", v, err)
	}
}

// TestATurnComparesWhatItFinds: a rival writes between our read and our turn.
func TestATurnComparesWhatItFinds(t *testing.T) {
	s, client := box(t, nil)
	attempts := 0
	res, err := Update(t.Context(), MetadataOfContainer(client), func(ctx context.Context, m *map[string]string) error {
		if attempts++; attempts == 1 {
			if _, err := Update(ctx, MetadataOfContainer(s.Container("box")), setMeta("rival", "here"), nil); err != nil {
				return err
			}
		}
		(*m)["mine"] = "too"
		return nil
	}, nil)
	if err != nil || res.Conflicts != 1 || res.Attempts != 2 {
		t.Fatalf("Update = %+v, %v", res, err)
	}
	v, err := Read(t.Context(), MetadataOfContainer(client), nil)
	if err != nil || v.Value["rival"] != "here" || v.Value["mine"] != "too" {
		t.Errorf("read %+v, %v", v, err)
	}
}

// TestATurnBindsThoseWhoCooperate: a writer that asks for no lease gets in between the comparison and the write, and is
// overwritten. The doc says so; should the service ever prevent it, this test will tell.
func TestATurnBindsThoseWhoCooperate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := box(t, &aztest.Options{Latency: func() time.Duration { return 10 * time.Millisecond }})
		s.SetFaults(aztest.Fault{Kind: aztest.Slow, Match: aztest.Op("Set Container Metadata"), Count: 1, Delay: time.Second})
		time.AfterFunc(500*time.Millisecond, func() {
			if _, err := client.SetMetadata(context.Background(), &container.SetMetadataOptions{Metadata: map[string]*string{"foreign": new("1")}}); err != nil {
				t.Error(err)
			}
		})
		if _, err := Update(t.Context(), MetadataOfContainer(client), setMeta("mine", "1"), nil); err != nil {
			t.Fatal(err)
		}
		v, err := Read(t.Context(), MetadataOfContainer(client), nil)
		if err != nil || v.Value["foreign"] != "" || v.Value["mine"] != "1" {
			t.Errorf("read %+v, %v", v, err)
		}
	})
}

func TestManyWritersOfAContainerTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := box(t, &aztest.Options{Latency: latencies(5)})
		s.SetFaults(
			aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Probability: 0.05},
			aztest.Fault{Kind: aztest.FailAfterCommit, Match: aztest.Writes, Probability: 0.03},
			aztest.Fault{Kind: aztest.LoseRequest, Match: aztest.Writes, Probability: 0.03},
		)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 10 {
					if _, err := Update(context.Background(), MetadataOfContainer(s.Container("box")), func(_ context.Context, m *map[string]string) error {
						toMap(m, append([]int{inMap(*m)[0] + 1}, 0, 0, 0))
						return nil
					}, &UpdateOptions{Attempts: -1, Elapsed: -1}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		s.SetFaults()
		v, err := Read(t.Context(), MetadataOfContainer(client), nil)
		if err != nil || inMap(v.Value)[0] != 40 {
			t.Errorf("counted %v, %v, want 40", v, err)
		}
	})
}

// TestNoTurnIsLeaked: whenever the caller gives up, the lease is given back at once, not after 15 s.
func TestNoTurnIsLeaked(t *testing.T) {
	gaveUp := errors.New("gave up")
	for after := 1 * time.Millisecond; after < 60*time.Millisecond; after += 3 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			_, client := box(t, &aztest.Options{Latency: func() time.Duration { return 10 * time.Millisecond }})
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(after, func() { cancel(gaveUp) })
			_, err := Update(ctx, MetadataOfContainer(client), setMeta("a", "1"), nil)
			if err != nil && !errors.Is(err, gaveUp) {
				t.Errorf("after %v: err = %v", after, err)
			}
			if state := leaseState(t, client); state != lease.StateTypeAvailable {
				t.Errorf("after %v: the container is %s", after, state)
			}
			v, readErr := Read(t.Context(), MetadataOfContainer(client), nil)
			if readErr != nil {
				t.Fatal(readErr)
			}
			if applied := v.Value["a"] == "1"; err == nil && !applied || err != nil && applied && !errors.Is(err, ErrOutcomeUnknown) {
				t.Errorf("after %v: err = %v, applied %t", after, err, applied)
			}
		})
	}
}

// TestATurnThatWasLeftBehindIsWaitedFor: a writer has died with the lease in hand.
func TestATurnThatWasLeftBehindIsWaitedFor(t *testing.T) {
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
		if _, err := Update(t.Context(), MetadataOfContainer(client), setMeta("a", "1"), nil); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited < 14*time.Second || waited > 17*time.Second {
			t.Errorf("waited %v, want the 15 s of the lease", waited)
		}
		if _, err := dead.AcquireLease(t.Context(), 60, nil); err != nil {
			t.Fatal(err)
		}
		_, err = Update(t.Context(), MetadataOfContainer(client), setMeta("a", "2"), nil)
		if azerr.Classify(err).Kind != azerr.Held || errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("err = %v, want it held", err)
		}
		// The holder himself may write, and keeps the lease.
		res, err := Update(t.Context(), MetadataOfContainer(client), setMeta("a", "3"), &UpdateOptions{Conditions: Conditions{LeaseID: *dead.LeaseID()}})
		if err != nil || res.Requests != 3 || leaseState(t, client) != lease.StateTypeLeased {
			t.Errorf("Update = %+v, %v", res, err)
		}
	})
}

// TestALostAnswerIsNotForgottenWhenTheTurnEnds: the write lands, its response is lost, and another client breaks the
// lease, so that the repetition is refused. The refusal says nothing about the first.
func TestALostAnswerIsNotForgottenWhenTheTurnEnds(t *testing.T) {
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
		res, err := Update(t.Context(), MetadataOfContainer(client), setMeta("a", "1"), nil)
		if err != nil || res.Attempts != 1 || res.Ambiguous != 1 || res.Resolved != 1 {
			t.Errorf("Update = %+v, %v\n%v", res, err, s.Log())
		}
	})
}

// TestAWriteThatIsLateDoesNotLandInAnothersTurn: its request arrives after the turn is over and a rival has written.
func TestAWriteThatIsLateDoesNotLandInAnothersTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := box(t, nil)
		s.SetFaults(aztest.Fault{Kind: aztest.DelayCommit, Match: aztest.Op("Set Container Metadata"), Count: 1, Delay: time.Hour})
		if _, err := Update(t.Context(), MetadataOfContainer(client), setMeta("a", "1"), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := Update(t.Context(), MetadataOfContainer(client), setMeta("a", "2"), nil); err != nil {
			t.Fatal(err)
		}
		s.Flush()
		v, err := Read(t.Context(), MetadataOfContainer(client), nil)
		if err != nil || v.Value["a"] != "2" {
			t.Errorf("read %+v, %v, want the second value", v, err)
		}
	})
}

func TestAContainerIsCreatedAndDeletedOnce(t *testing.T) {
	for name, fault := range every(aztest.Op("Create Container")) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := aztest.New(nil)
				target := MetadataOfContainer(s.Container("new"))
				s.SetFaults(fault)
				res, err := Create(t.Context(), target, map[string]string{"owner": "me"}, &WriteOptions{Sending: recreate})
				s.SetFaults()
				if err != nil || !res.Created {
					t.Fatalf("Create = %+v, %v\n%v", res, err, s.Log())
				}
				if _, err := Create(t.Context(), target, nil, nil); !errors.Is(err, ErrExists) {
					t.Errorf("a second create: %v", err)
				}
				v, err := Read(t.Context(), target, nil)
				if err != nil || v.Value["owner"] != "me" {
					t.Fatalf("read %+v, %v", v, err)
				}
				if _, err := Delete(t.Context(), target, State{ETag: `"0x1"`}, nil); !errors.Is(err, ErrConflict) {
					t.Errorf("deleting another version: %v", err)
				}
				if state := leaseState(t, s.Container("new")); state != lease.StateTypeAvailable {
					t.Errorf("the container is %s", state)
				}
				s.Reset()
				res, err = Delete(t.Context(), target, v.State, nil)
				if err != nil {
					t.Fatal(err)
				}
				requests(t, s, res, 3)
				if _, err := Delete(t.Context(), target, State{}, nil); !errors.Is(err, ErrNotFound) {
					t.Errorf("deleting what is not there: %v", err)
				}
				if _, err := Update(t.Context(), target, setMeta("a", "1"), nil); !errors.Is(err, ErrNotFound) {
					t.Errorf("updating what is not there: %v", err)
				}
			})
		})
	}
}

func TestPublicAccessAndPoliciesThatAreLeftAloneSurvive(t *testing.T) {
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
	res, err := Update(t.Context(), ACLOfContainer(client), add, nil)
	if err != nil || !res.Changed {
		t.Fatalf("Update = %+v, %v", res, err)
	}
	requests(t, s, res, 5)
	if got := s.Log()[3].Header.Get("If-Unmodified-Since"); got == "" {
		t.Error("the date is not guarded")
	}
	v, err := Read(t.Context(), ACLOfContainer(client), nil)
	want := []AccessPolicy{{ID: "readers", Expiry: at, Permissions: "r"}, {ID: "writers", Start: at, Permissions: "rw"}}
	if err != nil || v.Value.Access != container.PublicAccessTypeBlob || fmt.Sprint(v.Value.Policies) != fmt.Sprint(want) {
		t.Errorf("read %+v, %v", v, err)
	}
	// The metadata are another resource's business, and survive.
	if _, err := Update(t.Context(), MetadataOfContainer(client), setMeta("a", "1"), nil); err != nil {
		t.Fatal(err)
	}
	if after, err := Read(t.Context(), ACLOfContainer(client), nil); err != nil || !after.Value.equal(v.Value) || after.ETag == v.ETag {
		t.Errorf("read %+v, %v", after, err)
	}
}

// TestALostAnswerToAnACLIsResolvedWithinTheTurn: nobody else writes meanwhile, so sending it again is no risk.
func TestALostAnswerToAnACLIsResolvedWithinTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := box(t, nil)
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Set Container ACL"), Count: 3})
		grant := func(_ context.Context, acl *ACL) error {
			acl.Policies = append(acl.Policies, AccessPolicy{ID: "a", Permissions: "r"})
			return nil
		}
		res, err := Update(t.Context(), ACLOfContainer(client), grant, nil)
		if err != nil || res.Requests != 8 || res.Ambiguous != 0 {
			t.Errorf("Update = %+v, %v", res, err)
		}
		// Lost for good: the container has changed, and nothing shows by whom.
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Set Container ACL")})
		_, err = Update(t.Context(), ACLOfContainer(client), func(_ context.Context, acl *ACL) error { acl.Policies = nil; return nil }, nil)
		if !errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("err = %v, want unknown", err)
		}
		s.SetFaults()
		if state := leaseState(t, client); state != lease.StateTypeAvailable {
			t.Errorf("the container is %s", state)
		}
	})
}

// TestTheDateGuardsOnlyTheFirstTry: the first try lands two seconds later than the version that was read, and its answer
// is lost. The second must not stumble over the first.
func TestTheDateGuardsOnlyTheFirstTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := box(t, &aztest.Options{Latency: func() time.Duration { return time.Second }})
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Set Container ACL"), Count: 1})
		if res, err := Update(t.Context(), ACLOfContainer(client), setACL(ACL{Access: "blob"}), nil); err != nil || !res.Changed {
			t.Errorf("Update = %+v, %v\n%v", res, err, s.Log())
		}
	})
}

func TestADeletionThatIsRefusedGivesTheTurnBack(t *testing.T) {
	s, client := box(t, nil)
	v, err := Read(t.Context(), MetadataOfContainer(client), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.SetFaults(aztest.Fault{Kind: aztest.Answer, Match: aztest.Op("Delete Container"), Status: 403, Code: "AuthorizationPermissionMismatch"})
	if _, err := Delete(t.Context(), MetadataOfContainer(client), v.State, nil); azerr.Classify(err).Kind != azerr.Unauthorised {
		t.Errorf("err = %v, want it refused", err)
	}
	if state := leaseState(t, client); state != lease.StateTypeAvailable {
		t.Errorf("the container is %s", state)
	}
}

func TestContainersRefuseWhatTheyCannotBear(t *testing.T) {
	s, client := box(t, nil)
	six := ACL{Policies: make([]AccessPolicy, 6)}
	for name, err := range map[string]error{
		"tags":         errorOf(Update(t.Context(), MetadataOfContainer(client), setMeta("a", "1"), &UpdateOptions{Conditions: Conditions{IfTags: `"a" = 'b'`}})),
		"bad name":     errorOf(Update(t.Context(), MetadataOfContainer(client), setMeta("a-b", "1"), nil)),
		"acl tags":     errorOf(Update(t.Context(), ACLOfContainer(client), setACL(ACL{Access: "blob"}), &UpdateOptions{Conditions: Conditions{IfTags: `"a" = 'b'`}})),
		"operation":    errorOf(Update(t.Context(), ACLOfContainer(client), setACL(ACL{Access: "blob"}), &UpdateOptions{OperationID: "x"})),
		"six policies": errorOf(Update(t.Context(), ACLOfContainer(client), setACL(six), nil)),
		"no id":        errorOf(Update(t.Context(), ACLOfContainer(client), setACL(ACL{Policies: six.Policies[:1]}), nil)),
		"twice":        errorOf(Update(t.Context(), ACLOfContainer(client), setACL(ACL{Policies: []AccessPolicy{{ID: "a"}, {ID: "a"}}}), nil)),
		"delete acl":   errorOf(Delete(t.Context(), ACLOfContainer(client), State{}, nil)),
		"create acl":   errorOf(Create(t.Context(), ACLOfContainer(client), ACL{}, nil)),
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
