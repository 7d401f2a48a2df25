package optimistic_test

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/history"
)

// played is a history of a blob. dropIfMatch plants the bug that the judge must convict: the condition is lost on the way.
func played(changes history.Kind, dropIfMatch bool) optest.Played {
	return optest.Played{Changes: changes, Match: aztest.Op("Put Blob"), Make: func(t *testing.T, s *aztest.Service) func() optest.Does {
		s.BlockBlob("box", "n.json")
		if _, err := optimistic.Create(t.Context(), blobs.NewJSON[optest.Counter](s.BlockBlob("box", "n.json")), optest.Counter{}, nil); err != nil {
			t.Fatal(err)
		}
		return func() optest.Does {
			if dropIfMatch {
				return optest.Counting(blobs.NewJSON[optest.Counter](unconditional(t, s)))
			}
			return optest.Counting(blobs.NewJSON[optest.Counter](s.BlockBlob("box", "n.json")))
		}
	}}
}

// unconditional returns a client whose pipeline takes the condition off every write.
func unconditional(t *testing.T, s *aztest.Service) *blockblob.Client {
	t.Helper()
	credential, err := blob.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		t.Fatal(err)
	}
	opts := s.ClientOptions()
	opts.PerCallPolicies = append(opts.PerCallPolicies, optest.DropCondition{})
	client, err := blockblob.NewClientWithSharedKeyCredential(s.BlobURL()+"/box/n.json", credential, &blockblob.ClientOptions{ClientOptions: opts})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestHistoriesAreLinearizable judges the results of clients under faults.
func TestHistoriesAreLinearizable(t *testing.T) {
	histories := 80
	if testing.Short() {
		histories = 10
	}
	for name, changes := range map[string]history.Kind{"counter": history.Add, "register": history.Set} {
		t.Run(name, func(t *testing.T) { played(changes, false).Explained(t, histories) })
	}
}

// TestTheJudgeConvictsALostCondition plants the bug that the judge is there for.
func TestTheJudgeConvictsALostCondition(t *testing.T) { played(history.Add, true).Convicted(t) }
