package optimistic_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/observe"
)

// TestThePathDecidesWhatTheLineageLeavesOpen: the write is delivered twice, and between the deliveries a writer outside
// azconc replaces it with its lineage. The refusal of the second delivery is no proof that the first was refused. It is
// believed where nothing between the client and the service can have repeated the request.
func TestThePathDecidesWhatTheLineageLeavesOpen(t *testing.T) {
	const loopback, elsewhere = "http://127.0.0.1:10000/", "http://storage.internal:10000/"
	for _, tt := range []struct {
		endpoint string
		confirm  optimistic.Confirm
		believed bool
	}{
		{loopback, optimistic.ConfirmByPath, true},
		{loopback, optimistic.ConfirmAlways, false},
		{loopback, optimistic.ConfirmNever, true},
		{elsewhere, optimistic.ConfirmByPath, false},
		{elsewhere, optimistic.ConfirmNever, true},
	} {
		t.Run(fmt.Sprint(tt.endpoint, tt.confirm), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, client := optest.Quiet(t, `{"n":0}`)
				s.SetFaults(aztest.Fault{Kind: aztest.AnswerTwice, Match: aztest.Writes, Delay: 30 * time.Millisecond, Count: 1})
				go func() {
					bubble.Sleep(10 * time.Millisecond)
					optest.Put(t, client, `{"n":100}`)
				}()
				there := clientAt(t, s, tt.endpoint)
				_, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](there), optest.Increment, &optimistic.UpdateOptions{SendOptions: optimistic.SendOptions{ConfirmConflicts: tt.confirm}})
				unknown, ok := errors.AsType[*optimistic.UnknownError](err)
				if tt.believed && err != nil || !tt.believed && (!ok || !unknown.Unconfirmed) {
					t.Errorf("Update = %v, want success only if the refusal is believed", err)
				}
				want := 100
				if tt.believed {
					want = 101
				}
				if got := optest.Count(t, client); got != want {
					t.Errorf("n = %d, want %d", got, want)
				}
			})
		})
	}
}

// TestARefusalThatArrivesAsTheCallEndsIsJudged: the write was applied and delivered again. The caller gave up while the refusal
// of the second delivery was read, and got the error that nothing was applied. It still does where conflicts are believed.
func TestARefusalThatArrivesAsTheCallEndsIsJudged(t *testing.T) {
	const loopback, elsewhere = "http://127.0.0.1:10000/", "http://storage.internal:10000/"
	for name, write := range map[string]func(context.Context, *blockblob.Client, optimistic.SendOptions) (optimistic.Result, error){
		"update": func(ctx context.Context, client *blockblob.Client, o optimistic.SendOptions) (optimistic.Result, error) {
			return optimistic.Update(ctx, blobs.NewJSON[optest.Counter](client), optest.Increment, &optimistic.UpdateOptions{SendOptions: o})
		},
		"create": func(ctx context.Context, client *blockblob.Client, o optimistic.SendOptions) (optimistic.Result, error) {
			return optimistic.Create(ctx, blobs.NewJSON[optest.Counter](client), optest.Counter{N: 1}, &optimistic.WriteOptions{SendOptions: o})
		},
	} {
		for _, tt := range []struct {
			endpoint string
			confirm  optimistic.Confirm
			judged   bool
		}{
			{elsewhere, optimistic.ConfirmByPath, true},
			{loopback, optimistic.ConfirmAlways, true},
			{loopback, optimistic.ConfirmByPath, false},
		} {
			synctest.Test(t, func(t *testing.T) {
				s, client := optest.Quiet(t, map[string]string{"update": `{"n":0}`}[name])
				s.SetFaults(aztest.Fault{Kind: aztest.AnswerTwice, Match: aztest.Writes, Count: 1})
				ctx, cancel := context.WithCancel(t.Context())
				o := optimistic.SendOptions{ConfirmConflicts: tt.confirm, Hooks: observe.Hooks{Span: func(ctx context.Context, span observe.Span) (context.Context, func(error)) {
					return ctx, func(error) {
						if span.Name == "Put Blob" {
							cancel()
						}
					}
				}}}
				res, err := write(ctx, clientAt(t, s, tt.endpoint), o)
				if (err == nil) != tt.judged || res.Changed != tt.judged || errors.Is(err, optimistic.ErrOutcomeUnknown) || optest.Count(t, client) != 1 {
					t.Errorf("%s at %s, %v: %+v, %v, n = %d", name, tt.endpoint, tt.confirm, res, err, optest.Count(t, client))
				}
			})
		}
	}
}

// TestAWriteWithoutRoomForAProofIsRefused: the metadata left no room for a lineage, so a write that was delivered twice
// looked like a conflict, and the change ran again, also with ConfirmAlways.
func TestAWriteWithoutRoomForAProofIsRefused(t *testing.T) {
	const loopback, elsewhere = "http://127.0.0.1:10000/", "http://storage.internal:10000/"
	for _, tt := range []struct {
		endpoint string
		foreign  int // bytes of another writer's metadata
		o        optimistic.SendOptions
		refused  bool
	}{
		{loopback, 8170, optimistic.SendOptions{ConfirmConflicts: optimistic.ConfirmAlways}, true},
		{loopback, 8000, optimistic.SendOptions{ConfirmConflicts: optimistic.ConfirmAlways}, true},
		{loopback, 7000, optimistic.SendOptions{ConfirmConflicts: optimistic.ConfirmAlways}, false},
		{loopback, 8170, optimistic.SendOptions{}, false},
		{elsewhere, 8170, optimistic.SendOptions{}, true},
		{elsewhere, 8000, optimistic.SendOptions{}, true},
		{elsewhere, 8170, optimistic.SendOptions{ConfirmConflicts: optimistic.ConfirmNever}, false},
		{elsewhere, 8170, optimistic.SendOptions{NoLineage: true}, false},
	} {
		for name, update := range map[string]func(context.Context, *blockblob.Client) error{
			"content": func(ctx context.Context, c *blockblob.Client) error {
				return optest.ErrorOf(optimistic.Update(ctx, blobs.NewJSON[optest.Counter](c), optest.Increment, &optimistic.UpdateOptions{SendOptions: tt.o}))
			},
			"metadata": func(ctx context.Context, c *blockblob.Client) error {
				return optest.ErrorOf(optimistic.Update(ctx, blobs.NewMetadata(c.BlobClient()), optest.SetMeta("n", "1"), &optimistic.UpdateOptions{SendOptions: tt.o}))
			},
		} {
			t.Run(fmt.Sprint(name, tt.endpoint, tt.foreign, tt.o.ConfirmConflicts, tt.o.NoLineage), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, client := optest.Quiet(t, `{"n":0}`)
					if _, err := client.SetMetadata(t.Context(), map[string]*string{"x": new(strings.Repeat("x", tt.foreign-1))}, nil); err != nil {
						t.Fatal(err)
					}
					s.Reset()
					err := update(t.Context(), clientAt(t, s, tt.endpoint))
					if refused := err != nil && strings.Contains(err.Error(), "no room for a proof"); refused != tt.refused || !refused && err != nil {
						t.Errorf("%v, want a refusal: %v", err, tt.refused)
					}
					if wrote := slices.ContainsFunc(s.Log(), func(r aztest.Request) bool { return aztest.Writes(&r) }); wrote == tt.refused {
						t.Errorf("sent %v", s.Log())
					}
				})
			})
		}
	}
}

// clientAt returns a client of the blob box/n.json by another endpoint.
func clientAt(t *testing.T, s *aztest.Service, endpoint string) *blockblob.Client {
	t.Helper()
	credential, err := blob.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		t.Fatal(err)
	}
	client, err := blockblob.NewClientWithSharedKeyCredential(endpoint+aztest.Account+"/box/n.json", credential, &blockblob.ClientOptions{ClientOptions: s.ClientOptions()})
	if err != nil {
		t.Fatal(err)
	}
	return client
}
