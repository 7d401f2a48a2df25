package blob

import (
	"strings"
	"testing"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/clitest"
)

// taken is the error of a command line that is taken: the account is looked for last.
const taken = "no account is given"

func words(line string) []string { return strings.Fields(line) }

func TestContentFlags(t *testing.T) {
	at := "2026-01-31T12:00:05.1234567Z"
	clitest.CheckUsage(t, NewCmd, []clitest.UsageCase{
		{Args: words("put jobs/a/b.json --file -"), Err: taken},
		{Args: words("put jobs/a -f x --metadata K=v=w --metadata l= --content-type text/plain --cache-control no-store --content-encoding gzip"), Err: taken},
		{Args: words("put jobs/a -f x --if-none-match *"), Err: taken},
		{Args: words("put jobs/a -f x --if-match 0x8D"), Err: taken},
		{Args: words("put jobs/a"), Err: "--file is missing"},
		{Args: words("put jobs -f x"), Err: "names a container"},
		{Args: words("put -f x"), Err: "<container/blob> is missing"},
		{Args: words("put jobs/a b -f x"), Err: "unexpected argument"},
		{Args: words("put jobs/a -f x --metadata novalue"), Err: "not name=value"},
		{Args: words("put jobs/a -f x --metadata azconclineage=x"), Err: "reserved for azconc"},
		{Args: words("put jobs/a -f x --if-match a --if-none-match b"), Err: "--if-match and --if-none-match cannot both be given"},
		{Args: words("put jobs/a -f x --wat"), Err: "unknown flag: --wat"},
		{Args: words("put jobs/a -f x -o yaml"), Err: "none of text, json, table and tsv"},
		{Args: words("put jobs/a -f x --timeout -1s"), Err: "not positive"},

		{Args: words("get jobs/a"), Err: taken},
		{Args: words("get jobs/a -f out -o json"), Err: taken},
		{Args: words("get jobs/a --if-match x --if-none-match y"), Err: taken},
		{Args: words("get jobs/a -o json"), Err: "cannot both go to stdout"},
		{Args: words("get jobs/a --if-none-match *"), Err: "can never hold"},
		{Args: words("get jobs/a?snapshot=" + at), Err: taken},
		{Args: words("get jobs/a?snapshot=1"), Err: taken},

		{Args: words("get jobs/a --offset 10 --follow"), Err: taken},
		{Args: words("get jobs/a --offset -1"), Err: "is negative"},
		{Args: words("get jobs/a --follow --file out"), Err: "--follow never completes a file"},

		{Args: words("delete jobs/a --snapshots --if-unmodified-since 2026-01-31T12:00:05Z"), Err: taken},
		{Args: words("delete jobs"), Err: "names a container"},
		{Args: words("delete jobs/a?snapshot=" + at + " --snapshots"), Err: "--snapshots is for a blob"},
	})
}

func TestChangeFlags(t *testing.T) {
	clitest.CheckUsage(t, NewCmd, []clitest.UsageCase{
		{Args: []string{"update", "jobs/a", "--jq", ".n += 1"}, Err: taken},
		{Args: words("update jobs/a --set a.b=1 --set c=x"), Err: taken},
		{Args: words("update jobs/a --exec sort --create --dry-run --op-id x --max-attempts 3 --lease-id 00000000-0000-4000-8000-00000000000A"), Err: taken},
		{Args: words("update jobs/a -f - --if-none-match *"), Err: taken},
		{Args: words("update jobs/a"), Err: "no change is given"},
		{Args: words("update jobs/a --jq . --exec cat"), Err: "--exec and --jq cannot be given together"},
		{Args: []string{"update", "jobs/a", "--jq", ".n +"}, Err: "--jq: "},
		{Args: words("update jobs/a --jq nosuch(1)"), Err: "--jq: "},
		{Args: words("update jobs/a --set novalue"), Err: "not path=value"},
		{Args: words("update jobs/a --set a..b=1"), Err: "empty part"},
		{Args: words("update jobs/a --jq . --create --if-match x"), Err: "--create and --if-match"},
		{Args: words("update jobs/a --jq . --max-attempts 0"), Err: "not positive"},
		{Args: words("update jobs/a --jq . --max-size 0"), Err: "--max-size 0 is not positive"},
		{Args: words("update jobs/a --jq . --lease-id abc"), Err: "not a GUID"},
		{Args: words("update https://x.blob.core.windows.net/jobs/a?snapshot=2026-01-01T00:00:00.0000000Z --jq ."), Err: "cannot be changed"},
		{Args: words("update jobs/a?snapshot=2026-01-31T12:00:05.1234567Z --jq ."), Err: "cannot be changed"},

		{Args: words("edit jobs/a --if-match *"), Err: taken},
		{Args: words("edit jobs/a --if-none-match *"), Err: taken},
		{Args: words("edit jobs/a --create --if-match x"), Err: "--create and --if-match"},
	})
}

func TestReadFlags(t *testing.T) {
	clitest.CheckUsage(t, NewCmd, []clitest.UsageCase{
		{Args: []string{"show", "$root/a", "--if-modified-since", "Sat, 31 Jan 2026 12:00:05 GMT"}, Err: taken},
		{Args: words("show jobs/a --if-modified-since yesterday"), Err: "is not a time"},
		{Args: words("list jobs/ --prefix a/ --max 2 --snapshots"), Err: taken},
		{Args: words("list jobs --max -1"), Err: "negative"},
		{Args: words("list jobs/a"), Err: "names a blob"},
		{Args: []string{"metadata", "show", "jobs/a", "--if-tags", `"x" = 'y'`}, Err: taken},
	})
}

func TestPairFlags(t *testing.T) {
	clitest.CheckUsage(t, NewCmd, []clitest.UsageCase{
		{Args: words("metadata set jobs/a"), Err: taken},
		{Args: words("metadata set jobs/a K=v l=w"), Err: taken},
		{Args: words("metadata set jobs/a k=1 K=2"), Err: "given twice"},
		{Args: words("metadata set"), Err: "<container/blob> is missing"},
		{Args: words("metadata update jobs/a k=v --remove L --op-id 7"), Err: taken},
		{Args: words("metadata update jobs/a"), Err: "no change is given"},
		{Args: words("tags update jobs/a --remove L"), Err: taken},
		{Args: words("tags update jobs/a"), Err: "no change is given"},
	})
}

func TestCopyFlags(t *testing.T) {
	id := "1f812371-a41d-49e6-b123-f4b542e851c5"
	clitest.CheckUsage(t, NewCmd, []clitest.UsageCase{
		{Args: words("copy jobs/a jobs/b --source-if-match 0x8D --if-none-match * --wait --metadata K=v"), Err: taken},
		{Args: words("copy jobs/a"), Err: "<container/blob> to copy it to is missing"},
		{Args: words("copy jobs/a jobs/b --source-if-none-match *"), Err: "can never hold"},
		{Args: words("copy jobs/a jobs/b --source-if-match a --source-if-none-match b"), Err: "--source-if-match and --source-if-none-match cannot both be given"},
		{Args: words("abort-copy jobs/b " + id), Err: taken},
		{Args: words("abort-copy jobs/b"), Err: "<copy-id> is missing"},
		{Args: words("abort-copy jobs/b x"), Err: "not the id of a copy"},
	})
}

func TestBlockAndPageFlags(t *testing.T) {
	clitest.CheckUsage(t, NewCmd, []clitest.UsageCase{
		{Args: words("block list jobs/a --lease-id x"), Err: "not a GUID"},
		{Args: words("block commit jobs/a one three"), Err: "same length"},
		{Args: words("page create jobs/a"), Err: "--size is missing"},
		{Args: words("page create jobs/a --size 0"), Err: taken},
		{Args: words("page create jobs/a --size 100"), Err: "--size 100 is not a multiple of 512"},
		{Args: words("page put jobs/a --offset 100 -f x"), Err: "--offset 100 is not a multiple of 512"},
		{Args: words("page clear jobs/a"), Err: "--size 0 is not a positive multiple of 512"},
		{Args: words("page clear jobs/a --size 512"), Err: taken},
	})
}
