package pairs

import (
	"context"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/appends"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/pages"
	"github.com/azconc/azconc/optimistic/settings"
	"github.com/azconc/azconc/optimistic/sharded"
)

// way is a way to write.
type way struct {
	name  string
	place *place
	facet string
	run   func(ctx context.Context, p *port, c call) (optimistic.Result, error)
	takes string // the settings that it takes, by name, beside "plain"

	blind      bool // it writes a text without having read one
	final      bool // a conflict is final
	traceless  bool // a write leaves no trace: a lost answer may leave the outcome unknown, a second delivery is not noticed
	forgets    bool // it replaces the resource, and says so: what was remembered is gone
	lastWins   bool // it says so
	creates    bool // it needs a resource that does not exist
	positional bool // its condition is a position
	removes    bool // it deletes the resource
	skip       int  // writes that prepare the one that matters
}

func (w *way) String() string { return w.place.name + ": " + w.name }

// accepts reports whether the way takes a setting.
func (w *way) accepts(setting string) bool {
	if setting == "plain" {
		return !w.creates
	}
	for s := range strings.SplitSeq(w.takes, ",") {
		if strings.TrimSpace(s) == setting {
			return true
		}
	}
	return false
}

// view is a value as a text.
type view[T any] struct {
	get func(T) string
	set func(*T, string)
}

var (
	inDocument = view[document]{func(d document) string { return d.Log }, func(d *document, text string) { d.Log = text }}
	inBytes    = view[[]byte]{decoded, func(b *[]byte, text string) { *b = encoded(text) }}
	inMap      = view[map[string]string]{func(m map[string]string) string { return m["log"] }, func(m *map[string]string, text string) {
		if *m == nil {
			*m = map[string]string{}
		}
		(*m)["log"] = text
	}}
	inPage    = view[[]byte]{func(b []byte) string { return strings.Trim(string(b), "\x00") }, func(b *[]byte, text string) { *b = page(text) }}
	inHeaders = view[blobs.HTTPHeaders]{func(h blobs.HTTPHeaders) string { return h.ContentLanguage }, func(h *blobs.HTTPHeaders, text string) { h.ContentLanguage = text }}
	inACL     = view[settings.ACL]{func(a settings.ACL) string { return inPolicies.get(a.Policies) }, func(a *settings.ACL, text string) { inPolicies.set(&a.Policies, text) }}

	inPolicies = view[[]settings.AccessPolicy]{func(p []settings.AccessPolicy) string {
		if len(p) == 0 {
			return ""
		}
		return p[0].ID
	}, func(p *[]settings.AccessPolicy, text string) {
		*p = []settings.AccessPolicy{{ID: text, Permissions: "r"}}
	}}
)

// update is the way of optimistic.Update.
func update[T any](target func(p *port, c call) optimistic.Target[T], v view[T]) func(context.Context, *port, call) (optimistic.Result, error) {
	return func(ctx context.Context, p *port, c call) (optimistic.Result, error) {
		return optimistic.Update(ctx, target(p, c), func(_ context.Context, value *T) error {
			v.set(value, c.added(v.get(*value)))
			return nil
		}, c.updating())
	}
}

// replace is the way of optimistic.Read and Replace, or of Replace over a version that the caller names.
func replace[T any](target func(p *port, c call) optimistic.Target[T], v view[T]) func(context.Context, *port, call) (optimistic.Result, error) {
	return func(ctx context.Context, p *port, c call) (optimistic.Result, error) {
		var base *optimistic.Version[T]
		var value T
		if c.match != "" {
			base = &optimistic.Version[T]{State: optimistic.State{Exists: true, ETag: c.match}}
			v.set(&value, c.given())
		} else {
			var err error
			if base, err = optimistic.Read(ctx, target(p, c), &optimistic.ReadOptions{SendOptions: c.send()}); err != nil {
				return optimistic.Result{}, err
			}
			value = base.Value
			v.set(&value, c.added(v.get(value)))
		}
		return optimistic.Replace(ctx, target(p, c), base, value, c.writing())
	}
}

// create is the way of optimistic.Create.
func create[T any](target func(p *port, c call) optimistic.Target[T], v view[T]) func(context.Context, *port, call) (optimistic.Result, error) {
	return func(ctx context.Context, p *port, c call) (optimistic.Result, error) {
		var value T
		v.set(&value, c.mark)
		return optimistic.Create(ctx, target(p, c), value, c.writing())
	}
}

// inDocumentOf is the way of an optimistic.Document, which a process keeps.
func inDocumentOf[T any](name string, target func(p *port, c call) optimistic.Target[T], v view[T]) func(context.Context, *port, call) (optimistic.Result, error) {
	return func(ctx context.Context, p *port, c call) (optimistic.Result, error) {
		kept := name
		if c.holder != nil {
			kept += c.holder.Fence().String()
		}
		if c.create || c.lease != "" || c.tags != "" {
			kept += " under conditions"
		}
		d, err := keep(p, kept, func() (*optimistic.Document[T], error) {
			return optimistic.NewDocument(target(p, c), &optimistic.DocumentOptions{Update: *c.updating()})
		})
		if err != nil {
			return optimistic.Result{}, err
		}
		return d.Update(ctx, func(_ context.Context, value *T) error {
			v.set(value, c.added(v.get(*value)))
			return nil
		})
	}
}

// targetWays are the ways to write a target: Update, Replace, and a Document if it can have one.
func targetWays[T any](name string, pl *place, facet, takes string, target func(p *port, c call) optimistic.Target[T], v view[T], also func(*way)) []*way {
	document := strings.Join(without(takes, "id", "id and holder", "id and etag", "id and *", "etag", "*", "dry run"), ",")
	once := strings.Join(without(takes, "dry run", "create"), ",")
	ways := []*way{
		{name: name + ", Update", run: update(target, v), takes: strings.Join(without(takes, "*", "id and *"), ",")},
		{name: name + ", Replace", run: replace(target, v), takes: strings.Join(without(once, "holder and etag"), ","), final: true},
		{name: name + ", Document", run: inDocumentOf(name, target, v), takes: document},
	}
	for _, w := range ways {
		w.place, w.facet = pl, facet
		if also != nil {
			also(w)
		}
	}
	return ways
}

func without(list string, names ...string) (out []string) {
	for s := range strings.SplitSeq(list, ",") {
		s = strings.TrimSpace(s)
		keep := true
		for _, name := range names {
			keep = keep && s != name
		}
		if keep {
			out = append(out, s)
		}
	}
	return out
}

// fencedIf is a blob, under a lock if the call has a holder.
func fencedIf[T any](c call, b blobs.Blob[T]) optimistic.Target[T] {
	if c.holder != nil {
		return blobs.Fenced(c.holder, b)
	}
	return b
}

func partOf(box *container.Client, name string) optimistic.Target[sharded.Part] {
	return blobs.NewJSON[sharded.Part](box.NewBlockBlobClient(name))
}

func traceless(w *way) { w.traceless = true }

func jsonTarget(p *port, c call) optimistic.Target[document] {
	return fencedIf(c, blobs.NewJSON[document](p.block()))
}

const everything = "id,etag,*,id and etag,id and *,lease,tags,dry run,create,no lineage,always"

func blobWays() (ways []*way) {
	pl := blobPlace
	ways = append(ways, targetWays("JSON", pl, "content", everything+",holder,id and holder,lost,broken", jsonTarget, inDocument, nil)...)
	ways = append(ways, targetWays("bytes", pl, "content", everything+",holder,id and holder,lost", func(p *port, c call) optimistic.Target[[]byte] {
		return fencedIf(c, blobs.NewBytes(p.block()))
	}, inBytes, nil)...)
	ways = append(ways, targetWays("metadata", pl, "metadata", "id,etag,*,id and etag,id and *,lease,tags,dry run,no lineage,always", func(p *port, _ call) optimistic.Target[map[string]string] {
		return blobs.NewMetadata(p.block().BlobClient())
	}, inMap, nil)...)
	ways = append(ways, targetWays("tags", pl, "tags", "id,lease,dry run,no lineage,always", func(p *port, _ call) optimistic.Target[map[string]string] {
		return blobs.NewTags(p.block().BlobClient())
	}, inMap, nil)...)
	ways = append(ways, targetWays("headers", pl, "headers", "etag,lease,tags,dry run,always", func(p *port, _ call) optimistic.Target[blobs.HTTPHeaders] {
		return blobs.NewHeaders(p.block().BlobClient())
	}, inHeaders, traceless)...)
	upload := func(size int64) func(ctx context.Context, p *port, c call) (optimistic.Result, error) {
		return func(ctx context.Context, p *port, c call) (optimistic.Result, error) {
			o := &blobs.UploadOptions{Conditions: c.conditions(), Tags: tagged, BlockSize: size, SendOptions: c.send()}
			if c.create {
				o.Conditions.IfNoneMatch = azcore.ETagAny
			}
			return blobs.Upload(ctx, p.block(), body(encoded(c.given())), o)
		}
	}
	return append(ways,
		&way{name: "Create", place: pl, facet: "content", run: create(jsonTarget, inDocument), takes: "create,id and create,holder and create", creates: true, final: true},
		&way{name: "Upload", place: pl, facet: "content", run: upload(0), takes: "etag,*,lease,tags,create,no lineage,always", blind: true, final: true, forgets: true, lastWins: true},
		&way{name: "Upload in blocks", place: pl, facet: "content", run: upload(7), takes: "etag,*,lease,tags,create,no lineage,always", blind: true, final: true, forgets: true, lastWins: true},
		&way{name: "Copy", place: pl, facet: "content", takes: "etag,*,tags,create,always", blind: true, final: true, forgets: true, lastWins: true, run: func(ctx context.Context, p *port, c call) (optimistic.Result, error) {
			source := p.w.direct().container().NewBlockBlobClient("source-" + c.mark)
			_, err := source.Upload(ctx, body(encoded(c.given())), nil)
			p.w.check(err)
			o := &blobs.CopyOptions{Conditions: c.conditions(), Tags: tagged, SendOptions: c.send()}
			if c.create {
				o.Conditions.IfNoneMatch = azcore.ETagAny
			}
			res, err := blobs.Copy(ctx, p.block().BlobClient(), p.container().NewBlobClient("source-"+c.mark), o)
			return res.Result, err
		}},
	)
}

func otherWays() (ways []*way) {
	ways = append(ways, targetWays("Range", pagesPlace, "content", "lease,dry run,always", func(p *port, _ call) optimistic.Target[[]byte] {
		return pages.NewRange(p.pages(), 0, 512)
	}, inPage, traceless)...)
	ways = append(ways, &way{name: "Put", place: pagesPlace, facet: "content", takes: "etag,*,lease", blind: true, final: true, traceless: true, lastWins: true, run: func(ctx context.Context, p *port, c call) (optimistic.Result, error) {
		return pages.Put(ctx, p.pages(), 0, page(c.given()), &pages.PutOptions{Conditions: c.conditions(), SendOptions: c.send()})
	}})
	ways = append(ways,
		&way{name: "Append", positional: true, place: appendPlace, facet: "content", takes: "lease,always", run: func(ctx context.Context, p *port, c call) (optimistic.Result, error) {
			res, err := appends.Append(ctx, p.log(), []byte(c.mark), &appends.AppendOptions{Conditions: c.beside(), Unique: true, SendOptions: c.send()})
			return res.Result, err
		}},
		&way{name: "AppendRecord", positional: true, place: recordPlace, facet: "content", takes: "lease,always", run: func(ctx context.Context, p *port, c call) (optimistic.Result, error) {
			res, err := appends.AppendRecord(ctx, p.log(), []byte(c.mark), &appends.AppendOptions{Conditions: c.beside(), SendOptions: c.send()})
			return res.Result, err
		}})
	ways = append(ways, targetWays("metadata", containerPlace, "metadata", "id,etag,lease,dry run,no lineage,always", func(p *port, _ call) optimistic.Target[map[string]string] {
		return settings.NewContainerMetadata(p.container())
	}, inMap, nil)...)
	ways = append(ways, targetWays("ACL", containerPlace, "acl", "etag,lease,dry run,always", func(p *port, _ call) optimistic.Target[settings.ACL] {
		return settings.NewContainerACL(p.container())
	}, inACL, traceless)...)
	lastWins := func(w *way) { w.traceless, w.lastWins = true, true }
	ways = append(ways, targetWays("metadata", queuePlace, "metadata", "dry run", func(p *port, _ call) optimistic.Target[map[string]string] {
		return settings.NewLastWriterWinsQueueMetadata(p.queue())
	}, inMap, lastWins)[:1]...)
	ways = append(ways, targetWays("ACL", queuePlace, "acl", "dry run", func(p *port, _ call) optimistic.Target[[]settings.AccessPolicy] {
		return settings.NewLastWriterWinsQueueACL(p.queue())
	}, inPolicies, lastWins)[:1]...)
	return append(ways, counterWays()...)
}

// counterWays add to a counter of three shards, by one digit for each mark.
func counterWays() []*way {
	add := func(ctx context.Context, p *port, c call) (optimistic.Result, error) {
		counter, err := keep(p, "counter", func() (*sharded.Counter, error) { return p.counter(c.send()), nil })
		if err != nil {
			return optimistic.Result{}, err
		}
		n := int64(1)
		for range strings.Index(weights, c.mark) {
			n *= 10
		}
		return counter.Add(ctx, n, &sharded.AddOptions{OperationID: c.id})
	}
	return []*way{
		{name: "Add", place: counterPlace, facet: "sum", takes: "id", run: add},
		{name: "Create and Add", place: counterPlace, facet: "sum", takes: "create", creates: true, skip: shards - 1, run: func(ctx context.Context, p *port, c call) (optimistic.Result, error) {
			if _, err := p.counter(c.send()).Create(ctx, shards); err != nil {
				return optimistic.Result{}, err
			}
			return add(ctx, p, c)
		}},
	}
}

// deleteCounter is the way to delete a counter.
var deleteCounter = &way{name: "Delete", place: counterPlace, facet: "sum", removes: true, run: func(ctx context.Context, p *port, c call) (optimistic.Result, error) {
	ch, err := p.counter(c.send()).Delete(ctx)
	return optimistic.Result{Changed: ch.Changed}, err
}}
