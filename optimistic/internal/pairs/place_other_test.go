package pairs

import (
	"io"
	"maps"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/pageblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/appends"
	"github.com/azconc/azconc/optimistic/sharded"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
)

func (p *port) pages() *pageblob.Client { return p.container().NewPageBlobClient("pages") }

func (p *port) log() *appendblob.Client { return p.container().NewAppendBlobClient("log") }

func page(text string) []byte { return append([]byte(text), make([]byte, 512-len(text))...) }

var pagesPlace = &place{
	name: "pages", facets: []string{"content"},
	prepare: containerOf,
	create: func(w *world, text string) {
		client := w.direct().pages()
		_, err := client.Create(w.ctx(), 512, nil)
		w.check(err)
		_, err = client.UploadPages(w.ctx(), body(page(text)), blob.HTTPRange{Count: 512}, nil)
		w.check(err)
	},
	read: func(w *world) map[string]string {
		return textOf(w, w.direct().pages().BlobClient(), func(data []byte) string { return strings.Trim(string(data), "\x00") })
	},
	etag: func(w *world, _ string) azcore.ETag { return etagOf(w, w.direct().pages().BlobClient()) },
	foreign: func(w *world, facet string, _ bool) {
		_, err := w.direct().pages().UploadPages(w.ctx(), body(page(w.place.read(w)[facet]+"f")), blob.HTTPRange{Count: 512}, &pageblob.UploadPagesOptions{AccessConditions: w.holding()})
		w.check(err)
	},
	remove: func(w *world) {
		_, err := w.direct().pages().Delete(w.ctx(), nil)
		w.check(err)
	},
	lock: func(w *world) string { return lockOf(w, w.direct().pages().BlobClient()) },
}

// textOf returns the content of a blob as the only facet.
func textOf(w *world, client *blob.Client, text func([]byte) string) map[string]string {
	resp, err := client.DownloadStream(w.ctx(), nil)
	if azerr.Has(err, "BlobNotFound") {
		return nil
	}
	w.check(err)
	data, err := io.ReadAll(resp.Body)
	w.check(err)
	return map[string]string{"content": text(data)}
}

func etagOf(w *world, client *blob.Client) azcore.ETag {
	p, err := client.GetProperties(w.ctx(), nil)
	w.check(err)
	return *p.ETag
}

// appendPlace is an append blob of plain texts, recordPlace one of records.
var appendPlace = logPlace("append blob", func(data []byte) string { return string(data) })

var recordPlace = logPlace("records", func(data []byte) string {
	var b strings.Builder
	for r, err := range appends.Records(strings.NewReader(string(data))) {
		if err != nil {
			return "?"
		}
		b.Write(r.Data)
	}
	return b.String()
})

func logPlace(name string, text func([]byte) string) *place {
	return &place{
		name: name, facets: []string{"content"},
		prepare: containerOf,
		create: func(w *world, _ string) {
			_, err := w.direct().log().Create(w.ctx(), nil)
			w.check(err)
		},
		read: func(w *world) map[string]string {
			v := textOf(w, w.direct().log().BlobClient(), text)
			if v != nil {
				v["content"] = "0" + v["content"] // which tells an empty blob from none
			}
			return v
		},
		etag: func(w *world, _ string) azcore.ETag { return etagOf(w, w.direct().log().BlobClient()) },
		foreign: func(w *world, _ string, _ bool) {
			data := "f"
			if name == "records" {
				data = "azconc-record f 1\nf\n"
			}
			_, err := w.direct().log().AppendBlock(w.ctx(), body([]byte(data)), &appendblob.AppendBlockOptions{AccessConditions: w.holding()})
			w.check(err)
		},
		remove: func(w *world) {
			_, err := w.direct().log().Delete(w.ctx(), nil)
			w.check(err)
		},
		lock: func(w *world) string { return lockOf(w, w.direct().log().BlobClient()) },
	}
}

var containerPlace = &place{
	name: "container", facets: []string{"metadata", "acl"}, drops: []string{"metadata"}, turns: true,
	prepare: func(*world) {},
	create: func(w *world, text string) {
		client := w.direct().container()
		_, err := client.Create(w.ctx(), &container.CreateOptions{Metadata: map[string]*string{"log": &text}})
		w.check(err)
		foreignACL(w, text)
	},
	read: func(w *world) map[string]string {
		client := w.direct().container()
		p, err := client.GetProperties(w.ctx(), nil)
		if azerr.Has(err, "ContainerNotFound") {
			return nil
		}
		w.check(err)
		acl, err := client.GetAccessPolicy(w.ctx(), nil)
		w.check(err)
		v := map[string]string{"metadata": ptr.Value(metaOf(p.Metadata)["log"]), "acl": ""}
		for _, policy := range acl.SignedIdentifiers {
			v["acl"] = *policy.ID
		}
		return v
	},
	etag: func(w *world, _ string) azcore.ETag {
		p, err := w.direct().container().GetProperties(w.ctx(), nil)
		w.check(err)
		return *p.ETag
	},
	foreign: func(w *world, facet string, keep bool) {
		client, text := w.direct().container(), w.place.read(w)[facet]+"f"
		if facet == "acl" {
			foreignACL(w, text)
			return
		}
		p, err := client.GetProperties(w.ctx(), nil)
		w.check(err)
		metadata := metaOf(p.Metadata)
		if !keep {
			maps.DeleteFunc(metadata, func(name string, _ *string) bool { return own(name) })
		}
		metadata["log"] = &text
		_, err = client.SetMetadata(w.ctx(), &container.SetMetadataOptions{Metadata: metadata})
		w.check(err)
	},
	remove: func(w *world) {
		l := must(lease.NewContainerClient(w.direct().container(), nil))
		_, _ = l.BreakLease(w.ctx(), &lease.ContainerBreakOptions{BreakPeriod: new(int32(0))}) // if there is one
		_, err := w.direct().container().Delete(w.ctx(), nil)
		w.check(err)
	},
	lock: func(w *world) string {
		l := must(lease.NewContainerClient(w.direct().container(), nil))
		resp, err := l.AcquireLease(w.ctx(), -1, nil)
		w.check(err)
		return *resp.LeaseID
	},
}

func foreignACL(w *world, text string) {
	_, err := w.direct().container().SetAccessPolicy(w.ctx(), &container.SetAccessPolicyOptions{
		ContainerACL: []*container.SignedIdentifier{{ID: &text, AccessPolicy: &container.AccessPolicy{Permission: new("r")}}},
	})
	w.check(err)
}

var queuePlace = &place{
	name: "queue", facets: []string{"metadata", "acl"},
	prepare: func(*world) {},
	create: func(w *world, text string) {
		_, err := w.direct().queue().Create(w.ctx(), &azqueue.CreateOptions{Metadata: map[string]*string{"log": &text}})
		w.check(err)
		queueACL(w, text)
	},
	read: func(w *world) map[string]string {
		client := w.direct().queue()
		p, err := client.GetProperties(w.ctx(), nil)
		if azerr.Has(err, "QueueNotFound") {
			return nil
		}
		w.check(err)
		acl, err := client.GetAccessPolicy(w.ctx(), nil)
		w.check(err)
		v := map[string]string{"metadata": ptr.Value(metaOf(p.Metadata)["log"]), "acl": ""}
		for _, policy := range acl.SignedIdentifiers {
			v["acl"] = *policy.ID
		}
		return v
	},
	foreign: func(w *world, facet string, _ bool) {
		text := w.place.read(w)[facet] + "f"
		if facet == "acl" {
			queueACL(w, text)
			return
		}
		_, err := w.direct().queue().SetMetadata(w.ctx(), &azqueue.SetMetadataOptions{Metadata: map[string]*string{"log": &text}})
		w.check(err)
	},
}

func queueACL(w *world, text string) {
	_, err := w.direct().queue().SetAccessPolicy(w.ctx(), &azqueue.SetAccessPolicyOptions{
		QueueACL: []*azqueue.SignedIdentifier{{ID: &text, AccessPolicy: &azqueue.AccessPolicy{Permission: new("r")}}},
	})
	w.check(err)
}

const shards = 3

// weights are what a call adds to a counter: by the digits of the sum one sees which calls were applied how often.
const weights = "aophfe"

var counterPlace = &place{
	name: "counter", facets: []string{"sum"},
	prepare: containerOf,
	create: func(w *world, _ string) {
		_, err := w.direct().counter(optimistic.SendOptions{}).Create(w.ctx(), shards)
		w.check(err)
	},
	read: func(w *world) map[string]string {
		total, err := w.direct().counter(optimistic.SendOptions{}).Get(w.ctx())
		if err != nil {
			return nil // it does not exist, or is being made or deleted
		}
		text, sum := "0", total.Value
		for _, mark := range weights {
			text += strings.Repeat(string(mark), int(sum%10))
			sum /= 10
		}
		return map[string]string{"sum": text}
	},
	remove: func(w *world) {
		_, err := w.direct().counter(optimistic.SendOptions{}).Delete(w.ctx())
		w.check(err)
	},
}

// counter returns the counter as a process opens it.
func (p *port) counter(o optimistic.SendOptions) *sharded.Counter {
	box := p.container()
	return must(sharded.NewCounter("visits", func(name string) optimistic.Target[sharded.Part] { return partOf(box, name) }, &sharded.Options{SendOptions: o}))
}
