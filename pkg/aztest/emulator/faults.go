package emulator

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// faultKind is a kind of fault, and what it takes beside a rate.
type faultKind struct {
	kind   aztest.FaultKind
	delay  time.Duration // if the kind takes one: its default
	status int           // if the kind takes one: its default
	why    string
}

var faultKinds = []faultKind{
	{aztest.LoseAnswer, 0, 0, "carried out, and the connection breaks before the response"},
	{aztest.LoseRequest, 0, 0, "not carried out, and the connection breaks"},
	{aztest.CutAnswer, 0, 0, "carried out, and the connection breaks in the middle of the response"},
	{aztest.AnswerTwice, 0, 0, "carried out twice; the response is the second one"},
	{aztest.RepeatAtOnce, 0, 0, "carried out twice; the response is the first one"},
	{aztest.RepeatLater, time.Second, 0, "carried out, and once more after DELAY"},
	{aztest.CommitAfterBreak, time.Second, 0, "the connection breaks, and it is carried out after DELAY"},
	{aztest.FailAfterCommit, 0, 500, "carried out, and answered with STATUS"},
	{aztest.Throttle, 0, 0, "503 ServerBusy"},
	{aztest.Answer, 0, 500, "not carried out, and answered with STATUS"},
	{aztest.Slow, time.Second, 0, "carried out after DELAY"},
	{aztest.Hang, 0, 0, "no response until the client gives up"},
	{aztest.Page, 0, 200, "an HTML page with STATUS, as from a proxy"},
}

// FaultHelp describes the kinds of ParseFaults, one a line, indented.
func FaultHelp() string {
	var b strings.Builder
	for _, k := range faultKinds {
		usage := string(k.kind) + "=RATE"
		if k.delay > 0 {
			usage += ":DELAY"
		}
		if k.status > 0 {
			usage += ":STATUS"
		}
		fmt.Fprintf(&b, "  %-32s %s\n", usage, k.why)
	}
	return b.String()
}

// ParseFaults reads faults from a text: "KIND=RATE[:DELAY][:STATUS][@OPERATION]", with commas between them. RATE is a
// percentage or a fraction. OPERATION is a name of the REST reference, such as Put Blob, or writes. A request meets at
// most one fault: the first one whose lot falls on it. The error names the fault and what is wrong with it.
func ParseFaults(text string) ([]aztest.Fault, error) {
	var faults []aztest.Fault
	for one := range strings.SplitSeq(text, ",") {
		f, err := parseFault(strings.TrimSpace(one))
		if err != nil {
			return nil, err
		}
		faults = append(faults, f)
	}
	return faults, nil
}

func parseFault(text string) (aztest.Fault, error) {
	rest, operation, selected := strings.Cut(text, "@")
	name, value, rated := strings.Cut(rest, "=")
	i := slices.IndexFunc(faultKinds, func(k faultKind) bool { return string(k.kind) == name })
	if i < 0 {
		var names []string
		for _, k := range faultKinds {
			names = append(names, string(k.kind))
		}
		return aztest.Fault{}, fmt.Errorf("%q is no kind of fault: give one of %s", name, strings.Join(names, ", "))
	}
	kind := faultKinds[i]
	rate, parameters, _ := strings.Cut(value, ":")
	probability, ok := parseRate(rate)
	if !rated || !ok {
		return aztest.Fault{}, fmt.Errorf("%q has no rate from above 0 to 100%%: %s=5%%", text, name)
	}
	f := aztest.Fault{Kind: kind.kind, Probability: probability, Delay: kind.delay, Status: kind.status}
	if kind.status == 500 {
		f.Code = "InternalError"
	}
	if kind.kind == aztest.Throttle {
		f.RetryAfter = time.Second
	}
	for parameter := range strings.SplitSeq(parameters, ":") {
		delay, err := time.ParseDuration(parameter)
		status, err2 := strconv.Atoi(parameter)
		switch {
		case parameter == "":
		case kind.delay > 0 && err == nil && delay > 0:
			f.Delay = delay
		case kind.status > 0 && err2 == nil && status >= 200 && status <= 599:
			f.Status, f.Code = status, cmp.Or(codes[status], f.Code)
		default:
			return aztest.Fault{}, fmt.Errorf("%q: %s is neither a delay nor a status that %s takes", text, parameter, name)
		}
	}
	switch {
	case selected && operation == "":
		return aztest.Fault{}, fmt.Errorf("%q names no operation: give writes, or one of the REST reference, such as Put Blob", text)
	case operation == "writes":
		f.Match = aztest.Writes
	case selected:
		if _, there := storage.Operations[operation]; !there { // a fault of it would never happen
			return aztest.Fault{}, fmt.Errorf("%q: %q is no operation: give writes, or one of the REST reference, such as Put Blob", text, operation)
		}
		f.Match = aztest.Op(operation)
	}
	return f, nil
}

// codes are the error codes that go with a status, if none is given.
var codes = map[int]string{403: "AuthorizationFailure", 408: "RequestTimeout", 409: "Conflict", 412: "ConditionNotMet", 429: "TooManyRequests", 503: "ServerBusy", 504: "GatewayTimeout"}

// parseRate reads "5%" or "0.05".
func parseRate(text string) (float64, bool) {
	number, percent := strings.CutSuffix(text, "%")
	rate, err := strconv.ParseFloat(number, 64)
	if percent {
		rate /= 100
	}
	return rate, err == nil && rate > 0 && rate <= 1
}
