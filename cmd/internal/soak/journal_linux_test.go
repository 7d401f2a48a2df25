package soak

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
)

// note is one line of a journal: something that a process began, ended or saw.
type note struct {
	Kind  string `json:"k"`
	Lane  string `json:"l,omitempty"` // the part of a worker's workload that it belongs to: "w2/tally/0"
	Of    string `json:"o,omitempty"` // the resource
	Text  string `json:"t,omitempty"`
	N     int64  `json:"n,omitempty"`
	V     int64  `json:"v,omitempty"`
	Out   string `json:"out,omitempty"` // ok, refused, unknown, failed
	Begin int64  `json:"b"`             // by now()
	End   int64  `json:"e,omitempty"`   // 0 if the process ended first
	ID    int64  `json:"i,omitempty"`   // joins the two lines of a note that takes time

	Process string `json:"-"` // w2.3 is the third process of worker 2
}

// journal is a file that a process writes. Lines that were written survive the process, however it ends.
type journal struct {
	file *os.File // opened to append: lines of several goroutines do not mix
	last atomic.Int64
}

func createJournal(dir, process string) (*journal, error) {
	f, err := os.OpenFile(filepath.Join(dir, process+journalSuffix), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &journal{file: f}, nil
}

const journalSuffix = ".jsonl"

func (j *journal) write(n note) {
	line, err := json.Marshal(n)
	if err == nil {
		_, err = j.file.Write(append(line, '\n'))
	}
	if err != nil {
		panic(fmt.Sprintf("the journal cannot be written: %v", err)) // without it nothing can be judged
	}
}

// begin records that something begins. The caller completes the note and gives it to end.
func (j *journal) begin(n note) note {
	n.ID, n.Begin = j.last.Add(1), now()
	j.write(n)
	return n
}

func (j *journal) end(n note, out string) {
	n.End, n.Out = now(), out
	j.write(n)
}

// fact records what is true at once. A Begin that is set already is kept.
func (j *journal) fact(n note) {
	if n.Begin == 0 {
		n.Begin = now()
	}
	j.write(n)
}

// records are the notes of all processes, by their Begin.
type records []note

// readJournals reads all journals in a folder. A note that was begun and not ended has no End.
func readJournals(dir string) (records, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"+journalSuffix))
	if err != nil {
		return nil, err
	}
	var all records
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		process := strings.TrimSuffix(filepath.Base(name), journalSuffix)
		open := map[int64]int{}
		lines := bytes.Split(data, []byte("\n"))
		for i, line := range lines[:len(lines)-1] { // what follows the last line break is empty, or half a line
			var n note
			if err := json.Unmarshal(line, &n); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", name, i+1, err)
			}
			n.Process = process
			if at, ok := open[n.ID]; ok && n.ID != 0 {
				all[at] = n
				continue
			}
			open[n.ID] = len(all)
			all = append(all, n)
		}
	}
	slices.SortStableFunc(all, func(a, b note) int { return cmp.Compare(a.Begin, b.Begin) })
	return all, nil
}

// of returns the notes of a kind.
func (r records) of(kind string) records {
	return slices.DeleteFunc(slices.Clone(r), func(n note) bool { return n.Kind != kind })
}

// by groups notes; their order stays.
func (r records) by(key func(note) string) map[string]records {
	groups := map[string]records{}
	for _, n := range r {
		groups[key(n)] = append(groups[key(n)], n)
	}
	return groups
}
