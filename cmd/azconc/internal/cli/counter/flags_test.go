package counter

import (
	"strings"
	"testing"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/clitest"
)

func TestCounterFlags(t *testing.T) {
	visits := clitest.Ref("jobs", "visits")
	clitest.CheckFlags(t, createVerb(), []clitest.FlagCase[shapeOptions]{
		{Args: []string{"jobs/visits"}, Want: shapeOptions{Counter: visits, Shards: 16}},
		{Args: []string{"jobs/visits", "--shards", "4"}, Want: shapeOptions{Counter: visits, Shards: 4}},
		{Args: []string{"jobs/visits", "--shards", "0"}, Err: "--shards 0: it must be 1 to 1000"},
		{Args: []string{"jobs"}, Err: "names a container"},
		{Args: []string{"jobs/" + strings.Repeat("x", 1001)}, Err: "1001 bytes"},
		{Args: nil, Err: "<container/counter> is missing"},
	})
	clitest.CheckFlags(t, growVerb(), []clitest.FlagCase[shapeOptions]{
		{Args: []string{"jobs/visits", "--shards", "1000"}, Want: shapeOptions{Counter: visits, Shards: 1000}},
		{Args: []string{"jobs/visits", "--shards", "1001"}, Err: "it must be 1 to 1000"},
		{Args: []string{"jobs/visits"}, Err: "--shards is missing"},
	})
	clitest.CheckFlags(t, addVerb(), []clitest.FlagCase[addOptions]{
		{Args: []string{"jobs/visits"}, Want: addOptions{Counter: visits, N: 1}},
		{Args: []string{"jobs/visits", "12"}, Want: addOptions{Counter: visits, N: 12}},
		{Args: []string{"jobs/visits", "--", "-12"}, Want: addOptions{Counter: visits, N: -12}},
		{Args: []string{"jobs/visits", "1.5"}, Err: "not a whole number"},
		{Args: []string{"jobs/visits", "9223372036854775808"}, Err: "not a whole number"},
		{Args: []string{"jobs/visits", "1", "2"}, Err: `unexpected argument "2"`},
		{Args: []string{"jobs/visits", "3", "--op-id", "order-17"}, Want: addOptions{Counter: visits, N: 3, OperationID: "order-17"}},
	})
	clitest.CheckFlags(t, getVerb(), []clitest.FlagCase[nameOptions]{
		{Args: []string{"jobs/visits"}, Want: nameOptions{Counter: visits}},
		{Args: []string{"jobs/visits", "1"}, Err: "unexpected argument"},
	})
	clitest.CheckFlags(t, deleteVerb(), []clitest.FlagCase[nameOptions]{
		{Args: []string{"jobs/visits"}, Want: nameOptions{Counter: visits}},
	})
}
