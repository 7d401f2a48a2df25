package optimistic

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
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/google/go-cmp/cmp"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/retry"
)

func body(content string) streamingBody { return streaming.NopCloser(strings.NewReader(content)) }

type streamingBody = interface {
	Read(p []byte) (int, error)
	Seek(offset int64, whence int) (int64, error)
	Close() error
}

func TestUpdateCostsTwoRequests(t *testing.T) {
	s, client := quiet(t, `{"n":41}`)
	res, err := Update(t.Context(), JSONBlob[counter](client), increment, nil)
	if err != nil || !res.Changed || res.Created || res.Attempts != 1 {
		t.Fatalf("Update = %+v, %v", res, err)
	}
	requests(t, s, res, 2)
	if got := count(t, client); got != 42 {
		t.Errorf("n = %d, want 42", got)
	}
	if res.ETag != etagOf(t, client) || res.BaseETag == "" || res.BaseETag == res.ETag {
		t.Errorf("ETag = %s on %s, the blob has %s", res.ETag, res.BaseETag, etagOf(t, client))
	}
}

func TestTheWriteCarriesItsCondition(t *testing.T) {
	s, client := quiet(t, `{"n":1}`)
	base := etagOf(t, client)
	s.Reset()
	if _, err := Update(t.Context(), JSONBlob[counter](client), increment, nil); err != nil {
		t.Fatal(err)
	}
	if got := s.Log()[1].Header.Get("If-Match"); got != string(base) {
		t.Errorf("If-Match = %q, want %q", got, base)
	}
	fresh := s.BlockBlob("box", "new.json")
	s.Reset()
	if _, err := Update(t.Context(), JSONBlob[counter](fresh), increment, &UpdateOptions{Create: true}); err != nil {
		t.Fatal(err)
	}
	if got := s.Log()[1].Header.Get("If-None-Match"); got != "*" {
		t.Errorf("If-None-Match = %q, want *", got)
	}
}

func TestACreateCostsTwoRequests(t *testing.T) {
	s, client := quiet(t, "")
	res, err := Update(t.Context(), JSONBlob[counter](client), increment, &UpdateOptions{Create: true})
	if err != nil || !res.Changed || !res.Created || res.BaseETag != "" {
		t.Fatalf("Update = %+v, %v", res, err)
	}
	requests(t, s, res, 2)
	props, err := client.GetProperties(t.Context(), nil)
	if err != nil || *props.ContentType != "application/json" {
		t.Errorf("content type = %v, %v", props.ContentType, err)
	}
}

func TestNoChangeCostsOneRequest(t *testing.T) {
	for name, change := range map[string]func(context.Context, *counter) error{
		"value unchanged": func(context.Context, *counter) error { return nil },
		"skipped":         func(_ context.Context, c *counter) error { c.N = 99; return ErrSkip },
		"skipped, wrapped": func(_ context.Context, c *counter) error {
			c.N = 99
			return fmt.Errorf("closed: %w", ErrSkip)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, client := quiet(t, "{ \"n\" : 1 }\n") // not as the codec writes it: still no change
			res, err := Update(t.Context(), JSONBlob[counter](client), change, nil)
			if err != nil || res.Changed {
				t.Fatalf("Update = %+v, %v", res, err)
			}
			requests(t, s, res, 1)
			if res.ETag != etagOf(t, client) {
				t.Errorf("ETag = %s, want the blob's", res.ETag)
			}
		})
	}
}

// rival writes to client n times, each time just before a write of the code under test.
func rival(t *testing.T, client *blockblob.Client, n int) func(context.Context, *counter) error {
	return func(_ context.Context, c *counter) error {
		if n > 0 {
			n--
			if _, err := Update(context.Background(), JSONBlob[counter](client), increment, nil); err != nil {
				t.Error(err)
			}
		}
		c.N++
		return nil
	}
}

func TestEachConflictCostsTwoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := quiet(t, `{"n":0}`)
		res, err := Update(t.Context(), JSONBlob[counter](client), rival(t, client, 3), nil)
		if err != nil || res.Conflicts != 3 || res.Attempts != 4 {
			t.Fatalf("Update = %+v, %v", res, err)
		}
		if res.Requests != 2+3*2 || s.Requests() != 8+3*2 {
			t.Errorf("requests = %d of %d, want 8 of 14", res.Requests, s.Requests())
		}
		if got := count(t, client); got != 4 {
			t.Errorf("n = %d, want 4", got)
		}
	})
}

func TestTheBudgetEndsInAConflictWithBothETags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := quiet(t, `{"n":0}`)
		res, err := Update(t.Context(), JSONBlob[counter](client), rival(t, client, 100), &UpdateOptions{Attempts: 3})
		conflict, ok := errors.AsType[*ConflictError](err)
		if !ok || !errors.Is(err, ErrConflict) || errors.Is(err, ErrExists) {
			t.Fatalf("err = %v", err)
		}
		if res.Attempts != 3 || conflict.Attempts != 3 || res.Changed {
			t.Errorf("res = %+v, conflict = %+v", res, conflict)
		}
		if conflict.Current != etagOf(t, client) || conflict.Base == "" || conflict.Base == conflict.Current || conflict.Resource != "box/n.json" {
			t.Errorf("conflict = %+v, blob at %s", conflict, etagOf(t, client))
		}
		if _, ok := errors.AsType[*azcore.ResponseError](err); !ok {
			t.Error("the service's answer is not in the chain")
		}
		if got := count(t, client); got != 3 {
			t.Errorf("n = %d, want the rival's 3", got)
		}
	})
}

func TestAPinnedBaseMakesAConflictFinal(t *testing.T) {
	s, client := quiet(t, `{"n":1}`)
	stale := etagOf(t, client)
	put(t, client, `{"n":2}`)
	s.Reset()
	opts := &UpdateOptions{Conditions: Conditions{IfMatch: stale}}
	res, err := Update(t.Context(), JSONBlob[counter](client), increment, opts)
	conflict, ok := errors.AsType[*ConflictError](err)
	if !ok || conflict.Base != stale || conflict.Current != etagOf(t, client) || res.Attempts != 0 {
		t.Fatalf("Update = %+v, %v", res, err)
	}
	if got := count(t, client); got != 2 {
		t.Errorf("n = %d, want 2: nothing may be written", got)
	}

	opts.Conditions.IfMatch = etagOf(t, client)
	res, err = Update(t.Context(), JSONBlob[counter](client), rival(t, client, 1), opts)
	if !errors.Is(err, ErrConflict) || res.Attempts != 1 {
		t.Errorf("a conflict after the read: %+v, %v; want it final", res, err)
	}
	if got := count(t, client); got != 3 {
		t.Errorf("n = %d, want the rival's 3", got)
	}
}

func TestAMissingBlobIsNotFound(t *testing.T) {
	s, client := quiet(t, "")
	for name, opts := range map[string]*UpdateOptions{
		"plain": nil, "pinned": {Conditions: Conditions{IfMatch: `"0x1"`}}, "must exist": {Conditions: Conditions{IfMatch: "*"}},
	} {
		t.Run(name, func(t *testing.T) {
			s.Reset()
			res, err := Update(t.Context(), JSONBlob[counter](client), increment, opts)
			missing, ok := errors.AsType[*NotFoundError](err)
			if !ok || !errors.Is(err, ErrNotFound) || missing.Resource != "box/n.json" {
				t.Errorf("err = %v", err)
			}
			requests(t, s, res, 1)
		})
	}
	nowhere := s.Container("missing").NewBlockBlobClient("b")
	if _, err := Update(t.Context(), JSONBlob[counter](nowhere), increment, &UpdateOptions{Create: true}); !azerr.Has(err, "ContainerNotFound") {
		t.Errorf("a missing container: %v, want ContainerNotFound", err)
	}
}

func TestABlobDeletedUnderTheUpdateIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := quiet(t, `{"n":1}`)
		_, err := Update(t.Context(), JSONBlob[counter](client), func(_ context.Context, c *counter) error {
			c.N++
			_, _ = client.Delete(context.Background(), nil)
			return nil
		}, &UpdateOptions{Sending: Sending{TrustConflicts: true}})
		conflict, ok := errors.AsType[*ConflictError](err)
		if !ok || conflict.Reason != azerr.Gone {
			t.Errorf("err = %v, want a conflict: gone", err)
		}
	})
}

func TestTheCallersErrorEndsTheUpdateAsItIs(t *testing.T) {
	broken := errors.New("broken")
	for name, give := range map[string]error{"plain": broken, "stopped": retry.Stop(broken)} {
		t.Run(name, func(t *testing.T) {
			s, client := quiet(t, `{"n":1}`)
			res, err := Update(t.Context(), JSONBlob[counter](client), func(context.Context, *counter) error { return give }, nil)
			if err != broken {
				t.Errorf("err = %v, want the caller's own", err)
			}
			requests(t, s, res, 1)
		})
	}
}

func TestEveryRunGetsAFreshValueAndItsNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := quiet(t, `{"n":10}`)
		var seen, runs []int
		write := rival(t, client, 2)
		_, err := Update(t.Context(), JSONBlob[counter](client), func(ctx context.Context, c *counter) error {
			seen, runs = append(seen, c.N), append(runs, Attempt(ctx))
			return write(ctx, c)
		}, nil)
		if err != nil || !cmp.Equal(seen, []int{10, 11, 12}) || !cmp.Equal(runs, []int{0, 1, 2}) {
			t.Errorf("seen %v in runs %v, %v", seen, runs, err)
		}
	})
}

func TestDryRunWritesNothing(t *testing.T) {
	s, client := quiet(t, `{"n":1}`)
	res, err := Update(t.Context(), JSONBlob[counter](client), increment, &UpdateOptions{DryRun: true})
	if err != nil || !res.Changed {
		t.Fatalf("Update = %+v, %v", res, err)
	}
	requests(t, s, res, 1)
	if got := count(t, client); got != 1 {
		t.Errorf("n = %d", got)
	}
}

func TestAnOperationIsAppliedOnceAcrossCalls(t *testing.T) {
	s, client := quiet(t, `{"n":0}`)
	opts := &UpdateOptions{OperationID: "order-17"}
	first, err := Update(t.Context(), JSONBlob[counter](client), increment, opts)
	if err != nil || !first.Changed || first.AlreadyApplied {
		t.Fatalf("first: %+v, %v", first, err)
	}
	if _, err := Update(t.Context(), JSONBlob[counter](client), increment, nil); err != nil {
		t.Fatal(err)
	}
	s.Reset()
	second, err := Update(t.Context(), JSONBlob[counter](client), increment, opts)
	if err != nil || second.Changed || !second.AlreadyApplied {
		t.Fatalf("second: %+v, %v", second, err)
	}
	requests(t, s, second, 1)
	if got := count(t, client); got != 2 {
		t.Errorf("n = %d, want 2", got)
	}
}

func TestALeasedBlobIsWrittenWithItsLeaseOnly(t *testing.T) {
	_, client := quiet(t, `{"n":1}`)
	id := leaseFor(t, client)
	if _, err := Update(t.Context(), JSONBlob[counter](client), increment, nil); azerr.Classify(err).Kind != azerr.Held {
		t.Errorf("without the lease: %v, want held", err)
	}
	if _, err := Update(t.Context(), JSONBlob[counter](client), increment, &UpdateOptions{Conditions: Conditions{LeaseID: id}}); err != nil {
		t.Errorf("with the lease: %v", err)
	}
	if got := count(t, client); got != 2 {
		t.Errorf("n = %d, want 2", got)
	}
}

func TestBadOptionsAreRefusedBeforeAnythingIsSent(t *testing.T) {
	s, client := quiet(t, `{"n":1}`)
	since := time.Unix(1, 0)
	for name, opts := range map[string]*UpdateOptions{
		"If-None-Match":       {Conditions: Conditions{IfNoneMatch: "*"}},
		"If-Modified-Since":   {Conditions: Conditions{IfModifiedSince: since}},
		"bare ETag":           {Conditions: Conditions{IfMatch: "0x8D"}},
		"create and must be":  {Create: true, Conditions: Conditions{IfMatch: "*"}},
		"lineage too long":    {Sending: Sending{LineageSize: 1000}},
		"negative grace":      {Sending: Sending{Grace: -1}},
		"ETag with a newline": {Conditions: Conditions{IfMatch: "\"a\nb\""}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Update(t.Context(), JSONBlob[counter](client), increment, opts); err == nil {
				t.Error("accepted")
			}
		})
	}
	if s.Requests() != 0 {
		t.Errorf("%d requests were sent", s.Requests())
	}
}

func TestOnlyLegalPairsOfConditionsPass(t *testing.T) {
	at := time.Unix(1_000_000, 0)
	all := []struct {
		name string
		set  func(*Conditions)
	}{
		{"If-Match", func(c *Conditions) { c.IfMatch = `"0x1"` }},
		{"If-None-Match", func(c *Conditions) { c.IfNoneMatch = `"0x1"` }},
		{"If-Modified-Since", func(c *Conditions) { c.IfModifiedSince = at }},
		{"If-Unmodified-Since", func(c *Conditions) { c.IfUnmodifiedSince = at }},
	}
	s, client := quiet(t, `{"n":1}`)
	for mask := range 16 {
		var c Conditions
		var names []string
		for i, one := range all {
			if mask&(1<<i) != 0 {
				one.set(&c)
				names = append(names, one.name)
			}
		}
		refused := c.validate() != nil
		// The in-memory service judges the same combination by itself.
		_, err := client.Upload(t.Context(), body("x"), &blockblob.UploadOptions{AccessConditions: accessConditions(c)})
		if byService := azerr.Has(err, "MultipleConditionHeadersNotSupported"); refused != byService {
			t.Errorf("%v: refused here %t, by the service %t", names, refused, byService)
		}
	}
	_ = s
}

func TestForbiddenIsToldAtOnce(t *testing.T) {
	s, client := quiet(t, `{"n":1}`)
	s.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: http.StatusForbidden, Code: "AuthorizationFailure", Match: aztest.Writes})
	res, err := Update(t.Context(), JSONBlob[counter](client), increment, nil)
	if azerr.Classify(err).Kind != azerr.Unauthorised {
		t.Errorf("err = %v", err)
	}
	requests(t, s, res, 2)
	if strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "update box/n.json") {
		t.Errorf("err = %q, want one line that names what", err)
	}
}
