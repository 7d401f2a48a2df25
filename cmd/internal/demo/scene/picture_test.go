package scene

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	"github.com/google/go-cmp/cmp"

	"github.com/azconc/azconc/pkg/aztest"
)

// The picture of the first page is the one that the scenes give.
func TestThePictureIsTheOneOfTheScenes(t *testing.T) {
	results, err := PlayAll(t.Context(), inMemory(aztest.New(nil)), "lost-answers", "lost-sends")
	if err != nil {
		t.Fatal(err)
	}
	var drawn bytes.Buffer
	if err := picture(&drawn, results); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("..", "..", "..", "..", ".github", "docs", "demo.svg")
	if *update {
		if err := os.WriteFile(file, drawn.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	committed, err := os.ReadFile(file)
	if diff := cmp.Diff(string(committed), drawn.String()); err != nil || diff != "" {
		t.Errorf("%v; go test ./cmd/internal/demo/scene -run Picture -args -update draws it (-committed +drawn):\n%s", err, diff)
	}
}

var pictureTemplate = template.Must(template.ParseFiles("testdata/picture.svg.tmpl"))

// pictured is a pair of bars. Positions and sizes are in pixels.
type pictured struct {
	Way, Class, Numbers   string
	Y, Lower, Text, Label int
	Reported, Effects     int
}

// picture writes the tallies of scenes as an SVG, whose colours follow the reader's theme.
func picture(w io.Writer, results []Result) error {
	const top, row, scale = 36, 44, 4
	var rows []pictured
	var said []string
	for _, r := range results {
		for _, t := range r.Tallies {
			y := top + len(rows)*row
			p := pictured{Way: t.Way, Class: "right", Y: y, Lower: y + 14, Text: y + 18, Reported: t.Reported * scale, Effects: t.Effects * scale,
				Label: 190 + max(t.Reported, t.Effects)*scale + 10, Numbers: fmt.Sprintf("%d reported, %d %s", t.Reported, t.Effects, t.Effect)}
			if t.Effects != t.Reported {
				p.Class = "wrong"
			}
			rows = append(rows, p)
			said = append(said, p.Way+": "+p.Numbers)
		}
	}
	return pictureTemplate.Execute(w, map[string]any{"Rows": rows, "Height": top + len(rows)*row, "Said": strings.Join(said, "; ")})
}
