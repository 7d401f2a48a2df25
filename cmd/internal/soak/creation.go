package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
)

const creationLife = 2 * time.Second

type created struct {
	By string `json:"by"`
}

func creation(s *site, of string) blobs.Blob[created] {
	return blobs.NewJSON[created](s.container("creations").NewBlockBlobClient(of))
}

// workCreations has races: all workers create the same blob, and one wins.
func workCreations(ctx context.Context, w *worker) {
	last := ""
	w.repeat(ctx, "creation", 1, 50*time.Millisecond, func(l *lane) {
		of := fmt.Sprintf("race-%d", now()/int64(creationLife))
		if of == last {
			return
		}
		last = of
		n := l.journal.begin(note{Kind: "creation", Lane: l.name, Of: of})
		_, err := optimistic.Create(ctx, creation(w.site, of), created{w.Process}, nil)
		l.done(ctx, n, err)
		if w.Plant.has(noRelease) {
			leaseForEver(ctx, creation(w.site, of).Client)
		}
	})
}

func judgeCreations(ctx context.Context, s *site, j *judgement) error {
	race := j.say("races with one winner")
	for of, notes := range j.records.of("creation").by(func(n note) string { return n.Of }) {
		race.judged++
		winner, maybe := "", map[string]bool{}
		for _, n := range notes {
			switch {
			case n.Out == ok && winner != "":
				race.wrong("%s: %s and %s were both told that they created it", of, winner, n.Process)
			case n.Out == ok:
				winner = n.Process
			case n.End == 0, n.Out == unknown:
				maybe[n.Process] = true
			}
		}
		v, err := optimistic.Read(ctx, creation(s, of), nil)
		switch {
		case errors.Is(err, optimistic.ErrNotFound):
			if winner != "" {
				race.wrong("%s: lost, although %s created it", of, winner)
			}
		case err != nil:
			return err
		case winner != "" && v.Value.By != winner, winner == "" && !maybe[v.Value.By]:
			race.wrong("%s: is by %s, and the winner is %q", of, v.Value.By, winner)
		}
	}
	return nil
}
