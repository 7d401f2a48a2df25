package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pkg/aztest/history"
)

const (
	registerLife = 3 * time.Second
	registerMost = 8 // calls of a lane on one register: histories that are too long cannot be judged
)

type register struct {
	N int `json:"n"`
}

// workRegisters sets and reads registers, many at a time; each has a short history, which is judged as a whole.
func workRegisters(ctx context.Context, w *worker) {
	box := w.site.container("registers")
	calls, last := 0, ""
	w.repeat(ctx, "register", 1, 200*time.Millisecond, func(l *lane) {
		of := fmt.Sprintf("register-%d", now()/int64(registerLife))
		if of != last {
			calls, last = 0, of
		}
		if calls++; calls <= registerMost {
			l.call(ctx, of, blobs.NewJSON[register](box.NewBlockBlobClient(of)))
		}
	})
}

// call adds to, sets or reads a register.
func (l *lane) call(ctx context.Context, of string, target blobs.Blob[register]) {
	kind, value := history.Kind(1+l.roll(3)), 1+l.roll(1_000_000)
	n := l.journal.begin(note{Kind: "register", Lane: l.name, Of: of, V: int64(kind), N: int64(value)})
	if kind == history.Read {
		v, err := optimistic.Read(ctx, target, nil)
		switch {
		case err == nil:
			n.N = int64(v.Value.N)
		case errors.Is(err, optimistic.ErrNotFound):
			n.N, err = 0, nil
		}
		l.journal.end(n, outcome(err))
		return
	}
	_, err := optimistic.Update(ctx, target, func(_ context.Context, r *register) error {
		if kind == history.Set {
			r.N = value
		} else {
			r.N += value
		}
		return nil
	}, &optimistic.UpdateOptions{Create: true})
	l.done(ctx, n, err)
}

func judgeRegisters(_ context.Context, _ *site, j *judgement) error {
	linear := j.say("histories of registers linearizable")
	undecided := 0
	for of, notes := range j.records.of("register").by(func(n note) string { return n.Of }) {
		err := history.Linearizable(callsOf(notes), 10*time.Second)
		linear.judged++
		switch {
		case errors.Is(err, history.ErrUndecided):
			undecided++
		case err != nil:
			linear.wrong("%s: %v", of, err)
		}
	}
	if undecided > linear.judged/20 {
		linear.wrong("%d histories were not judged in time", undecided)
	}
	return nil
}

// callsOf makes calls of notes. Reads that failed say nothing.
func callsOf(notes records) (calls []history.Call) {
	var lanes []string
	for _, n := range notes {
		kind := history.Kind(n.V)
		if kind == history.Read && n.Out != ok {
			continue
		}
		who := slices.Index(lanes, n.Process)
		if who < 0 {
			who, lanes = len(lanes), append(lanes, n.Process)
		}
		c := history.Call{Client: who, Kind: kind, Value: int(n.N), From: n.Begin, To: n.End, Refused: n.Out == refused || n.Out == failed}
		if n.End == 0 || n.Out == unknown {
			c.To = history.Open
		}
		calls = append(calls, c)
	}
	return calls
}
