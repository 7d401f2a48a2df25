package scene

import (
	_ "embed"
	"fmt"
	"io"
	"strings"
	"text/template"
)

//go:embed picture.svg.tmpl
var pictureText string

var pictureTemplate = template.Must(template.New("picture").Parse(pictureText))

// pictured is a pair of bars. Positions and sizes are in pixels.
type pictured struct {
	Way, Class, Numbers   string
	Y, Lower, Text, Label int
	Reported, Stored      int
}

// Picture writes the tallies of scenes as an SVG, whose colours follow the reader's theme.
func Picture(w io.Writer, results []Result) error {
	const top, row, scale = 36, 44, 4
	var rows []pictured
	var said []string
	for _, r := range results {
		for _, t := range r.Tallies {
			y := top + len(rows)*row
			p := pictured{Way: t.Way, Class: "right", Y: y, Lower: y + 14, Text: y + 18, Reported: t.Reported * scale, Stored: t.Stored * scale,
				Label: 190 + max(t.Reported, t.Stored)*scale + 10, Numbers: fmt.Sprintf("%d reported, %d stored", t.Reported, t.Stored)}
			if t.Stored != t.Reported {
				p.Class = "wrong"
			}
			rows = append(rows, p)
			said = append(said, fmt.Sprintf("%s: %d reported, %d stored", t.Way, t.Reported, t.Stored))
		}
	}
	return pictureTemplate.Execute(w, map[string]any{"Rows": rows, "Height": top + len(rows)*row, "Said": strings.Join(said, "; ")})
}
