package blob

import (
	"strings"
	"testing"
	"time"

	sdkblob "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/change"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/clitest"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
)

func TestBlobPutFlags(t *testing.T) {
	clitest.CheckFlags(t, putVerb(), []clitest.FlagCase[putOptions]{
		{Args: []string{"jobs/a/b.json", "--file", "-"}, Want: putOptions{Blob: clitest.Ref("jobs", "a/b.json"), File: "-"}},
		{
			Args: []string{"jobs/a", "-f", "x", "--metadata", "K=v=w", "--metadata", "l=", "--content-type", "text/plain", "--cache-control", "no-store", "--content-encoding", "gzip"},
			Want: putOptions{Blob: clitest.Ref("jobs", "a"), File: "x", Headers: flags.Headers{
				ContentType: "text/plain", ContentEncoding: "gzip", CacheControl: "no-store", Metadata: map[string]string{"k": "v=w", "l": ""},
			}},
		},
		{Args: []string{"jobs/a", "-f", "x", "--if-none-match", "*"}, Want: putOptions{Blob: clitest.Ref("jobs", "a"), File: "x", Conditions: optimistic.Conditions{IfNoneMatch: "*"}}},
		{Args: []string{"jobs/a", "-f", "x", "--if-match", "0x8D"}, Want: putOptions{Blob: clitest.Ref("jobs", "a"), File: "x", Conditions: optimistic.Conditions{IfMatch: `"0x8D"`}}},
		{Args: []string{"jobs/a"}, Err: "--file is missing"},
		{Args: []string{"jobs", "-f", "x"}, Err: "names a container"},
		{Args: []string{"-f", "x"}, Err: "<container/blob> is missing"},
		{Args: []string{"jobs/a", "b", "-f", "x"}, Err: "unexpected argument"},
		{Args: []string{"jobs/a", "-f", "x", "--metadata", "novalue"}, Err: "not name=value"},
		{Args: []string{"jobs/a", "-f", "x", "--metadata", "azconclineage=x"}, Err: "reserved for azconc"},
		{Args: []string{"jobs/a", "-f", "x", "--if-match", "a", "--if-none-match", "b"}, Err: "--if-match and --if-none-match cannot both be given"},
		{Args: []string{"jobs/a", "-f", "x", "--wat"}, Err: "unknown flag: --wat"},
		{Args: []string{"jobs/a", "-f", "x", "-o", "yaml"}, Err: "none of text, json, table and tsv"},
		{Args: []string{"jobs/a", "-f", "x", "--timeout", "-1s"}, Err: "not positive"},
	})
}

func TestBlobGetFlags(t *testing.T) {
	clitest.CheckFlags(t, getVerb(), []clitest.FlagCase[getOptions]{
		{Args: []string{"jobs/a"}, Want: getOptions{Blob: clitest.Ref("jobs", "a")}},
		{Args: []string{"jobs/a", "-f", "out", "-o", "json"}, Want: getOptions{Blob: clitest.Ref("jobs", "a"), File: "out"}},
		{
			Args: []string{"jobs/a", "--if-match", "x", "--if-none-match", "y"},
			Want: getOptions{Blob: clitest.Ref("jobs", "a"), Conditions: optimistic.Conditions{IfMatch: `"x"`, IfNoneMatch: `"y"`}},
		},
		{Args: []string{"jobs/a", "-o", "json"}, Err: "cannot both go to stdout"},
		{Args: []string{"jobs/a", "--if-none-match", "*"}, Err: "can never hold"},
	})
}

func TestBlobUpdateFlags(t *testing.T) {
	lease := "00000000-0000-4000-8000-00000000000a"
	clitest.CheckFlags(t, updateVerb(), []clitest.FlagCase[updateOptions]{
		{Args: []string{"jobs/a", "--jq", ".n += 1"}, Want: updateOptions{Blob: clitest.Ref("jobs", "a"), MaxSize: blobs.DefaultMaxSize, Source: change.ChangeFlags{JQ: ".n += 1"}}},
		{Args: []string{"jobs/a", "--set", "a.b=1", "--set", "c=x"}, Want: updateOptions{Blob: clitest.Ref("jobs", "a"), MaxSize: blobs.DefaultMaxSize, Source: change.ChangeFlags{Set: []string{"a.b=1", "c=x"}}}},
		{
			Args: []string{"jobs/a", "--exec", "sort", "--create", "--dry-run", "--op-id", "x", "--max-attempts", "3", "--lease-id", strings.ToUpper(lease)},
			Want: updateOptions{
				MaxSize: blobs.DefaultMaxSize, Blob: clitest.Ref("jobs", "a"), Source: change.ChangeFlags{Exec: "sort"}, Create: true, DryRun: true, Update: flags.Update{OperationID: "x", MaxAttempts: 3},
				Conditions: optimistic.Conditions{LeaseID: lease},
			},
		},
		{Args: []string{"jobs/a", "-f", "-", "--if-none-match", "*"}, Want: updateOptions{
			MaxSize: blobs.DefaultMaxSize, Blob: clitest.Ref("jobs", "a"), Source: change.ChangeFlags{File: "-"}, Create: true, Conditions: optimistic.Conditions{IfNoneMatch: "*"},
		}},
		{Args: []string{"jobs/a"}, Err: "no change is given"},
		{Args: []string{"jobs/a", "--jq", ".", "--exec", "cat"}, Err: "--exec and --jq cannot be given together"},
		{Args: []string{"jobs/a", "--jq", ".n +"}, Err: "--jq: "},
		{Args: []string{"jobs/a", "--jq", "nosuch(1)"}, Err: "--jq: "},
		{Args: []string{"jobs/a", "--set", "novalue"}, Err: "not path=value"},
		{Args: []string{"jobs/a", "--set", "a..b=1"}, Err: "empty part"},
		{Args: []string{"jobs/a", "--jq", ".", "--create", "--if-match", "x"}, Err: "--create and --if-match"},
		{Args: []string{"jobs/a", "--jq", ".", "--max-attempts", "0"}, Err: "not positive"},
		{Args: []string{"jobs/a", "--jq", ".", "--max-size", "0"}, Err: "--max-size 0 is not positive"},
		{Args: []string{"jobs/a", "--jq", ".", "--try-timeout", "0"}, Err: "--try-timeout 0s is not positive"},
		{Args: []string{"jobs/a", "--jq", ".", "--min-rate", "-1"}, Err: "--min-rate -1 is not positive"},
		{Args: []string{"jobs/a", "--jq", ".", "--lease-id", "abc"}, Err: "not a GUID"},
		{Args: []string{"https://x.blob.core.windows.net/jobs/a?snapshot=2026-01-01T00:00:00.0000000Z", "--jq", "."}, Err: "cannot be changed"},
	})
}

func TestBlobEditFlags(t *testing.T) {
	clitest.CheckFlags(t, editVerb(), []clitest.FlagCase[editOptions]{
		{Args: []string{"jobs/a", "--if-match", "*"}, Want: editOptions{Blob: clitest.Ref("jobs", "a"), MaxSize: blobs.DefaultMaxSize, Conditions: optimistic.Conditions{IfMatch: "*"}}},
		{Args: []string{"jobs/a", "--if-none-match", "*"}, Want: editOptions{Blob: clitest.Ref("jobs", "a"), MaxSize: blobs.DefaultMaxSize, Create: true, Conditions: optimistic.Conditions{IfNoneMatch: "*"}}},
		{Args: []string{"jobs/a", "--create", "--if-match", "x"}, Err: "--create and --if-match"},
	})
}

func TestOtherBlobFlags(t *testing.T) {
	day := time.Date(2026, 1, 31, 12, 0, 5, 0, time.UTC)
	clitest.CheckFlags(t, deleteVerb(), []clitest.FlagCase[deleteOptions]{
		{Args: []string{"jobs/a", "--snapshots", "--if-unmodified-since", "2026-01-31T12:00:05Z"}, Want: deleteOptions{
			Blob: clitest.Ref("jobs", "a"), Snapshots: true, Conditions: optimistic.Conditions{IfUnmodifiedSince: day},
		}},
		{Args: []string{"jobs"}, Err: "names a container"},
	})
	clitest.CheckFlags(t, showVerb(), []clitest.FlagCase[readOptions]{
		{Args: []string{"$root/a", "--if-modified-since", "Sat, 31 Jan 2026 12:00:05 GMT"}, Want: readOptions{
			Blob: clitest.Ref("$root", "a"), Conditions: optimistic.Conditions{IfModifiedSince: day},
		}},
		{Args: []string{"jobs/a", "--if-modified-since", "yesterday"}, Err: "is not a time"},
	})
	clitest.CheckFlags(t, listVerb(), []clitest.FlagCase[listOptions]{
		{Args: []string{"jobs/", "--prefix", "a/", "--max", "2", "--snapshots"}, Want: listOptions{Container: clitest.Ref("jobs", ""), Prefix: "a/", Max: 2, Snapshots: true}},
		{Args: []string{"jobs", "--max", "-1"}, Err: "negative"},
		{Args: []string{"jobs/a"}, Err: "names a blob"},
	})
	clitest.CheckFlags(t, metadataShowVerb(), []clitest.FlagCase[readOptions]{
		{Args: []string{"jobs/a", "--if-tags", `"x" = 'y'`}, Want: readOptions{Blob: clitest.Ref("jobs", "a"), Conditions: optimistic.Conditions{IfTags: `"x" = 'y'`}}},
	})
	clitest.CheckFlags(t, metadataSetVerb(), []clitest.FlagCase[pairsOptions]{
		{Args: []string{"jobs/a"}, Want: pairsOptions{Blob: clitest.Ref("jobs", "a")}},
		{Args: []string{"jobs/a", "K=v", "--metadata", "l=w"}, Want: pairsOptions{Blob: clitest.Ref("jobs", "a"), Pairs: map[string]string{"k": "v", "l": "w"}}},
		{Args: []string{"jobs/a", "k=1", "K=2"}, Err: "given twice"},
		{Args: []string{}, Err: "<container/blob> is missing"},
	})
	clitest.CheckFlags(t, metadataUpdateVerb(), []clitest.FlagCase[pairsOptions]{
		{Args: []string{"jobs/a", "k=v", "--remove", "L", "--op-id", "7"}, Want: pairsOptions{
			Blob: clitest.Ref("jobs", "a"), Pairs: map[string]string{"k": "v"}, Remove: []string{"L"}, Update: flags.Update{OperationID: "7"},
		}},
		{Args: []string{"jobs/a"}, Err: "no change is given"},
	})
}

func TestBlobCopyFlags(t *testing.T) {
	clitest.CheckFlags(t, copyVerb(), []clitest.FlagCase[copyOptions]{
		{
			Args: []string{"jobs/a", "jobs/b", "--source-if-match", "0x8D", "--if-none-match", "*", "--wait", "--poll", "2s", "--metadata", "K=v"},
			Want: copyOptions{
				From: clitest.Ref("jobs", "a"), To: clitest.Ref("jobs", "b"), Wait: true, Poll: 2 * time.Second, Metadata: map[string]string{"k": "v"},
				Conditions: optimistic.Conditions{IfNoneMatch: "*"}, SourceConditions: optimistic.Conditions{IfMatch: `"0x8D"`},
			},
		},
		{Args: []string{"jobs/a"}, Err: "<container/blob> to copy it to is missing"},
		{Args: []string{"jobs/a", "jobs/b", "--source-if-none-match", "*"}, Err: "can never hold"},
		{Args: []string{"jobs/a", "jobs/b", "--source-if-match", "a", "--source-if-none-match", "b"}, Err: "on the source"},
		{Args: []string{"jobs/a", "jobs/b", "--poll", "0s"}, Err: "not positive"},
	})
	id := "1f812371-a41d-49e6-b123-f4b542e851c5"
	clitest.CheckFlags(t, abortCopyVerb(), []clitest.FlagCase[abortCopyOptions]{
		{Args: []string{"jobs/b", id}, Want: abortCopyOptions{Blob: clitest.Ref("jobs", "b"), CopyID: id}},
		{Args: []string{"jobs/b"}, Err: "<copy-id> is missing"},
		{Args: []string{"jobs/b", "x"}, Err: "not the id of a copy"},
	})
}

func TestTierFlags(t *testing.T) {
	clitest.CheckFlags(t, tierSetVerb(), []clitest.FlagCase[tierSetOptions]{
		{Args: []string{"jobs/b", "cool"}, Want: tierSetOptions{Blob: clitest.Ref("jobs", "b"), Tier: sdkblob.AccessTierCool}},
		{
			Args: []string{"jobs/b", "Hot", "--priority", "high", "--if-tags", `"a" = '1'`},
			Want: tierSetOptions{
				Blob: clitest.Ref("jobs", "b"), Tier: sdkblob.AccessTierHot, Priority: sdkblob.RehydratePriorityHigh,
				Conditions: optimistic.Conditions{IfTags: `"a" = '1'`},
			},
		},
		{Args: []string{"jobs/b"}, Err: "is missing"},
		{Args: []string{"jobs/b", "tepid"}, Err: "not a tier"},
		{Args: []string{"jobs/b", "hot", "--priority", "soon"}, Err: "neither standard nor high"},
	})
}

func TestSnapshotFlags(t *testing.T) {
	at := "2026-01-31T12:00:05.1234567Z"
	clitest.CheckFlags(t, getVerb(), []clitest.FlagCase[getOptions]{
		{Args: []string{"jobs/a", "--snapshot", at}, Want: getOptions{Blob: ref.Blob{Container: "jobs", Blob: "a", Snapshot: at}}},
		{Args: []string{"jobs/a?snapshot=" + at}, Want: getOptions{Blob: ref.Blob{Container: "jobs", Blob: "a", Snapshot: at}}},
		{Args: []string{"jobs/a?snapshot=1"}, Want: getOptions{Blob: clitest.Ref("jobs", "a?snapshot=1")}},
		{Args: []string{"jobs/a", "--snapshot", "yesterday"}, Err: "not the time of a snapshot"},
		{Args: []string{"jobs/a?snapshot=" + at, "--snapshot", strings.Replace(at, "5.", "6.", 1)}, Err: "two versions"},
	})
	clitest.CheckFlags(t, deleteVerb(), []clitest.FlagCase[deleteOptions]{
		{Args: []string{"jobs/a", "--snapshot", at, "--snapshots"}, Err: "--snapshots is for a blob"},
	})
	clitest.CheckFlags(t, updateVerb(), []clitest.FlagCase[updateOptions]{{Args: []string{"jobs/a?snapshot=" + at, "--jq", "."}, Err: "cannot be changed"}})
	clitest.CheckFlags(t, blockListVerb(), []clitest.FlagCase[blockListOptions]{
		{Args: []string{"jobs/a", "--lease-id", "x"}, Err: "not a GUID"},
	})
}
