package bench

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/workload"
)

// style has the colours of the page, for light and dark.
const style = `:root{color-scheme:light dark;--page:#fff;--text:#1b1f24;--soft:#57606a;--grid:#d8dee4;--s0:#0b62d0;--s1:#b3450b;--s2:#1a7f37;--s3:#7a3fc4;--s4:#9a6700}
@media (prefers-color-scheme:dark){:root{--page:#0d1117;--text:#e6edf3;--soft:#9aa4af;--grid:#30363d;--s0:#6cb0ff;--s1:#ff9b5c;--s2:#5fd07a;--s3:#c9a2ff;--s4:#e3b341}}
body{margin:0 auto;padding:1.5rem;max-width:66rem;background:var(--page);color:var(--text);font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.5rem;margin:0}h2{font-size:1.15rem;margin:2rem 0 0}p{margin:.3rem 0}.soft{color:var(--soft)}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));gap:1rem;margin:.6rem 0}
figure{margin:0}figcaption{font-size:.9rem;color:var(--soft)}svg{width:100%;height:auto;display:block}
.legend{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;padding:0;margin:.5rem 0;list-style:none}.legend svg{width:2.2rem;height:.9rem;display:inline-block;vertical-align:middle;margin-right:.35rem}
.grid{stroke:var(--grid);stroke-width:1}.tick{fill:var(--soft);font-size:12px}.line{fill:none;stroke-width:2}
.s0{fill:var(--s0);stroke:var(--s0)}.s1{fill:var(--s1);stroke:var(--s1)}.s2{fill:var(--s2);stroke:var(--s2)}.s3{fill:var(--s3);stroke:var(--s3)}.s4{fill:var(--s4);stroke:var(--s4)}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums}th,td{padding:.15rem .7rem;text-align:right;border-bottom:1px solid var(--grid);white-space:nowrap}
th{color:var(--soft);font-weight:600}td:nth-child(2),th:nth-child(2){text-align:left}`

// styles gives a way the same colour in every plot.
var styles = map[string]int{
	workload.Azconc: 0, workload.Plain: 1, workload.Jitter: 2, workload.Lease: 3, workload.Shared: 4,
	workload.None: 0, workload.BareLoop: 1, workload.Redelivery: 2, workload.Owner: 3, workload.Inbox: 4,
}

// page returns the result as one HTML page that loads nothing from anywhere.
func (r result) page() string {
	var b strings.Builder
	b.WriteString("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n" +
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\n" +
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>azconc bench</title>\n<style>" + style + "</style>\n</head>\n<body>\n")
	fmt.Fprintf(&b, "<h1>azconc bench</h1>\n<p class=\"soft\">On %s, %s, from a machine with %d processors (%s). %s, %d requests in all.</p>\n",
		html.EscapeString(r.Service), r.At.Format("2006-01-02 15:04 UTC"), r.CPUs, html.EscapeString(r.System), html.EscapeString(r.ends()), r.Requests)
	b.WriteString("<p class=\"soft\">All clients run in one process. Compare the ways with one another, and figures of one run only. What one client alone, or fewer than four commits for each client, cannot show is left out.</p>\n")
	for _, k := range workload.Kinds() {
		if cells := r.of(k.Name); len(cells) > 0 {
			section(&b, k, cells)
		}
	}
	b.WriteString("</body>\n</html>\n")
	return b.String()
}

// ends says when a cell ends.
func (r result) ends() string {
	var bounds []string
	if r.ForMS > 0 {
		bounds = append(bounds, (time.Duration(r.ForMS) * time.Millisecond).String())
	}
	if r.MaxCommits > 0 {
		bounds = append(bounds, fmt.Sprintf("%d commits", r.MaxCommits))
	}
	if r.MaxRequests > 0 {
		bounds = append(bounds, fmt.Sprintf("%d requests", r.MaxRequests))
	}
	return "Each cell ends after " + strings.Join(bounds, " or ")
}

func section(b *strings.Builder, k workload.Kind, cells []cell) {
	fmt.Fprintf(b, "<section>\n<h2>%s</h2>\n<p>A commit is %s.</p>\n", html.EscapeString(k.Name), html.EscapeString(k.What))
	var clients []int
	for _, c := range cells {
		if !slices.Contains(clients, c.Clients) {
			clients = append(clients, c.Clients)
		}
	}
	if len(clients) > 1 { // with one, the table says as much
		plots(b, k, cells, clients)
	}
	table(b, cells)
	b.WriteString("</section>\n")
}

// plots draws the figures of a workload over the numbers of clients.
func plots(b *strings.Builder, k workload.Kind, cells []cell, clients []int) {
	var places []string
	for _, n := range clients {
		places = append(places, strconv.Itoa(n))
	}
	all := func(of func(c cell) []float64) (out []series) {
		for _, way := range k.Ways {
			s := series{name: way, style: styles[way], values: make([][]float64, len(clients))}
			for _, c := range cells {
				if c.Way == way {
					s.values[slices.Index(clients, c.Clients)] = of(c)
				}
			}
			out = append(out, s)
		}
		return out
	}
	legend(b, k.Ways)
	b.WriteString("<div class=\"plots\">\n")
	figure(b, plot{title: "commits a second: more is better", unit: "a second", places: places, series: all(func(c cell) []float64 { return []float64{c.CommitsPerS} })})
	figure(b, plot{title: "requests per commit: fewer is better", unit: "requests", places: places, log: true, series: all(func(c cell) []float64 { return []float64{c.RequestsPerCommit} })})
	if slices.ContainsFunc(cells, func(c cell) bool { return c.P50MS != nil }) {
		figure(b, plot{title: "milliseconds of a commit, p50 to p90 and p99: fewer is better", unit: "ms", places: places, log: true,
			series: all(func(c cell) []float64 { return []float64{known(c.P50MS), known(c.P90MS), known(c.P99MS)} })})
	}
	if slices.ContainsFunc(cells, func(c cell) bool { return c.Least != nil }) {
		figure(b, plot{title: "commits of the client with the fewest, as a part of the mean: 1 is fair", unit: "of the mean", places: places, top: 1,
			series: all(func(c cell) []float64 { return []float64{known(c.Least)} })})
	}
	b.WriteString("</div>\n")
}

func known(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

func figure(b *strings.Builder, p plot) {
	fmt.Fprintf(b, "<figure>%s<figcaption>%s</figcaption></figure>\n", p.svg(), html.EscapeString(p.title))
}

func legend(b *strings.Builder, ways []string) {
	b.WriteString("<ul class=\"legend\">")
	for _, way := range ways {
		style := styles[way]
		fmt.Fprintf(b, `<li><svg viewBox="0 0 36 14" aria-hidden="true"><g class="s%d"><line class="line" stroke-dasharray="%s" x1="0" y1="7" x2="36" y2="7"/>%s</g></svg>%s</li>`,
			style, dashes[style%len(dashes)], mark(style, 0, 18, 7), html.EscapeString(way))
	}
	b.WriteString("</ul>\n")
}

func table(b *strings.Builder, cells []cell) {
	b.WriteString("<div class=\"wide\"><table><thead><tr>")
	for _, name := range []string{"clients", "way", "commits/s", "requests/commit", "p50", "p90", "p99", "least/mean", "commits", "failed", "requests"} {
		fmt.Fprintf(b, "<th>%s</th>", name)
	}
	b.WriteString("</tr></thead><tbody>\n")
	for _, c := range cells {
		b.WriteString("<tr>")
		for _, text := range []string{
			strconv.Itoa(c.Clients), c.Way, number(c.CommitsPerS), number(c.RequestsPerCommit), inMS(c.P50MS), inMS(c.P90MS), inMS(c.P99MS), part(c.Least),
			strconv.Itoa(c.Commits), strconv.Itoa(c.Failed), strconv.FormatInt(c.Requests, 10),
		} {
			fmt.Fprintf(b, "<td>%s</td>", html.EscapeString(text))
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</tbody></table></div>\n")
}
