package queue

import (
	"sync"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/pkg/azerr"
)

// messageCounts reports and counts the events of messages.
type messageCounts struct {
	f  *cli.Factory
	mu sync.Mutex
	n  map[string]int

	progress *cli.Progress
}

func (m *messageCounts) add(e idempotent.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.n[string(e.Kind)]++
	switch e.Kind {
	case idempotent.Received:
		return
	case idempotent.Completed:
		m.progress.Count(m.n[string(e.Kind)], "messages")
		return
	}
	m.progress.End()
	if m.f.Quiet {
		return
	}
	text := string(e.Kind)
	if e.Message != nil {
		text = "message " + e.Message.Key + ": " + text
	}
	if e.Err != nil {
		text += ": " + show.FirstLine(azerr.Clean(e.Err).Error())
	}
	m.f.Notef("%s", text)
}
