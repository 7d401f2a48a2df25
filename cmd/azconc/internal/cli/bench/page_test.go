package bench

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/workload"
)

// hostile is a text that a page must show and not obey.
const hostile = `<script src="https://example.com/x.js">&"'</script>`

func sample() result {
	r := result{Outcome: "done", Service: hostile, System: hostile, At: time.Unix(0, 0).UTC(), CPUs: 2, ForMS: 1500, MaxRequests: 5000}
	v := func(x float64) *float64 { return &x }
	for i, c := range workload.Cells(nil, nil) {
		m := cell{Cell: c, Commits: 10, Requests: 20, CommitsPerS: float64(1000 / (i + 1)), RequestsPerCommit: 2 + float64(i), P50MS: v(1), P90MS: v(2), P99MS: v(300), Least: v(0.5)}
		if i%7 == 0 { // nothing was committed, or nothing is known
			m.CommitsPerS, m.RequestsPerCommit, m.P50MS, m.P90MS, m.P99MS, m.Least = 0, 0, nil, nil, nil, nil
		}
		r.Cells = append(r.Cells, m)
	}
	return r
}

// The page is one file: it loads nothing, runs nothing, and every text in it is text.
func TestThePageStandsAlone(t *testing.T) {
	page := sample().page()
	d := xml.NewDecoder(strings.NewReader(page)) // it is written such that it is well-formed XML, too
	elements, text := map[string]int{}, ""
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			elements[token.Name.Local]++
			for _, a := range token.Attr {
				switch a.Name.Local {
				case "src", "href", "srcset", "data", "action", "style", "xlink":
					t.Errorf("<%s %s=%q>", token.Name.Local, a.Name.Local, a.Value)
				}
				if strings.HasPrefix(a.Name.Local, "on") || strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
					t.Errorf("<%s %s=%q>", token.Name.Local, a.Name.Local, a.Value)
				}
			}
		case xml.CharData:
			text += string(token)
		}
	}
	for _, banned := range []string{"script", "link", "img", "iframe", "object", "embed", "use", "image", "foreignObject"} {
		if elements[banned] != 0 {
			t.Errorf("%d elements %s", elements[banned], banned)
		}
	}
	for _, banned := range []string{"url(", "@import", "http:"} {
		if strings.Contains(style, banned) || strings.Contains(page, banned) {
			t.Errorf("%s is in the page", banned)
		}
	}
	if !strings.Contains(text, hostile) || !strings.Contains(style, "prefers-color-scheme:dark") {
		t.Error("a name is lost, or the page has no dark colours")
	}
	plotted := 0
	for _, k := range workload.Kinds() {
		if len(k.Clients) > 1 {
			plotted++
		}
	}
	if n := len(workload.Kinds()); elements["figure"] < plotted*3 || elements["section"] != n || elements["table"] != n {
		t.Errorf("%d figures, %d sections, %d tables", elements["figure"], elements["section"], elements["table"])
	}
}

// A mark without its place in the plot would be a lie that nobody sees.
func TestAnAxisHoldsEveryValue(t *testing.T) {
	for _, c := range []struct {
		p         plot
		low, high float64
		lines     int
	}{
		{plot{series: []series{{values: [][]float64{{3}, {97}}}}}, 0, 100, 6},
		{plot{series: []series{{values: [][]float64{{0.4}, {math.NaN()}}}}, top: 1}, 0, 1, 6},
		{plot{series: []series{{values: [][]float64{{0}}}}}, 0, 1, 6},
		{plot{log: true, series: []series{{values: [][]float64{{2}, {345}}}}}, 1, 1000, 4},
		{plot{log: true, series: []series{{values: [][]float64{{0.04, 0.5}, {0}}}}}, 0.01, 1, 3},
		{plot{log: true, series: []series{{values: [][]float64{{10}}}}}, 10, 100, 2},
		{plot{log: true}, 1, 10, 2},
	} {
		low, high, lines := c.p.bounds()
		if math.Abs(low-c.low) > 1e-9 || math.Abs(high-c.high) > 1e-9 || len(lines) != c.lines {
			t.Errorf("%v: %g to %g in %v, want %g to %g in %d lines", c.p.series, low, high, lines, c.low, c.high, c.lines)
		}
	}
}
