package queue

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/live"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pkg/azerr"
)

// Sections is the section of the rows of Named and All.
func Sections() []live.Section {
	return []live.Section{{Key: "queues", Title: "Queues", Columns: []live.Column{
		{Title: "messages", Right: true}, {Title: "visible", Right: true, Drop: 1}, {Title: "queue", Long: true},
	}}}
}

// most is how many queues a view shows that does not name them.
const most = 20

// All returns the sources of the account's queues. Requests: 1 per 5,000 queues.
func All(ctx context.Context, f *cli.Factory) (parts []live.Source, note string, err error) {
	service, err := f.QueueService()
	if err != nil {
		return nil, "", err
	}
	names, err := namesOf(ctx, service, "")
	if err != nil {
		return nil, "", err
	}
	pairs := 0
	for _, name := range names {
		of, poison := strings.CutSuffix(name, poisonSuffix)
		if poison && slices.Contains(names, of) {
			continue // shown with its queue
		}
		if pairs++; pairs <= most {
			parts = append(parts, one(f, name, slices.Contains(names, name+poisonSuffix)))
		}
	}
	if pairs > most {
		note = fmt.Sprintf("%d of %s are shown: name others", most, show.Plural(pairs, "queue"))
	}
	return parts, note, nil
}

// Named returns the source of a queue with the poison queue that consume gives it. Requests: 2, and 2 for the poison queue or 1 if
// there is none.
func Named(f *cli.Factory, name string) live.Source {
	_, tooLong := ParseName(name + poisonSuffix)
	return one(f, name, tooLong == nil)
}

// seen is a queue as the view prints it in JSON.
type seen struct {
	Queue string `json:"resource"`
	depth
	Poison *seen `json:"poison,omitempty"`
}

func one(f *cli.Factory, name string, poison bool) live.Source {
	return live.Source{Name: "queue " + name, Fetch: func(ctx context.Context) ([]live.Row, error) {
		d, err := depthOf(ctx, f, name)
		if err != nil {
			return nil, err
		}
		value := &seen{Queue: name, depth: d}
		row := queueRow(name, d)
		row.Value = value
		if !poison {
			return []live.Row{row}, nil
		}
		d, err = depthOf(ctx, f, name+poisonSuffix)
		if azerr.Classify(err).Kind == azerr.NotFound {
			return []live.Row{row}, nil
		}
		if err != nil {
			return nil, err
		}
		value.Poison = &seen{Queue: name + poisonSuffix, depth: d}
		below := queueRow(name+poisonSuffix, d)
		below.Cells[2] = "  poison: " + name + poisonSuffix
		if d.Messages > 0 {
			row.Idle = false
			row.Commands = append(row.Commands, fmt.Sprintf("azconc queue redrive %s%s %[1]s", name, poisonSuffix))
		}
		row.Parts = []live.Row{below}
		return []live.Row{row}, nil
	}}
}

func depthOf(ctx context.Context, f *cli.Factory, name string) (depth, error) {
	queue, err := f.Queue(name)
	if err != nil {
		return depth{}, err
	}
	return look(ctx, queue)
}

func queueRow(name string, d depth) live.Row {
	visible := "not permitted"
	switch {
	case d.Visible == nil:
	case *d.Visible < maxPeek:
		visible = fmt.Sprint(*d.Visible)
	default:
		visible = fmt.Sprint(maxPeek, "+")
	}
	count := fmt.Sprint(d.Messages)
	if d.Messages > 0 {
		count = "~" + count // approximate (REST: "Get Queue Metadata")
	}
	return live.Row{Section: "queues", ID: name, Idle: d.Messages == 0, Cells: []string{count, visible, name}, Commands: []string{"azconc queue peek " + name}}
}
