package optimistic_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
	"github.com/google/go-cmp/cmp"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/retry"
)

func TestUpdateCostsTwoRequests(t *testing.T) {
	s, client := optest.Quiet(t, `{"n":41}`)
	res, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), optest.Increment, nil)
	if err != nil || !res.Changed || res.Created || res.Attempts != 1 {
		t.Fatalf("Update = %+v, %v", res, err)
	}
	optest.Requests(t, s, res, 2)
	if got := optest.Count(t, client); got != 42 {
		t.Errorf("n = %d, want 42", got)
	}
	if res.ETag != optest.ETagOf(t, client) || res.BaseETag == "" || res.BaseETag == res.ETag {
		t.Errorf("ETag = %s on %s, the blob has %s", res.ETag, res.BaseETag, optest.ETagOf(t, client))
	}
}

func TestTheWriteCarriesItsCondition(t *testing.T) {
	s, client := optest.Quiet(t, `{"n":1}`)
	base := optest.ETagOf(t, client)
	s.Reset()
	if _, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), optest.Increment, nil); err != nil {
		t.Fatal(err)
	}
	if got := s.Log()[1].Header.Get("If-Match"); got != string(base) {
		t.Errorf("If-Match = %q, want %q", got, base)
	}
	fresh := s.BlockBlob("box", "new.json")
	s.Reset()
	if _, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](fresh), optest.Increment, &optimistic.UpdateOptions{Create: true}); err != nil {
		t.Fatal(err)
	}
	if got := s.Log()[1].Header.Get("If-None-Match"); got != "*" {
		t.Errorf("If-None-Match = %q, want *", got)
	}
}

func TestACreateCostsTwoRequests(t *testing.T) {
	s, client := optest.Quiet(t, "")
	res, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), optest.Increment, &optimistic.UpdateOptions{Create: true})
	if err != nil || !res.Changed || !res.Created || res.BaseETag != "" {
		t.Fatalf("Update = %+v, %v", res, err)
	}
	optest.Requests(t, s, res, 2)
	props, err := client.GetProperties(t.Context(), nil)
	if err != nil || *props.ContentType != "application/json" {
		t.Errorf("content type = %v, %v", props.ContentType, err)
	}
}

func TestNoChangeCostsOneRequest(t *testing.T) {
	for name, change := range map[string]func(context.Context, *optest.Counter) error{
		"value unchanged": func(context.Context, *optest.Counter) error { return nil },
		"skipped":         func(_ context.Context, c *optest.Counter) error { c.N = 99; return optimistic.ErrSkip },
		"skipped, wrapped": func(_ context.Context, c *optest.Counter) error {
			c.N = 99
			return fmt.Errorf("closed: %w", optimistic.ErrSkip)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, client := optest.Quiet(t, "{ \"n\" : 1 }\n") // not as the codec writes it: still no change
			res, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), change, nil)
			if err != nil || res.Changed {
				t.Fatalf("Update = %+v, %v", res, err)
			}
			optest.Requests(t, s, res, 1)
			if res.ETag != optest.ETagOf(t, client) {
				t.Errorf("ETag = %s, want the blob's", res.ETag)
			}
		})
	}
}

// rival writes to client n times, each time just before a write of the code under test.
func rival(t *testing.T, client *blockblob.Client, n int) func(context.Context, *optest.Counter) error {
	return func(_ context.Context, c *optest.Counter) error {
		if n > 0 {
			n--
			if _, err := optimistic.Update(context.Background(), blobs.NewJSON[optest.Counter](client), optest.Increment, nil); err != nil {
				t.Error(err)
			}
		}
		c.N++
		return nil
	}
}

func TestEachConflictCostsTwoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := optest.Quiet(t, `{"n":0}`)
		res, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), rival(t, client, 3), nil)
		if err != nil || res.Conflicts != 3 || res.Attempts != 4 {
			t.Fatalf("Update = %+v, %v", res, err)
		}
		if res.Requests != 2+3*2 || s.Requests() != 8+3*2 {
			t.Errorf("requests = %d of %d, want 8 of 14", res.Requests, s.Requests())
		}
		if got := optest.Count(t, client); got != 4 {
			t.Errorf("n = %d, want 4", got)
		}
	})
}

func TestTheBudgetEndsInAConflictWithBothETags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := optest.Quiet(t, `{"n":0}`)
		res, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), rival(t, client, 100), &optimistic.UpdateOptions{Attempts: 3})
		conflict, ok := errors.AsType[*optimistic.ConflictError](err)
		if !ok || !errors.Is(err, optimistic.ErrConflict) || errors.Is(err, optimistic.ErrExists) {
			t.Fatalf("err = %v", err)
		}
		if res.Attempts != 3 || conflict.Attempts != 3 || res.Changed {
			t.Errorf("res = %+v, conflict = %+v", res, conflict)
		}
		if conflict.Current != optest.ETagOf(t, client) || conflict.Base == "" || conflict.Base == conflict.Current || conflict.Resource != "box/n.json" {
			t.Errorf("conflict = %+v, blob at %s", conflict, optest.ETagOf(t, client))
		}
		if _, ok := errors.AsType[*azcore.ResponseError](err); !ok {
			t.Error("the service's response is not in the chain")
		}
		if got := optest.Count(t, client); got != 3 {
			t.Errorf("n = %d, want the rival's 3", got)
		}
	})
}

func TestAPinnedBaseMakesAConflictFinal(t *testing.T) {
	s, client := optest.Quiet(t, `{"n":1}`)
	stale := optest.ETagOf(t, client)
	optest.Put(t, client, `{"n":2}`)
	s.Reset()
	opts := &optimistic.UpdateOptions{Conditions: optimistic.Conditions{IfMatch: stale}}
	res, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), optest.Increment, opts)
	conflict, ok := errors.AsType[*optimistic.ConflictError](err)
	if !ok || conflict.Base != stale || conflict.Current != optest.ETagOf(t, client) || res.Attempts != 0 {
		t.Fatalf("Update = %+v, %v", res, err)
	}
	if got := optest.Count(t, client); got != 2 {
		t.Errorf("n = %d, want 2: nothing may be written", got)
	}

	opts.Conditions.IfMatch = optest.ETagOf(t, client)
	res, err = optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), rival(t, client, 1), opts)
	if !errors.Is(err, optimistic.ErrConflict) || res.Attempts != 1 {
		t.Errorf("a conflict after the read: %+v, %v; want it final", res, err)
	}
	if got := optest.Count(t, client); got != 3 {
		t.Errorf("n = %d, want the rival's 3", got)
	}
}

func TestAMissingBlobIsNotFound(t *testing.T) {
	s, client := optest.Quiet(t, "")
	for name, opts := range map[string]*optimistic.UpdateOptions{
		"plain": nil, "pinned": {Conditions: optimistic.Conditions{IfMatch: `"0x1"`}}, "must exist": {Conditions: optimistic.Conditions{IfMatch: "*"}},
	} {
		t.Run(name, func(t *testing.T) {
			s.Reset()
			res, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), optest.Increment, opts)
			missing, ok := errors.AsType[*optimistic.NotFoundError](err)
			if name == "pinned" { // by the service's answer to a write too, where it has one
				gone, ok := errors.AsType[*optimistic.ConflictError](err)
				if !ok || gone.Reason != azerr.Gone || gone.Base != `"0x1"` {
					t.Errorf("err = %v", err)
				}
			} else if !ok || !errors.Is(err, optimistic.ErrNotFound) || missing.Resource != "box/n.json" {
				t.Errorf("err = %v", err)
			}
			optest.Requests(t, s, res, 1)
		})
	}
	nowhere := s.Container("missing").NewBlockBlobClient("b")
	if _, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](nowhere), optest.Increment, &optimistic.UpdateOptions{Create: true}); !azerr.Has(err, "ContainerNotFound") {
		t.Errorf("a missing container: %v, want ContainerNotFound", err)
	}
}

func TestABlobDeletedDuringTheUpdateIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := optest.Quiet(t, `{"n":1}`)
		_, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), func(_ context.Context, c *optest.Counter) error {
			c.N++
			_, _ = client.Delete(context.Background(), nil)
			return nil
		}, &optimistic.UpdateOptions{SendOptions: optimistic.SendOptions{ConfirmConflicts: optimistic.ConfirmNever}})
		conflict, ok := errors.AsType[*optimistic.ConflictError](err)
		if !ok || conflict.Reason != azerr.Gone {
			t.Errorf("err = %v, want a conflict: gone", err)
		}
	})
}

func TestTheCallersErrorEndsTheUpdateUnchanged(t *testing.T) {
	broken := errors.New("broken")
	for name, give := range map[string]error{"plain": broken, "stopped": retry.Stop(broken)} {
		t.Run(name, func(t *testing.T) {
			s, client := optest.Quiet(t, `{"n":1}`)
			res, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), func(context.Context, *optest.Counter) error { return give }, nil)
			if err != broken {
				t.Errorf("err = %v, want the caller's own", err)
			}
			optest.Requests(t, s, res, 1)
		})
	}
}

func TestEveryRunGetsAFreshValueAndItsNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := optest.Quiet(t, `{"n":10}`)
		var seen, runs []int
		write := rival(t, client, 2)
		_, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), func(ctx context.Context, c *optest.Counter) error {
			seen, runs = append(seen, c.N), append(runs, optimistic.EarlierRuns(ctx))
			return write(ctx, c)
		}, nil)
		if err != nil || !cmp.Equal(seen, []int{10, 11, 12}) || !cmp.Equal(runs, []int{0, 1, 2}) {
			t.Errorf("seen %v in runs %v, %v", seen, runs, err)
		}
	})
}

func TestDryRunWritesNothing(t *testing.T) {
	s, client := optest.Quiet(t, `{"n":1}`)
	res, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), optest.Increment, &optimistic.UpdateOptions{DryRun: true})
	if err != nil || !res.Changed {
		t.Fatalf("Update = %+v, %v", res, err)
	}
	optest.Requests(t, s, res, 1)
	if got := optest.Count(t, client); got != 1 {
		t.Errorf("n = %d", got)
	}
}

func TestAnOperationIsAppliedOnceAcrossCalls(t *testing.T) {
	s, client := optest.Quiet(t, `{"n":0}`)
	opts := &optimistic.UpdateOptions{OperationID: "order-17"}
	first, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), optest.Increment, opts)
	if err != nil || !first.Changed || first.AlreadyApplied {
		t.Fatalf("first: %+v, %v", first, err)
	}
	if _, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), optest.Increment, nil); err != nil {
		t.Fatal(err)
	}
	s.Reset()
	second, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), optest.Increment, opts)
	if err != nil || second.Changed || !second.AlreadyApplied {
		t.Fatalf("second: %+v, %v", second, err)
	}
	optest.Requests(t, s, second, 1)
	if got := optest.Count(t, client); got != 2 {
		t.Errorf("n = %d, want 2", got)
	}
}

func TestALeasedBlobIsWrittenWithItsLeaseOnly(t *testing.T) {
	_, client := optest.Quiet(t, `{"n":1}`)
	id := leaseFor(t, client)
	if _, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), optest.Increment, nil); azerr.Classify(err).Kind != azerr.Held {
		t.Errorf("without the lease: %v, want held", err)
	}
	if _, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), optest.Increment, &optimistic.UpdateOptions{Conditions: optimistic.Conditions{LeaseID: id}}); err != nil {
		t.Errorf("with the lease: %v", err)
	}
	if got := optest.Count(t, client); got != 2 {
		t.Errorf("n = %d, want 2", got)
	}
}

func TestBadOptionsAreRefusedBeforeAnythingIsSent(t *testing.T) {
	s, client := optest.Quiet(t, `{"n":1}`)
	for name, opts := range map[string]*optimistic.UpdateOptions{
		"two ETags":           {Conditions: optimistic.Conditions{IfMatch: `"1"`, IfNoneMatch: "*"}},
		"bare ETag":           {Conditions: optimistic.Conditions{IfMatch: "0x8D"}},
		"create and must be":  {Create: true, Conditions: optimistic.Conditions{IfMatch: "*"}},
		"no place for an id":  {OperationID: "x", SendOptions: optimistic.SendOptions{NoLineage: true}},
		"negative grace":      {SendOptions: optimistic.SendOptions{Grace: -1}},
		"ETag with a newline": {Conditions: optimistic.Conditions{IfMatch: "\"a\nb\""}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), optest.Increment, opts); err == nil {
				t.Error("accepted")
			}
		})
	}
	if s.Requests() != 0 {
		t.Errorf("%d requests were sent", s.Requests())
	}
}

// TestConditionsAreEvaluatedOnTheVersionThatIsReplaced: the write can carry one ETag only, that of the version read.
func TestConditionsAreEvaluatedOnTheVersionThatIsReplaced(t *testing.T) {
	s, client := optest.Quiet(t, `{"n":1}`)
	past, future := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	for name, c := range map[string]struct {
		on      optimistic.Conditions
		reason  azerr.Reason
		refused bool
	}{
		"must not exist":        {optimistic.Conditions{IfNoneMatch: "*"}, azerr.Exists, true},
		"not this version":      {optimistic.Conditions{IfNoneMatch: optest.ETagOf(t, client)}, azerr.Changed, true},
		"not modified since":    {optimistic.Conditions{IfModifiedSince: future}, azerr.Changed, true},
		"modified since":        {optimistic.Conditions{IfUnmodifiedSince: past}, azerr.Changed, true},
		"another version":       {optimistic.Conditions{IfNoneMatch: `"1"`}, 0, false},
		"modified since, is so": {optimistic.Conditions{IfModifiedSince: past}, 0, false},
	} {
		s.Reset()
		var base optimistic.State
		res, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), func(ctx context.Context, _ *optest.Counter) error {
			base = optimistic.BaseOf(ctx)
			return nil
		}, &optimistic.UpdateOptions{Conditions: c.on})
		conflict, refused := errors.AsType[*optimistic.ConflictError](err)
		if refused != c.refused || refused && conflict.Reason != c.reason || !refused && err != nil || res.Requests != 1 {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
		if !base.Exists || base.ETag != optest.ETagOf(t, client) {
			t.Errorf("%s: the change ran on %+v", name, base)
		}
	}
}

func TestAForbiddenRequestFailsAtOnce(t *testing.T) {
	s, client := optest.Quiet(t, `{"n":1}`)
	s.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: http.StatusForbidden, Code: "AuthorizationFailure", Match: aztest.Writes})
	res, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), optest.Increment, nil)
	if azerr.Classify(err).Kind != azerr.Unauthorised {
		t.Errorf("err = %v", err)
	}
	optest.Requests(t, s, res, 2)
	if strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "update box/n.json") {
		t.Errorf("err = %q, want one line that names what", err)
	}
}

// leaseFor leases the blob for 60 s and returns the id of the lease.
func leaseFor(t *testing.T, client *blockblob.Client) string {
	t.Helper()
	holder, err := lease.NewBlobClient(client, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := holder.AcquireLease(t.Context(), 60, nil)
	if err != nil {
		t.Fatal(err)
	}
	return *resp.LeaseID
}
