package root

import (
	"fmt"
	"strings"
	"testing"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
)

// TestAConditionAnIDOrAKeyIsCheckedHoweverItIsGiven gives the same wrong values as flags, in arguments, in files and in JSON lines. An
// "if_match" that was empty made the line of a transaction unconditional.
func TestAConditionAnIDOrAKeyIsCheckedHoweverItIsGiven(t *testing.T) {
	line := func(format string, args ...any) string { return fmt.Sprintf(format, args...) }
	var rows strings.Builder
	for i := range 101 {
		fmt.Fprintf(&rows, `{"op":"put","row":"%d","entity":{"n":1}}`, i)
	}
	for _, c := range []struct{ args, stdin, want string }{
		{"table transact jobs/eu --file -", `{"op":"merge","row":"17","entity":{"n":1},"if_match":""}`, "if_match is empty"},
		{"table transact jobs/eu --file -", `{"op":"merge","row":"17","entity":{"n":1},"if_match":" "}`, "if_match is empty"},
		{"table transact jobs/eu --file -", `{"op":"merge","row":"17","entity":{"n":1},"if_match":null}`, "if_match is empty"},
		{"table transact jobs/eu --file -", `{"op":"delete","row":"17","if_match":""}`, "if_match is empty"},
		{"table transact jobs/eu --file -", `{"op":"insert","row":"17","entity":{"n":1},"if_match":""}`, "if_match is empty"},
		{"table transact jobs/eu --file -", `{"op":"put","row":"17","entity":{"n":1},"if_match":"null"}`, "is not a table's ETag"},
		{"table transact jobs/eu --file -", `{"op":"put","row":"17","entity":{"n":1},"if_match":"0x8D"}`, "is not a table's ETag"},
		{"table transact jobs/eu --file -", `{"op":"put","row":"17","entity":null}`, "has no entity"},
		{"table transact jobs/eu --file -", `{"op":"put","row":"17","entity":{"PartitionKey":"us","n":1}}`, "PartitionKey"},
		{"table transact jobs/eu --file -", `{"op":"insert","row":"17","entity":{"RowKey":"18","n":1}}`, "RowKey"},
		{"table transact jobs/eu --file -", `{"op":"merge","row":"17","entity":{"RowKey":17,"n":1}}`, "RowKey"},
		{"table transact jobs/eu --file -", `{"op":"expect","row":"17","entity":{"RowKey":"18","n":1}}`, "RowKey"},
		{"table transact jobs/eu --file -", `{"op":"put","row":"17","entity":{"azconcoperations":"x"}}`, "reserved"},
		{"table transact jobs/eu --file -", `{"op":"put","row":"1/7","entity":{"n":1}}`, "/"},
		{"table transact jobs/eu --file -", `{"op":"delete","row":"1\u0007"}`, "control character"},
		{"table transact jobs/eu --file -", `{"op":"delete","row":"1\u0085"}`, "control character"},
		{"table transact jobs/eu --file -", line(`{"op":"delete","row":"%s"}`, strings.Repeat("x", 513)), "512"},
		{"table transact jobs/eu --file -", line(`{"op":"delete","row":"%s"}`, strings.Repeat("😀", 257)), "512"},
		{"table transact jobs/eu --file -", "{\"op\":\"delete\",\"row\":\"1\xff\"}", "UTF-8"},
		{"table transact jobs/eu --file -", "{\"op\":\"put\",\"row\":\"1\",\"entity\":{\"a\":\"\xff\"}}", "UTF-8"},
		{"table transact jobs/e\x1bu --file -", `{"op":"delete","row":"1"}`, "control character"},
		{"table transact jobs/eu --file -", rows.String(), "the file is about 101 rows: a transaction takes 100"},

		{"table get jobs/eu/1\xff", "", "UTF-8"},
		{"table get jobs/eu/1\u0085", "", "control character"},
		{"table get jobs/eu/" + strings.Repeat("x", 513), "", "512"},
		{"table insert jobs/eu/17 --file -", `{"PartitionKey":"us","n":1}`, "PartitionKey"},
		{"table insert jobs/eu/17 --file -", "{\"a\":\"\xff\"}", "UTF-8"},
		{"table insert jobs/eu/17 --set a=\xff", "", "UTF-8"},
		{"table update jobs/eu/17 --set a=\xff", "", "UTF-8"},
		{"table update jobs/eu/17 --set é\xff=1", "", "UTF-8"},
		{"blob update jobs/a --set a=\xff", "", "UTF-8"},
		{"blob update jobs/a --set a\xff=1", "", "UTF-8"},
		{"queue consume orders --inbox jobs/e\xffu -- true", "", "UTF-8"},

		{"blob put jobs/a --file - --if-match '0x8D'", "x", "not an ETag"},
		{"blob put jobs/a --file - --if-match W/\"0x8D\"", "x", "not an ETag"},
		{"blob put jobs/a --file - --if-match W/0x8D", "x", "not an ETag"},
		{"blob put jobs/a --file - --if-none-match null", "x", "not an ETag"},
		{"blob delete jobs/a --if-match \"\"", "", "not an ETag"},
		{"lock break jobs/nightly --if-match '0x8D'", "", "not an ETag"},
		{"table merge jobs/eu/17 --set n=1 --if-match 0x8D", "", "not a table's ETag"},
		{"table merge jobs/eu/17 --set n=1 --if-match null", "", "not a table's ETag"},
		{"blob delete jobs/a --lease-id null", "", "not a GUID"},
		{"blob delete jobs/a --if-unmodified-since null", "", "not a time"},
		{"queue delete-message orders 1f3c --pop-receipt null", "", "--pop-receipt"},
		{"queue delete-message orders null --pop-receipt AgAA", "", "message"},

		{"queue consume orders --exec ./h --manifest keda --account-name c --image a\tb", "", "--image"},
		{"queue consume orders --exec ./h --manifest keda --account-name c --image -x", "", "--image"},
		{"queue consume orders --exec ./h --manifest keda --account-name c --image i --identity a\tb", "", "--identity"},
		{"queue consume orders --exec ./h --metrics 127.0.0.1:99999", "", "--metrics"},
		{"queue consume orders --exec ./h --metrics 127.0.0.1:nosuch", "", "--metrics"},
	} {
		stdin := func(s *cli.Streams) { s.In = strings.NewReader(c.stdin) }
		r := runOn(t.Context(), silent(t), stdin, nil, strings.Split(c.args, " ")...)
		if r.code != fail.ExitUsage || r.out != "" || !strings.Contains(r.stderr, c.want) {
			t.Errorf("azconc %q with %q: exit %d, %q, want 2 and %q", c.args, c.stdin, r.code, r.stderr, c.want)
		}
	}
}
