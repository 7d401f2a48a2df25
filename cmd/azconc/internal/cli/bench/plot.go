package bench

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// The plots are SVG inside the page. Colours are classes, which the page's style defines for light and dark, and every series has a
// shape and a dash of its own, for those who see or print no colours.

// series is the values of a way, one for each place of the axis. NaN is no value.
type series struct {
	name   string
	style  int         // of the class, the shape and the dash
	values [][]float64 // one value for a line; several, in ascending order, for a range
}

// plot is a line for each series over the numbers of clients.
type plot struct {
	title  string
	unit   string
	places []string // of the axis of clients
	series []series
	log    bool // the axis of values is logarithmic
	top    float64
}

// The measures of a plot.
const (
	plotWidth, plotHeight   = 460.0, 280.0
	leftEdge, rightEdge     = 58.0, 14.0
	topEdge, bottomEdge     = 14.0, 42.0
	innerWidth, innerHeight = plotWidth - leftEdge - rightEdge, plotHeight - topEdge - bottomEdge
)

// bounds returns the values at both ends of the axis, and those of its lines.
func (p plot) bounds() (low, high float64, lines []float64) {
	low, high = math.Inf(1), p.top
	for _, s := range p.series {
		for _, place := range s.values {
			for _, v := range place {
				if !math.IsNaN(v) && (v > 0 || !p.log) {
					low, high = math.Min(low, v), math.Max(high, v)
				}
			}
		}
	}
	if p.log {
		if math.IsInf(low, 1) {
			low, high = 1, 10
		}
		from, to := math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
		to = math.Max(to, from+1)
		for e := from; e <= to; e++ {
			lines = append(lines, math.Pow(10, e))
		}
		return math.Pow(10, from), math.Pow(10, to), lines
	}
	if high <= 0 {
		high = 1
	}
	step := math.Pow(10, math.Floor(math.Log10(high/4)))
	for _, times := range []float64{1, 2, 2.5, 5, 10} {
		if high/(step*times) <= 5 {
			step *= times
			break
		}
	}
	n := math.Ceil(high/step - 1e-9)
	for i := 0.0; i <= n; i++ {
		lines = append(lines, i*step)
	}
	return 0, n * step, lines
}

// svg draws the plot.
func (p plot) svg() string {
	low, high, lines := p.bounds()
	y := func(v float64) float64 {
		part := (v - low) / (high - low)
		if p.log {
			part = math.Log(v/low) / math.Log(high/low)
		}
		return topEdge + innerHeight*(1-part)
	}
	x := func(place int) float64 { return leftEdge + innerWidth*(float64(place)+0.5)/float64(len(p.places)) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg role="img" viewBox="0 0 %.0f %.0f" aria-label="%s"><title>%[3]s</title>`, plotWidth, plotHeight, html.EscapeString(p.title))
	for _, v := range lines {
		fmt.Fprintf(&b, `<line class="grid" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, leftEdge, y(v), plotWidth-rightEdge, y(v))
		fmt.Fprintf(&b, `<text class="tick" x="%.1f" y="%.1f" text-anchor="end">%s</text>`, leftEdge-6, y(v)+4, axis(v))
	}
	for i, place := range p.places {
		fmt.Fprintf(&b, `<text class="tick" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, x(i), plotHeight-bottomEdge+16, html.EscapeString(place))
	}
	fmt.Fprintf(&b, `<text class="tick" x="%.1f" y="%.1f" text-anchor="middle">clients</text>`, leftEdge+innerWidth/2, plotHeight-8)
	for i, s := range p.series {
		// Ranges stand beside one another, lines share their places.
		aside := (float64(i) - float64(len(p.series)-1)/2) * 11
		p.one(&b, s, func(place int) float64 {
			if s.ranges() {
				return x(place) + aside
			}
			return x(place)
		}, y)
	}
	b.WriteString("</svg>")
	return b.String()
}

func (s series) ranges() bool {
	for _, place := range s.values {
		if len(place) > 1 {
			return true
		}
	}
	return false
}

// one draws a series.
func (p plot) one(b *strings.Builder, s series, x func(int) float64, y func(float64) float64) {
	fmt.Fprintf(b, `<g class="s%d">`, s.style)
	if !s.ranges() {
		var points []string
		for place, values := range s.values {
			if len(values) == 1 && p.shows(values[0]) {
				points = append(points, fmt.Sprintf("%.1f,%.1f", x(place), y(values[0])))
			}
		}
		fmt.Fprintf(b, `<polyline class="line" stroke-dasharray="%s" points="%s"/>`, dashes[s.style%len(dashes)], strings.Join(points, " "))
	}
	for place, values := range s.values {
		if len(values) > 1 && p.shows(values[0]) && p.shows(values[len(values)-1]) {
			fmt.Fprintf(b, `<line class="line" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, x(place), y(values[0]), x(place), y(values[len(values)-1]))
		}
		for i, v := range values {
			if !p.shows(v) {
				continue
			}
			what := fmt.Sprintf("%s, %s clients: %s %s", s.name, p.places[place], number(v), p.unit)
			if len(values) > 1 {
				what = fmt.Sprintf("%s, %s clients, %s: %s %s", s.name, p.places[place], quantiles[min(i, len(quantiles)-1)], number(v), p.unit)
			}
			fmt.Fprintf(b, `<g class="mark">%s<title>%s</title></g>`, mark(s.style, i, x(place), y(v)), html.EscapeString(what))
		}
	}
	b.WriteString("</g>")
}

// quantiles are the names of the values of a range.
var quantiles = []string{"p50", "p90", "p99"}

func (p plot) shows(v float64) bool { return !math.IsNaN(v) && (v > 0 || !p.log) }

// dashes are those of the lines, by style.
var dashes = []string{"none", "6 3", "2 3", "8 3 2 3", "1 4"}

// mark draws the shape of a style. The later values of a range are short strokes.
func mark(style, i int, x, y float64) string {
	if i > 0 {
		return fmt.Sprintf(`<line class="line" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, x-4, y, x+4, y)
	}
	switch style {
	case 1:
		return fmt.Sprintf(`<rect x="%.1f" y="%.1f" width="7" height="7"/>`, x-3.5, y-3.5)
	case 2:
		return fmt.Sprintf(`<path d="M%.1f %.1fl4.5 8h-9z"/>`, x, y-5)
	case 3:
		return fmt.Sprintf(`<path d="M%.1f %.1fl5 5-5 5-5-5z"/>`, x, y-5)
	case 4:
		return fmt.Sprintf(`<path d="M%.1f %.1fl4.5-8h-9z"/>`, x, y+5)
	}
	return fmt.Sprintf(`<circle cx="%.1f" cy="%.1f" r="4"/>`, x, y)
}

// axis is v as an axis shows it.
func axis(v float64) string {
	switch {
	case v >= 1e6:
		return strconv.FormatFloat(v/1e6, 'g', 3, 64) + "M"
	case v >= 1000:
		return strconv.FormatFloat(v/1000, 'g', 3, 64) + "k"
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
