package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/tables"
)

// tally is the content.
type tally map[string]int64

const (
	tallyBlobs    = 3
	tallyLanes    = 2 // of each kind
	documentLanes = 3
	operationLife = 4 * time.Second // all workers try the same operation for so long
)

func tallyBlob(s *site, i int) blobs.Blob[tally] {
	return blobs.NewJSON[tally](s.container("tallies").NewBlockBlobClient(tallyName(i)))
}

func tallyName(i int) string {
	if i == tallyBlobs {
		return "document"
	}
	return fmt.Sprintf("blob-%d", i)
}

func tallyEntity(s *site) tables.Entity[tally] {
	return tables.NewEntity[tally](s.table("tallies"), "p", "r")
}

// seedTallies stores what the tallies begin with.
func seedTallies(ctx context.Context, s *site) error {
	for i := range tallyBlobs + 1 {
		_, err := s.container("tallies").NewBlockBlobClient(tallyName(i)).Upload(ctx, content("{}"), &blockblob.UploadOptions{
			Metadata:    map[string]*string{"owner": to.Ptr("soak")},
			HTTPHeaders: &blob.HTTPHeaders{BlobContentType: to.Ptr("application/vnd.tally"), BlobContentLanguage: to.Ptr("en")},
			Tags:        map[string]string{"kept": fmt.Sprint(i)},
		})
		if err != nil {
			return err
		}
	}
	_, err := optimistic.Create(ctx, tallyEntity(s), tally{}, nil)
	return err
}

// increment adds 1 to the lane's number by update, and records what it saw.
func (l *lane) increment(ctx context.Context, of string, update func(context.Context, func(context.Context, *tally) error) error) {
	n := l.journal.begin(note{Kind: "tally", Lane: l.name, Of: of})
	err := update(ctx, func(_ context.Context, t *tally) error {
		n.N = (*t)[l.name]
		(*t)[l.name]++
		return nil
	})
	l.done(ctx, n, err)
}

// workTallies counts with Update, Document and OperationID: a tally has a number for each lane, and all lanes change the
// same few blobs and entities.
func workTallies(ctx context.Context, w *worker) {
	document, err := optimistic.NewDocument(tallyBlob(w.site, tallyBlobs), nil)
	must(err)
	var kept [][]byte // by the plant
	w.repeat(ctx, "tally", 2*tallyLanes+documentLanes+1, 200*time.Millisecond, func(l *lane) {
		kind := l.name[len(l.name)-1] - '0'
		switch {
		case kind < tallyLanes:
			i := l.roll(tallyBlobs)
			target := tallyBlob(w.site, i)
			l.increment(ctx, tallyName(i), func(ctx context.Context, change func(context.Context, *tally) error) error {
				if w.Plant.has(plainRetry) {
					return plainLoop(ctx, target.Client, change)
				}
				_, err := optimistic.Update(ctx, target, change, nil)
				return err
			})
		case kind < 2*tallyLanes:
			l.increment(ctx, "entity", func(ctx context.Context, change func(context.Context, *tally) error) error {
				_, err := optimistic.Update(ctx, tallyEntity(w.site), change, nil)
				return err
			})
		case kind < 2*tallyLanes+documentLanes:
			l.increment(ctx, "document", func(ctx context.Context, change func(context.Context, *tally) error) error {
				_, err := document.Update(ctx, change)
				return err
			})
		default:
			l.operation(ctx)
		}
		if kind == 0 && w.Plant.has(grow) {
			kept = append(kept, make([]byte, 1<<20))
			go func() { <-ctx.Done() }()
		}
	})
	_ = kept
}

// operation applies an OperationID that all workers apply at about the same time.
func (l *lane) operation(ctx context.Context) {
	id := fmt.Sprintf("op-%d", now()/int64(operationLife))
	n := l.journal.begin(note{Kind: "operation", Lane: l.name, Of: id})
	_, err := optimistic.Update(ctx, tallyBlob(l.site, 0), func(_ context.Context, t *tally) error {
		(*t)[id]++
		return nil
	}, &optimistic.UpdateOptions{OperationID: id})
	l.done(ctx, n, err)
}

func judgeTallies(ctx context.Context, s *site, j *judgement) error {
	final := map[string]tally{}
	kept := j.say("metadata, headers and tags kept")
	for i := range tallyBlobs + 1 {
		v, err := optimistic.Read(ctx, tallyBlob(s, i), nil)
		if err != nil {
			return err
		}
		final[tallyName(i)] = v.Value
		kept.judged++
		if err := keeps(ctx, s, i); err != nil {
			kept.wrong("%s: %v", tallyName(i), err)
		}
	}
	v, err := optimistic.Read(ctx, tallyEntity(s), nil)
	if err != nil {
		return err
	}
	final["entity"] = v.Value
	counted := j.say("updates applied once")
	for of, calls := range j.records.of("tally").by(func(n note) string { return n.Of }) {
		for lane, calls := range calls.by(func(n note) string { return n.Lane }) {
			least, most := single(counted, calls)
			closing(counted, lane, of, least, most, final[of][lane])
		}
	}
	once := j.say("operation ids applied once")
	for id, calls := range j.records.of("operation").by(func(n note) string { return n.Of }) {
		once.judged++
		n, applied := final[tallyName(0)][id], false
		for _, c := range calls {
			applied = applied || c.Out == ok
		}
		if n > 1 || applied && n == 0 {
			once.wrong("%s was applied %d times", id, n)
		}
	}
	return nil
}

func keeps(ctx context.Context, s *site, i int) error {
	c := s.container("tallies").NewBlockBlobClient(tallyName(i))
	p, err := c.GetProperties(ctx, nil)
	if err != nil {
		return err
	}
	owner := ""
	for name, value := range p.Metadata {
		if http.CanonicalHeaderKey(name) == "Owner" {
			owner = *value
		}
	}
	tags, err := c.GetTags(ctx, nil)
	if err != nil {
		return err
	}
	if owner != "soak" || *p.ContentType != "application/vnd.tally" || p.ContentLanguage == nil || *p.ContentLanguage != "en" ||
		len(tags.BlobTagSet) != 1 || *tags.BlobTagSet[0].Value != fmt.Sprint(i) {
		return errors.New("they have changed")
	}
	return nil
}
