package root

import (
	"context"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/ptr"
)

const (
	adasID = "6d6b9d1c-8f3e-4b1c-9d3c-0d1f6f5a2b11"
	bobsID = "00000000-0000-4000-8000-00000000000b"
)

func infoOf(id, who string) string {
	return base64.StdEncoding.EncodeToString([]byte(`{"ID":"` + id + `","Operation":"OperationTypeApply","Info":"","Who":"` + who +
		`","Version":"1.12.6","Created":"1999-12-31T23:00:00Z","Path":"tfstate/prod"}`))
}

// lockAsAzurerm does what the azurerm backend does to lock a state: an infinite lease under the lock's ID, and then metadata.
func lockAsAzurerm(t *testing.T, state *blockblob.Client, id, metadata string) {
	t.Helper()
	l, err := lease.NewBlobClient(state, &lease.BlobClientOptions{LeaseID: &id})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.AcquireLease(t.Context(), -1, nil); err != nil {
		t.Fatal(err)
	}
	if metadata == "" {
		return
	}
	if _, err := state.SetMetadata(t.Context(), map[string]*string{"Terraformlockid": &metadata, "team": to.Ptr("ops")}, &blob.SetMetadataOptions{
		AccessConditions: &blob.AccessConditions{LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: &id}},
	}); err != nil {
		t.Fatal(err)
	}
}

func newState(t *testing.T, s *aztest.Service) *blockblob.Client {
	t.Helper()
	state := s.BlockBlob("tfstate", "prod")
	if _, err := state.UploadBuffer(t.Context(), []byte(`{"serial":7}`), nil); err != nil {
		t.Fatal(err)
	}
	return state
}

func leaseOf(t *testing.T, state *blockblob.Client) (lease.StateType, map[string]*string) {
	t.Helper()
	p, err := state.GetProperties(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	metadata := map[string]*string{}
	for name, value := range p.Metadata { // the SDK returns them as HTTP writes them: Team
		metadata[strings.ToLower(name)] = value
	}
	return *p.LeaseState, metadata
}

func atATerminal(answer string) func(*cli.Streams) {
	return func(s *cli.Streams) { s.In, s.InTerminal, s.ErrTerminal = strings.NewReader(answer), true, true }
}

// The azurerm backend's lock is infinite: a run that dies leaves it (terraform#29724, azurerm#8819).
func TestALockThatAzurermHasLeftIsShownAndReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		state := newState(t, s)
		lockAsAzurerm(t, state, adasID, infoOf(adasID, "ada@ci"))
		bubble.Sleep(30 * time.Minute)

		v := runOn(t.Context(), s, nil, nil, "tf", "show", "tfstate/prod", "-o", "json").json(t)
		if v["locked"] != true || v["infinite"] != true || v["id"] != adasID || v["who"] != "ada@ci" || v["created_ago_ms"] != 5.4e6 || v["last_modified_ago_ms"] != 1.8e6 {
			t.Errorf("show: %v", v)
		}
		r := runOn(t.Context(), s, atATerminal("no\n"), nil, "tf", "unlock", "tfstate/prod")
		if r.code != 0 || r.out != "unchanged tfstate/prod\n" || !strings.Contains(r.stderr, "tfstate/prod is locked by ada@ci (OperationTypeApply, ID "+adasID+"), since 1h30m0s ago") {
			t.Errorf("no: exit %d, %q %q", r.code, r.out, r.stderr)
		}
		if at, _ := leaseOf(t, state); at != lease.StateTypeLeased {
			t.Errorf("it was released after a no: %v", at)
		}
		s.Reset()
		r = runOn(t.Context(), s, atATerminal("yes\n"), nil, "tf", "unlock", "tfstate/prod")
		at, metadata := leaseOf(t, state)
		if r.code != 0 || r.out != "released tfstate/prod of ada@ci, id "+adasID+"\n" || at != lease.StateTypeAvailable || metadata["terraformlockid"] != nil || metadata["team"] == nil {
			t.Errorf("yes: exit %d, %q %q, %v, %v", r.code, r.out, r.stderr, at, metadata)
		}
		if ops := opsOf(s); !slices.Equal(ops[:4], []string{"Get Blob Properties", "Release Blob Lease", "Get Blob Properties", "Set Blob Metadata"}) {
			t.Errorf("requests: %v", ops)
		}
	})
}

func opsOf(s *aztest.Service) (ops []string) {
	for _, r := range s.Log() {
		ops = append(ops, r.Op)
	}
	return ops
}

// TestOnlyTheLockThatWasShownIsReleased: while the user reads the question, the run ends and another one locks the state.
func TestOnlyTheLockThatWasShownIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		state := newState(t, s)
		lockAsAzurerm(t, state, adasID, infoOf(adasID, "ada@ci"))
		looks := 0
		wire := transport(func(r *http.Request) (*http.Response, error) {
			if looks == 1 {
				l, _ := lease.NewBlobClient(state, &lease.BlobClientOptions{LeaseID: to.Ptr(adasID)})
				if _, err := l.ReleaseLease(r.Context(), nil); err != nil {
					t.Error(err)
				}
				lockAsAzurerm(t, state, bobsID, infoOf(bobsID, "bob@ci"))
			}
			looks++
			return s.Do(r)
		})
		r := runOn(t.Context(), wire, atATerminal("yes\n"), nil, "tf", "unlock", "tfstate/prod")
		at, metadata := leaseOf(t, state)
		if r.code != 4 || at != lease.StateTypeLeased || ptr.Value(metadata["terraformlockid"]) != infoOf(bobsID, "bob@ci") {
			t.Errorf("exit %d, %q, %v %v, want bob's lock as it was", r.code, r.stderr, at, metadata)
		}
	})
}

// A lost answer to any request of an unlock leaves the state unlocked, and the result known.
func TestAnUnlockWhoseAnswersAreLost(t *testing.T) {
	for _, op := range []string{"Release Blob Lease", "Set Blob Metadata", "Get Blob Properties"} {
		synctest.Test(t, func(t *testing.T) {
			s := aztest.New(nil)
			state := newState(t, s)
			lockAsAzurerm(t, state, adasID, infoOf(adasID, "ada@ci"))
			s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op(op), Count: 1})
			r := runOn(t.Context(), s, nil, nil, "tf", "unlock", "tfstate/prod", "--yes")
			at, left := leaseOf(t, state)
			if r.code != 0 || at == lease.StateTypeLeased || left["terraformlockid"] != nil {
				t.Errorf("lost %s: exit %d, %q, %v %v", op, r.code, r.stderr, at, left)
			}
		})
	}
}

func TestUnlockRefusesWhatItCannotKnow(t *testing.T) {
	for _, c := range []struct {
		metadata string
		args     []string
		code     int
		says     string
	}{
		{infoOf(adasID, "ada@ci"), nil, 2, "--yes"},
		{infoOf(adasID, "ada@ci"), []string{"--yes", "--id", bobsID}, 4, "with the ID " + adasID},
		{"", []string{"--yes"}, 1, "azconc blob lease break tfstate/prod"}, // terraform#25818, #17535
		{"not base64", []string{"--yes"}, 1, "azconc blob lease break tfstate/prod"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := aztest.New(nil)
			state := newState(t, s)
			lockAsAzurerm(t, state, adasID, c.metadata)
			r := runOn(t.Context(), s, nil, nil, append([]string{"tf", "unlock", "tfstate/prod"}, c.args...)...)
			if at, _ := leaseOf(t, state); r.code != c.code || !strings.Contains(r.stderr, c.says) || at != lease.StateTypeLeased {
				t.Errorf("%v: exit %d, %q, %v", c.args, r.code, r.stderr, at)
			}
		})
	}
}
