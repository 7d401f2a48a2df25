package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/optimistic"
)

// parsed runs a command line through newCmd up to the runF seam and returns the options it arrived at, or the error.
func parsed[T any](t *testing.T, newCmd func(*Factory, func(*T) error) *cobra.Command, args ...string) (*T, error) {
	t.Helper()
	s, _, _, _ := TestStreams()
	f := newFactory(s, Env{})
	defer f.close()
	var got *T
	root := &cobra.Command{Use: "azconc", SilenceErrors: true, SilenceUsage: true, PersistentPreRunE: f.begin}
	root.SetFlagErrorFunc(flagError)
	f.addFlags(root)
	cmd := newCmd(f, func(opts *T) error { got = opts; return nil })
	root.AddCommand(cmd)
	secondsWithoutUnit(root)
	root.SetArgs(append([]string{cmd.Name()}, args...))
	err := root.ExecuteContext(context.Background())
	return got, err
}

// ignoreInside leaves out what a command gets from its surroundings.
func ignoreInside(types ...any) cmp.Option {
	return cmp.Options{
		cmpopts.IgnoreUnexported(append(types, headerFlags{}, changeFlags{})...),
		cmp.AllowUnexported(blobRef{}),
		cmpopts.EquateEmpty(),
	}
}

type flagCase[T any] struct {
	args []string
	want T
	err  string // part of the message of a usage error
}

func checkFlags[T any](t *testing.T, newCmd func(*Factory, func(*T) error) *cobra.Command, cases []flagCase[T]) {
	t.Helper()
	var zero T
	for _, c := range cases {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			got, err := parsed(t, newCmd, c.args...)
			if c.err != "" {
				if v := judge(err); err == nil || v.code != exitUsage || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("error = %v (exit %d), want a usage error about %q", err, v.code, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&c.want, got, ignoreInside(zero)); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
		})
	}
}

func ref(container, blob string) blobRef { return blobRef{Container: container, Blob: blob} }

func TestBlobPutFlags(t *testing.T) {
	checkFlags(t, newBlobPutCmd, []flagCase[blobPutOptions]{
		{args: []string{"jobs/a/b.json", "--file", "-"}, want: blobPutOptions{Blob: ref("jobs", "a/b.json"), File: "-"}},
		{
			args: []string{"jobs/a", "-f", "x", "--metadata", "K=v=w", "--metadata", "l=", "--content-type", "text/plain", "--cache-control", "no-store", "--content-encoding", "gzip"},
			want: blobPutOptions{Blob: ref("jobs", "a"), File: "x", Headers: headerFlags{
				ContentType: "text/plain", ContentEncoding: "gzip", CacheControl: "no-store", Metadata: map[string]string{"k": "v=w", "l": ""},
			}},
		},
		{args: []string{"jobs/a", "-f", "x", "--if-none-match", "*"}, want: blobPutOptions{Blob: ref("jobs", "a"), File: "x", Conditions: optimistic.Conditions{IfNoneMatch: "*"}}},
		{args: []string{"jobs/a", "-f", "x", "--if-match", "0x8D"}, want: blobPutOptions{Blob: ref("jobs", "a"), File: "x", Conditions: optimistic.Conditions{IfMatch: `"0x8D"`}}},
		{args: []string{"jobs/a"}, err: "--file is missing"},
		{args: []string{"jobs", "-f", "x"}, err: "names a container"},
		{args: []string{"-f", "x"}, err: "<container/blob> is missing"},
		{args: []string{"jobs/a", "b", "-f", "x"}, err: "unexpected argument"},
		{args: []string{"jobs/a", "-f", "x", "--metadata", "novalue"}, err: "not name=value"},
		{args: []string{"jobs/a", "-f", "x", "--metadata", "azconclineage=x"}, err: "reserved for azconc"},
		{args: []string{"jobs/a", "-f", "x", "--if-match", "a", "--if-none-match", "b"}, err: "--if-match and --if-none-match cannot both be given"},
		{args: []string{"jobs/a", "-f", "x", "--wat"}, err: "unknown flag: --wat"},
		{args: []string{"jobs/a", "-f", "x", "-o", "yaml"}, err: "neither text nor json"},
		{args: []string{"jobs/a", "-f", "x", "--timeout", "-1s"}, err: "negative"},
	})
}

func TestBlobGetFlags(t *testing.T) {
	checkFlags(t, newBlobGetCmd, []flagCase[blobGetOptions]{
		{args: []string{"jobs/a"}, want: blobGetOptions{Blob: ref("jobs", "a")}},
		{args: []string{"jobs/a", "-f", "out", "-o", "json"}, want: blobGetOptions{Blob: ref("jobs", "a"), File: "out"}},
		{
			args: []string{"jobs/a", "--if-match", "x", "--if-none-match", "y"},
			want: blobGetOptions{Blob: ref("jobs", "a"), Conditions: optimistic.Conditions{IfMatch: `"x"`, IfNoneMatch: `"y"`}},
		},
		{args: []string{"jobs/a", "-o", "json"}, err: "cannot both go to stdout"},
		{args: []string{"jobs/a", "--if-none-match", "*"}, err: "can never hold"},
	})
}

func TestBlobUpdateFlags(t *testing.T) {
	lease := "00000000-0000-4000-8000-00000000000a"
	checkFlags(t, newBlobUpdateCmd, []flagCase[blobUpdateOptions]{
		{args: []string{"jobs/a", "--jq", ".n += 1"}, want: blobUpdateOptions{Blob: ref("jobs", "a"), MaxSize: optimistic.DefaultMaxSize, Source: changeFlags{JQ: ".n += 1"}}},
		{args: []string{"jobs/a", "--set", "a.b=1", "--set", "c=x"}, want: blobUpdateOptions{Blob: ref("jobs", "a"), MaxSize: optimistic.DefaultMaxSize, Source: changeFlags{Set: []string{"a.b=1", "c=x"}}}},
		{
			args: []string{"jobs/a", "--exec", "sort", "--create", "--dry-run", "--op-id", "x", "--max-attempts", "3", "--lease-id", strings.ToUpper(lease)},
			want: blobUpdateOptions{
				MaxSize: optimistic.DefaultMaxSize, Blob: ref("jobs", "a"), Source: changeFlags{Exec: "sort"}, Create: true, DryRun: true, OperationID: "x", MaxAttempts: 3,
				Conditions: optimistic.Conditions{LeaseID: lease},
			},
		},
		{args: []string{"jobs/a", "-f", "-", "--if-none-match", "*"}, want: blobUpdateOptions{
			MaxSize: optimistic.DefaultMaxSize, Blob: ref("jobs", "a"), Source: changeFlags{File: "-"}, Create: true, Conditions: optimistic.Conditions{IfNoneMatch: "*"},
		}},
		{args: []string{"jobs/a"}, err: "no change is given"},
		{args: []string{"jobs/a", "--jq", ".", "--exec", "cat"}, err: "--exec and --jq cannot be given together"},
		{args: []string{"jobs/a", "--jq", ".n +"}, err: "--jq: "},
		{args: []string{"jobs/a", "--jq", "nosuch(1)"}, err: "--jq: "},
		{args: []string{"jobs/a", "--set", "novalue"}, err: "not path=value"},
		{args: []string{"jobs/a", "--set", "a..b=1"}, err: "empty part"},
		{args: []string{"jobs/a", "--jq", ".", "--create", "--if-match", "x"}, err: "--create and --if-match"},
		{args: []string{"jobs/a", "--jq", ".", "--max-attempts", "0"}, err: "not positive"},
		{args: []string{"jobs/a", "--jq", ".", "--max-size", "0"}, err: "--max-size 0 is not positive"},
		{args: []string{"jobs/a", "--jq", ".", "--try-timeout", "0"}, err: "--try-timeout 0s is not positive"},
		{args: []string{"jobs/a", "--jq", ".", "--min-rate", "-1"}, err: "--min-rate -1 is not positive"},
		{args: []string{"jobs/a", "--jq", ".", "--lease-id", "abc"}, err: "not a GUID"},
		{args: []string{"https://x.blob.core.windows.net/jobs/a?snapshot=2026-01-01T00:00:00.0000000Z", "--jq", "."}, err: "cannot be changed"},
	})
}

func TestBlobEditFlags(t *testing.T) {
	checkFlags(t, newBlobEditCmd, []flagCase[blobEditOptions]{
		{args: []string{"jobs/a", "--if-match", "*"}, want: blobEditOptions{Blob: ref("jobs", "a"), MaxSize: optimistic.DefaultMaxSize, Conditions: optimistic.Conditions{IfMatch: "*"}}},
		{args: []string{"jobs/a", "--if-none-match", "*"}, want: blobEditOptions{Blob: ref("jobs", "a"), MaxSize: optimistic.DefaultMaxSize, Create: true, Conditions: optimistic.Conditions{IfNoneMatch: "*"}}},
		{args: []string{"jobs/a", "--create", "--if-match", "x"}, err: "--create and --if-match"},
	})
}

func TestOtherBlobFlags(t *testing.T) {
	day := time.Date(2026, 1, 31, 12, 0, 5, 0, time.UTC)
	checkFlags(t, newBlobDeleteCmd, []flagCase[blobDeleteOptions]{
		{args: []string{"jobs/a", "--snapshots", "--if-unmodified-since", "2026-01-31T12:00:05Z"}, want: blobDeleteOptions{
			Blob: ref("jobs", "a"), Snapshots: true, Conditions: optimistic.Conditions{IfUnmodifiedSince: day},
		}},
		{args: []string{"jobs"}, err: "names a container"},
	})
	checkFlags(t, newBlobShowCmd, []flagCase[blobReadOptions]{
		{args: []string{"$root/a", "--if-modified-since", "Sat, 31 Jan 2026 12:00:05 GMT"}, want: blobReadOptions{
			Blob: ref("$root", "a"), Conditions: optimistic.Conditions{IfModifiedSince: day},
		}},
		{args: []string{"jobs/a", "--if-modified-since", "yesterday"}, err: "is not a time"},
	})
	checkFlags(t, newBlobListCmd, []flagCase[blobListOptions]{
		{args: []string{"jobs/", "--prefix", "a/", "--max", "2", "--snapshots"}, want: blobListOptions{Container: ref("jobs", ""), Prefix: "a/", Max: 2, Snapshots: true}},
		{args: []string{"jobs", "--max", "-1"}, err: "negative"},
		{args: []string{"jobs/a"}, err: "names a blob"},
	})
	checkFlags(t, newBlobMetadataShowCmd, []flagCase[blobReadOptions]{
		{args: []string{"jobs/a", "--if-tags", `"x" = 'y'`}, want: blobReadOptions{Blob: ref("jobs", "a"), Conditions: optimistic.Conditions{IfTags: `"x" = 'y'`}}},
	})
	checkFlags(t, newBlobMetadataSetCmd, []flagCase[pairsOptions]{
		{args: []string{"jobs/a"}, want: pairsOptions{Blob: ref("jobs", "a")}},
		{args: []string{"jobs/a", "K=v", "--metadata", "l=w"}, want: pairsOptions{Blob: ref("jobs", "a"), Pairs: map[string]string{"k": "v", "l": "w"}}},
		{args: []string{"jobs/a", "k=1", "K=2"}, err: "given twice"},
		{args: []string{}, err: "<container/blob> is missing"},
	})
	checkFlags(t, newBlobMetadataUpdateCmd, []flagCase[pairsOptions]{
		{args: []string{"jobs/a", "k=v", "--remove", "L", "--op-id", "7"}, want: pairsOptions{
			Blob: ref("jobs", "a"), Pairs: map[string]string{"k": "v"}, Remove: []string{"L"}, OperationID: "7",
		}},
		{args: []string{"jobs/a"}, err: "no change is given"},
	})
}

func TestContainerFlags(t *testing.T) {
	checkFlags(t, newContainerCreateCmd, []flagCase[containerCreateOptions]{
		{args: []string{"jobs", "--metadata", "a=b"}, want: containerCreateOptions{Container: ref("jobs", ""), Metadata: map[string]string{"a": "b"}}},
		{args: []string{"Jobs"}, err: "upper-case"},
	})
	checkFlags(t, newContainerDeleteCmd, []flagCase[containerDeleteOptions]{
		{args: []string{"jobs"}, want: containerDeleteOptions{Container: ref("jobs", "")}},
		{args: []string{"jobs", "--if-match", "x"}, err: "unknown flag: --if-match"},
		{args: []string{"jobs", "--if-modified-since", "2026-01-01", "--if-unmodified-since", "2026-01-01"}, err: "cannot both be given"},
	})
	checkFlags(t, newContainerShowCmd, []flagCase[containerShowOptions]{
		{args: []string{"$web"}, want: containerShowOptions{Container: ref("$web", "")}},
	})
	checkFlags(t, newContainerListCmd, []flagCase[containerListOptions]{
		{args: []string{"--prefix", "j"}, want: containerListOptions{Prefix: "j"}},
		{args: []string{"jobs"}, err: "unexpected argument"},
	})
}
