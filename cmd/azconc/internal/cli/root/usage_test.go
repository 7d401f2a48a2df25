package root

import (
	"strings"
	"testing"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
)

// TestAMistakeIsNamedBeforeAnythingIsSent runs command lines without an account. A · is a space within an argument.
func TestAMistakeIsNamedBeforeAnythingIsSent(t *testing.T) {
	const taken = "no account is given" // which is looked for last
	for _, c := range []struct{ line, want string }{
		{"blob put jobs/a/b.json --file -", taken},
		{"blob put jobs/a -f x --metadata K=v=w --metadata l= --content-type text/plain --cache-control no-store --content-encoding gzip", taken},
		{"blob put jobs/a -f x --if-none-match *", taken},
		{"blob put jobs/a -f x --if-match 0x8D", taken},
		{"blob put jobs/a", "--file is missing"},
		{"blob put jobs -f x", "names a container"},
		{"blob put -f x", "<container/blob> is missing"},
		{"blob put jobs/a b -f x", "unexpected argument"},
		{"blob put jobs/a -f x --metadata novalue", "not name=value"},
		{"blob put jobs/a -f x --metadata azconclineage=x", "reserved for azconc"},
		{"blob put jobs/a -f x --if-match a --if-none-match b", "--if-match and --if-none-match cannot both be given"},
		{"blob put jobs/a -f x --wat", "unknown flag: --wat"},
		{"blob put jobs/a -f x -o yaml", "none of text, json, table and tsv"},
		{"blob put jobs/a -f x --timeout -1s", "not positive"},
		{"blob get jobs/a", taken},
		{"blob get jobs/a -f out -o json", taken},
		{"blob get jobs/a --if-match x --if-none-match y", taken},
		{"blob get jobs/a -o json", "cannot both go to stdout"},
		{"blob get jobs/a --if-none-match *", "can never hold"},
		{"blob get jobs/a?snapshot=2026-01-31T12:00:05.1234567Z", taken},
		{"blob get jobs/a?snapshot=1", taken},
		{"blob get jobs/a --offset 10 --follow", taken},
		{"blob get jobs/a --offset -1", "is negative"},
		{"blob get jobs/a --follow --file out", "--follow never completes a file"},
		{"blob delete jobs/a --snapshots --if-unmodified-since 2026-01-31T12:00:05Z", taken},
		{"blob delete jobs", "names a container"},
		{"blob delete jobs/a?snapshot=2026-01-31T12:00:05.1234567Z --snapshots", "--snapshots is for a blob"},

		{"blob update jobs/a --jq .n·+=·1", taken},
		{"blob update jobs/a --set a.b=1 --set c=x", taken},
		{"blob update jobs/a --exec sort --create --dry-run --op-id x --max-attempts 3 --lease-id 00000000-0000-4000-8000-00000000000A", taken},
		{"blob update jobs/a -f - --if-none-match *", taken},
		{"blob update jobs/a", "no change is given"},
		{"blob update jobs/a --jq . --exec cat", "--exec and --jq cannot be given together"},
		{"blob update jobs/a --jq .n·+", "--jq: "},
		{"blob update jobs/a --jq nosuch(1)", "--jq: "},
		{"blob update jobs/a --set novalue", "not path=value"},
		{"blob update jobs/a --set a..b=1", "empty part"},
		{"blob update jobs/a --jq . --create --if-match x", "--create and --if-match"},
		{"blob update jobs/a --jq . --max-attempts 0", "not positive"},
		{"blob update jobs/a --jq . --max-size 0", "--max-size 0 is not positive"},
		{"blob update jobs/a --jq . --lease-id abc", "not a GUID"},
		{"blob update https://x.blob.core.windows.net/jobs/a?snapshot=2026-01-01T00:00:00.0000000Z --jq .", "cannot be changed"},
		{"blob update jobs/a?snapshot=2026-01-31T12:00:05.1234567Z --jq .", "cannot be changed"},
		{"blob edit jobs/a --if-match *", taken},
		{"blob edit jobs/a --if-none-match *", taken},
		{"blob edit jobs/a --create --if-match x", "--create and --if-match"},

		{"blob show $root/a --if-modified-since Sat,·31·Jan·2026·12:00:05·GMT", taken},
		{"blob show jobs/a --if-modified-since yesterday", "is not a time"},
		{"blob list jobs/ --prefix a/ --max 2 --snapshots", taken},
		{"blob list jobs --max -1", "negative"},
		{"blob list jobs/a", "names a blob"},
		{`blob metadata show jobs/a --if-tags "x"·=·'y'`, taken},

		{"blob metadata set jobs/a", taken},
		{"blob metadata set jobs/a K=v l=w", taken},
		{"blob metadata set jobs/a k=1 K=2", "given twice"},
		{"blob metadata set", "<container/blob> is missing"},
		{"blob metadata update jobs/a k=v --remove L --op-id 7", taken},
		{"blob metadata update jobs/a", "no change is given"},
		{"blob tags update jobs/a --remove L", taken},
		{"blob tags update jobs/a", "no change is given"},

		{"blob copy jobs/a jobs/b --source-if-match 0x8D --if-none-match * --wait --metadata K=v", taken},
		{"blob copy jobs/a", "<container/blob> to copy it to is missing"},
		{"blob copy jobs/a jobs/b --source-if-none-match *", "can never hold"},
		{"blob copy jobs/a jobs/b --source-if-match a --source-if-none-match b", "--source-if-match and --source-if-none-match cannot both be given"},
		{"blob abort-copy jobs/b 1f812371-a41d-49e6-b123-f4b542e851c5", taken},
		{"blob abort-copy jobs/b", "<copy-id> is missing"},
		{"blob abort-copy jobs/b x", "not the id of a copy"},

		{"blob block list jobs/a --lease-id x", "not a GUID"},
		{"blob block commit jobs/a one three", "same length"},
		{"blob page create jobs/a", "--size is missing"},
		{"blob page create jobs/a --size 0", taken},
		{"blob page create jobs/a --size 100", "--size 100 is not a multiple of 512"},
		{"blob page put jobs/a --offset 100 -f x", "--offset 100 is not a multiple of 512"},
		{"blob page clear jobs/a --offset 0 --size 0", "--size 0 is not a positive multiple of 512"},
		{"blob page clear jobs/a --offset 0 --size 512", taken},

		{"container create Jobs", "not a container's name"},
		{"container create", "<container> is missing"},
		{"container delete jobs --if-match x", "unknown flag: --if-match"},
		{"container delete jobs --if-modified-since 2026-01-01 --if-unmodified-since 2026-01-01", "cannot both be given"},
		{"container show $web", taken},
		{"container list --prefix j", taken},
		{"container list jobs", "unexpected argument"},
		{"container metadata set", "<container> is missing"},
		{"container metadata update jobs", "no change is given"},

		{"demo --scene nowhere", `--scene "nowhere" is not the name of a scene`},
		{"demo --account-name a --engine azurite", "--engine starts an emulator"},

		{"dev run", "<command> is missing"},
		{"dev run --", "<command> is missing"},
		{"dev run -o json -- true", "-o json does not apply to azconc dev run"},
		{"dev run --engine cosmos true", `--engine "cosmos" is neither memory nor azurite`},
		{"dev run --faults loss=5% true", `--faults: "loss" is no kind of fault: give one of lose-answer, `},
		{"dev run --engine azurite --faults hang=5% true", "--faults are those of the service in memory"},
		{"dev up --faults hang=1%@Put·Blobs", `"Put Blobs" is no operation`},
		{"dev up --engine memory --location data", "--location data keeps data, and the service in memory keeps none"},
		{"dev up data", "unexpected argument"},

		{"tf run states/s", "<command> is missing"},
		{"tf run states/s x -- tofu", `unexpected argument "x"`},
		{"tf run -- tofu", "<container/state> is missing"},
		{"tf run states -- tofu", "does not name a state"},
		{"tf run states/s --duration 61s -- tofu", "--duration 1m1s is not between 15s and 1m"},
		{"tf run states/s --duration infinite -- tofu", "not a duration"},
		{"tf run states/s -o json -- tofu", "-o json"},

		{"bench --workload blobs", `--workload "blobs" is none of blob, lock`},
		{"bench --clients 0", "--clients 0 is not between 1 and 64"},
		{"bench --clients 8,8", "--clients has 8 twice"},
		{"bench --for 0s", "--for"},
		{"bench --max-requests 0", "--max-requests"},
		{"bench here", "unexpected argument"},

		{"queue consume orders --exec ./handle --manifest helm --image i", `--manifest "helm"`},
		{"queue consume orders --exec ./handle --image i", "--image needs --manifest"},
		{"queue consume orders --exec ./handle --manifest keda --image i", "without an account"},
		{"queue consume orders --exec ./handle --secret s", "--secret needs --manifest"},
		{"queue consume orders --exec ./handle --max-replicas 3", "--max-replicas needs --manifest"},
		{"queue consume orders --exec ./handle --manifest keda --image i --secret s --identity j", "--secret cannot be given"},
		{"queue consume orders --exec ./handle --manifest aca-job --image i --account-name c --secret s --identity j --client-id c --environment e", "--secret cannot be given"},
		{"queue consume orders --exec ./handle --manifest keda --image i --account-name c --min-replicas 3 --max-replicas 2", "--min-replicas 3"},
		{"queue consume orders --exec ./handle --manifest keda --image i --account-name c --max-replicas 0", "--max-replicas 0"},
	} {
		args := strings.Fields(c.line)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "·", " ")
		}
		if r := runOn(t.Context(), silent(t), nil, noAccount, args...); r.code != fail.ExitUsage || r.out != "" || !strings.Contains(r.stderr, c.want) {
			t.Errorf("azconc %q: exit %d, %s, want a usage error about %q", args, r.code, r.stderr, c.want)
		}
	}
}
