package capacity

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// crowdedFrom is the part of its ceiling from which the clients of a pattern meet each other: the bill is then the larger one.
const crowdedFrom = 0.1

// planned is the part of its ceiling for which a shard or a queue is planned.
const planned = 0.5

// At is what a pattern comes to for a number of clients.
type At struct {
	Operations float64 // a second
	Requests   float64 // a second
	Dollars    float64 // a month
	Resources  int     // blobs, queues or groups that the load needs
	Over       string  // the limit that does not allow it; empty: none
}

// For returns what p comes to if each of so many clients makes PerMinute operations a minute.
func (p Pattern) For(clients float64) At {
	at := At{Operations: clients * PerMinute / 60, Resources: 1}
	each := p.Alone
	switch {
	case p.Hourly != (Bill{}):
		at.Operations, each = clients, p.Hourly.Times(1.0/3600)
		if clients*each.Requests() > PerBlob {
			at.Over = "the blob"
		}
	case p.Ceiling > 0 && p.Spreads:
		at.Resources = max(1, int(math.Ceil(at.Operations/(planned*p.Ceiling))))
	case p.Ceiling > 0 && at.Operations > p.Ceiling:
		at.Over = whole(p.Ceiling) + " a second"
	}
	if p.Crowded != (Bill{}) && at.Operations > crowdedFrom*p.Ceiling*float64(at.Resources) {
		each = p.Crowded
	}
	writes := at.Operations
	if p.Fold > 0 {
		writes = min(writes, p.Fold)
	}
	at.Requests, at.Dollars = writes*each.Requests(), writes*each.Dollars()*secondsAMonth
	if at.Over == "" && at.Requests > PerAccount {
		at.Over = "the account"
	}
	return at
}

// Clients are the columns of the page.
var Clients = []float64{1, 100, 10_000, 1_000_000}

// Page returns the text of .github/docs/capacity.md.
func Page() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Capacity

This page says what the patterns cost, which limit of the service binds, and which pattern to use beyond it.
`+"`go test ./cmd/internal/capacity -args -update`"+` writes it, from numbers that the same test measures on a simulated service. That service is %[1]d ms away
and accepts %[2]s requests a second for each blob. A longer round trip lowers the ceilings that come from conflicts in proportion, but does not
change the number of requests. [Performance](performance.md#locks) says why its figures for the same operations differ.

## Assumptions

| | |
|---|---:|
| requests a second on one blob | %[2]s |
| entities a second in one partition of a table | %[3]s |
| messages a second in one queue | %[4]s |
| requests a second of one account | %[5]s |
| 10,000 writes of blobs | $%[6]v |
| 10,000 reads of blobs, polls and leases | $%[7]v |
| 10,000 requests to tables | $%[8]v |
| 10,000 requests to queues | $%[9]v |
| operations of each client | %[10]d a minute |

The limits are the service's published targets. The prices approximate the list prices for locally redundant storage in the
hot tier, and are parameters in `+"`cmd/internal/capacity/limits_test.go`"+`. Storage, transfer and compute are extra. A month has 30 days.

## One operation

| pattern | requests | price of a million | one resource takes | limited by |
|---|---:|---:|---:|---|
`, Trip, whole(PerBlob), whole(PerPartition), whole(PerQueue), whole(PerAccount), BlobWrites, BlobOthers, Entities, Messages, PerMinute)
	for _, p := range Patterns {
		if p.Op == "" {
			fmt.Fprintf(&b, "| %s | %s an hour for each client | $%s | %s clients | %s |\n", p.Name, whole(p.Hourly.Requests()), money(1e6*p.Hourly.Dollars()),
				whole(math.Floor(PerBlob*3600/p.Hourly.Requests()/100)*100), p.Bound)
			continue
		}
		requests, ceiling := short(p.Alone.Requests()), "–"
		dollars := "$" + money(1e6*p.Alone.Dollars())
		if p.Crowded != (Bill{}) {
			requests += "; contended " + short(p.Crowded.Requests())
			dollars += "; $" + money(1e6*p.Crowded.Dollars())
		}
		if p.Ceiling > 0 {
			ceiling = whole(p.Ceiling) + " " + p.Op + "s a second"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", p.Name, requests, dollars, ceiling, p.Bound)
	}
	b.WriteString("\n## Many clients\n\nRequests a second, and dollars a month. A load beyond a limit is in bold, with the limit.\n\n| pattern |")
	for _, n := range Clients {
		fmt.Fprintf(&b, " %s |", plural(n))
	}
	b.WriteString(" then |\n|---|" + strings.Repeat("---:|", len(Clients)) + "---|\n")
	for _, p := range Patterns {
		fmt.Fprintf(&b, "| %s |", p.Name)
		for _, n := range Clients {
			at := p.For(n)
			cell := fmt.Sprintf("%s/s, $%s", short(at.Requests), money(at.Dollars))
			if at.Resources > 1 {
				cell += fmt.Sprintf(", %s %s", whole(float64(at.Resources)), p.Unit)
			}
			if at.Over != "" {
				cell = fmt.Sprintf("**beyond %s**", at.Over)
				if at.Over == "the account" {
					cell += fmt.Sprintf(": %s/s, $%s", short(at.Requests), money(at.Dollars))
				}
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
		fmt.Fprintf(&b, " %s |\n", p.Then)
	}
	b.WriteString(`
All clients of a row work on one subject: one document, one counter, one lock. Clients of different subjects do not contend; together they
only count against the account's limit. For an election the clients are candidates, and the money is the cost of waiting. Critical sections
of locks and semaphores are empty: during longer ones, waiters poll less often. Shards and queues are planned for half of what they take.

azconc records what was handled: markers, the marks of an Inbox, and results that have a Keep. It deletes these records along the way, by their dates,
for less than 1 % of the requests. So the time for which they are kept bounds the storage, however long the program runs: 100 messages a second with an
Inbox, which keeps a mark of about 300 bytes for 15 days, need 39 GB.

`)
	look, renewal := BlobWrites/10000*secondsAMonth/5.25, BlobOthers/10000*secondsAMonth/20
	fmt.Fprintf(&b, "A member of a group at rest (package `pessimistic/group`, with leases of 60 s) polls every 5.25 s on average and renews its own lease every 20 s:\n"+
		"0.24 requests a second, $%s a month, because a list is billed as a write. Each part costs its member a renewal every 20 s, $%s a month. 16 parts over 4\n"+
		"members come to %s requests a second and $%s, 256 parts over 40 members to %s and $%s.\n\n",
		money(look+renewal), money(renewal), short(groupAtRest(16, 4)), money(4*(look+renewal)+16*renewal),
		short(groupAtRest(256, 40)), money(40*(look+renewal)+256*renewal))
	for _, n := range Clients[1:] {
		fmt.Fprintf(&b, "- **%s, %s operations a second:** %s\n", plural(n), short(n*PerMinute/60), fits(n))
	}
	return b.String()
}

// groupAtRest returns the requests a second of a group, which a test of that package bounds.
func groupAtRest(parts, members float64) float64 { return members/5.25 + (members+parts)/20 }

// fits lists the patterns that take a load, and those that do not.
func fits(clients float64) string {
	var yes, no []string
	for _, p := range Patterns {
		if p.For(clients).Over == "" {
			yes = append(yes, p.Name)
		} else {
			no = append(no, p.Name)
		}
	}
	if len(no) == 0 {
		return "every pattern is within the limits."
	}
	return "within the limits: " + strings.Join(yes, "; ") + ". Beyond a limit: " + strings.Join(no, "; ") + "."
}

func plural(clients float64) string {
	if clients == 1 {
		return "1 client"
	}
	return whole(clients) + " clients"
}

// whole writes a number with commas.
func whole(n float64) string {
	text := strconv.FormatFloat(math.Round(n), 'f', 0, 64)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// short writes a number with two digits, or whole.
func short(n float64) string {
	if n >= 10 {
		return whole(n)
	}
	return strconv.FormatFloat(n, 'g', 2, 64)
}

// money writes dollars.
func money(d float64) string {
	switch {
	case d >= 10:
		return whole(d)
	case d >= 0.01:
		return strconv.FormatFloat(d, 'f', 2, 64)
	}
	return "0.00"
}
