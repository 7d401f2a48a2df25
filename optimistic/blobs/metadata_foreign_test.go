package blobs

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/optimistic/settings"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
)

// TestEmptyMetadataOfOthersSurvives: the service takes empty values, and an update of another name leaves them alone.
func TestEmptyMetadataOfOthersSurvives(t *testing.T) {
	s, client := optest.Quiet(t, `{"n":0}`)
	foreign := map[string]*string{"flag": new(""), "owner": new("web")}
	if _, err := client.SetMetadata(t.Context(), foreign, nil); err != nil {
		t.Fatal(err)
	}
	box := s.Container("box")
	if _, err := box.SetMetadata(t.Context(), &container.SetMetadataOptions{Metadata: foreign}); err != nil {
		t.Fatal(err)
	}
	set := func(name, value string) func(context.Context, *map[string]string) error {
		return func(_ context.Context, m *map[string]string) error {
			(*m)[name] = value
			return nil
		}
	}
	for name, target := range map[string]optimistic.Target[map[string]string]{
		"blob": NewMetadata(client.BlobClient()), "container": settings.NewContainerMetadata(box),
	} {
		nothing := func(context.Context, *map[string]string) error { return nil }
		if res, err := optimistic.Update(t.Context(), target, nothing, nil); err != nil || res.Changed {
			t.Errorf("%s: an update that changes nothing: %+v, %v", name, res, err)
		}
		if _, err := optimistic.Update(t.Context(), target, set("k", "v"), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := optimistic.Update(t.Context(), target, set("owner", ""), nil); err != nil {
			t.Fatal(err)
		}
		v, err := optimistic.Read(t.Context(), target, nil)
		if want := map[string]string{"flag": "", "k": "v"}; err != nil || !maps.Equal(v.Value, want) {
			t.Errorf("%s: %v, %v, want %v", name, v.Value, err, want)
		}
		if _, err := optimistic.Update(t.Context(), target, func(_ context.Context, m *map[string]string) error {
			delete(*m, "flag")
			return nil
		}, nil); err != nil {
			t.Fatal(err)
		}
		if v, err := optimistic.Read(t.Context(), target, nil); err != nil || len(v.Value) != 1 {
			t.Errorf("%s: %v, %v, want the empty value deleted", name, v.Value, err)
		}
	}
}

// TestMetadataInLatin1IsNotTakenForABadCredential: the service refuses the signature of a request that carries it.
func TestMetadataInLatin1IsNotTakenForABadCredential(t *testing.T) {
	s, client := optest.Quiet(t, `{"n":0}`)
	refused := aztest.Fault{Kind: aztest.Answer, Match: aztest.Writes, Status: 403, Code: "AuthenticationFailed"}
	s.SetFaults(refused)
	if _, err := optimistic.Update(t.Context(), NewJSON[optest.Counter](client), optest.Increment, nil); azerr.Classify(err).Kind != azerr.Unauthorised {
		t.Errorf("plain metadata: %v", err)
	}
	s.SetFaults()
	if _, err := client.SetMetadata(t.Context(), map[string]*string{"city": new("K\xf6ln")}, nil); err != nil {
		t.Fatal(err)
	}
	s.SetFaults(refused)
	for name, run := range map[string]func() (optimistic.Result, error){
		"content": func() (optimistic.Result, error) {
			return optimistic.Update(t.Context(), NewJSON[optest.Counter](client), optest.Increment, nil)
		},
		"metadata": func() (optimistic.Result, error) {
			return optimistic.Update(t.Context(), NewMetadata(client.BlobClient()), func(_ context.Context, m *map[string]string) error {
				(*m)["k"] = "v"
				return nil
			}, nil)
		},
	} {
		_, err := run()
		if err == nil || azerr.Classify(err).Kind == azerr.Unauthorised || !strings.Contains(err.Error(), `the value of "city", which another writer has stored, is not ASCII`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNamesThatDifferOnlyInTheirCaseAreRefused: the service ignores their case, and which of the values was stored was left to
// chance.
func TestNamesThatDifferOnlyInTheirCaseAreRefused(t *testing.T) {
	s, client := optest.Quiet(t, "x")
	if _, err := client.SetMetadata(t.Context(), map[string]*string{"owner": new("web")}, nil); err != nil {
		t.Fatal(err)
	}
	s.Reset()
	ctx, twice := t.Context(), map[string]string{"Owner": "a", "owner": "b"}
	own := NewBytes(client)
	own.Metadata = twice
	for name, err := range map[string]error{
		"update": optest.ErrorOf(optimistic.Update(ctx, NewMetadata(client.BlobClient()), func(_ context.Context, m *map[string]string) error {
			(*m)["Owner"] = "a"
			return nil
		}, nil)),
		"content":   optest.ErrorOf(optimistic.Create(ctx, own, nil, nil)),
		"upload":    optest.ErrorOf(Upload(ctx, client, strings.NewReader("y"), &UploadOptions{Metadata: twice})),
		"container": optest.ErrorOf(settings.CreateContainer(ctx, s.Container("new"), &settings.CreateContainerOptions{Metadata: twice})),
		"queue":     optest.ErrorOf(settings.CreateQueue(ctx, s.Queue("new"), &settings.CreateQueueOptions{Metadata: twice})),
	} {
		if err == nil || !strings.Contains(err.Error(), `"Owner" and "owner" are one name`) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := settings.CreateQueue(ctx, s.Queue("new"), &settings.CreateQueueOptions{Metadata: map[string]string{"a-b": "c"}}); err == nil || !strings.Contains(err.Error(), "not an identifier") {
		t.Errorf("a queue with a name that is none: %v", err)
	}
	for _, r := range s.Log() {
		if aztest.Writes(&r) {
			t.Errorf("sent %v", r)
		}
	}
}
