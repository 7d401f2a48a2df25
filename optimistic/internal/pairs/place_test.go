package pairs

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
)

// place is a kind of resource. Its functions are a program outside azconc.
type place struct {
	name    string
	facets  []string
	prepare func(w *world)                           // what the resource is in
	create  func(w *world, text string)              // with text in every facet
	read    func(w *world) map[string]string         // by facet; empty if the resource does not exist
	etag    func(w *world, facet string) azcore.ETag // the version that a caller of azconc may name
	foreign func(w *world, facet string, keep bool)  // adds an f, and keeps the rest of the resource or drops it; nil if it cannot be
	remove  func(w *world)                           // nil if it cannot be
	drops   []string                                 // facets of which foreign can drop the rest
	turns   bool                                     // writers take turns by a lease: nobody deletes it meanwhile, and what others write is lost, as it says
	copy    func(w *world)                           // to another place and back; nil if it cannot be
	lock    func(w *world) string                    // leases the resource; nil if it cannot be
	broken  func(w *world)                           // stores what is no text, with something after it; nil if it cannot be
}

// direct returns the clients of a program outside azconc.
func (w *world) direct() *port { return &port{w: w, transport: w.s} }

// document is the JSON of a text.
type document struct {
	Log string `json:"log"`
}

func encoded(text string) []byte { return must(json.Marshal(document{text})) }

func decoded(data []byte) string {
	var d document
	if json.Unmarshal(data, &d) != nil {
		return "?"
	}
	return d.Log
}

func body(data []byte) io.ReadSeekCloser { return streaming.NopCloser(strings.NewReader(string(data))) }

func (p *port) block() *blockblob.Client { return p.container().NewBlockBlobClient("n.json") }

// holding is the condition that a program outside azconc gives if the resource is leased.
func (w *world) holding() *blob.AccessConditions {
	return &blob.AccessConditions{LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: ptr.Optional(w.lease)}}
}

func containerOf(w *world) {
	_, err := w.direct().container().Create(w.ctx(), nil)
	w.check(err)
}

// own reports whether metadata or tags are azconc's.
func own(name string) bool { return strings.HasPrefix(strings.ToLower(name), "azconc") }

var tagged = map[string]string{"state": "ready"}

var blobPlace = &place{
	name: "blob", facets: []string{"content", "metadata", "tags", "headers"}, drops: []string{"content", "metadata", "tags"},
	prepare: containerOf,
	create: func(w *world, text string) {
		earlier := map[bool]string{true: "a", false: "b"}[text == "0"] // so that the first write is guarded
		tags := map[string]string{"log": text, optimistic.LineageKey: "w" + strings.Repeat(earlier, 16)}
		maps.Copy(tags, tagged)
		_, err := w.direct().block().Upload(w.ctx(), body(encoded(text)), &blockblob.UploadOptions{
			Metadata: map[string]*string{"log": &text}, Tags: tags, HTTPHeaders: &blob.HTTPHeaders{BlobContentLanguage: &text},
		})
		w.check(err)
	},
	read: func(w *world) map[string]string {
		client := w.direct().block()
		resp, err := client.DownloadStream(w.ctx(), nil)
		if azerr.Has(err, "BlobNotFound") {
			return nil
		}
		w.check(err)
		data, err := io.ReadAll(resp.Body)
		w.check(err)
		v := map[string]string{"content": decoded(data), "metadata": ptr.Value(metaOf(resp.Metadata)["log"]), "headers": ptr.Value(resp.ContentLanguage)}
		tags, err := client.GetTags(w.ctx(), nil)
		w.check(err)
		for _, tag := range tags.BlobTagSet {
			if *tag.Key == "log" {
				v["tags"] = *tag.Value
			}
		}
		return v
	},
	etag: func(w *world, facet string) azcore.ETag {
		if facet == "tags" {
			return "" // it is not the blob's
		}
		p, err := w.direct().block().GetProperties(w.ctx(), nil)
		w.check(err)
		return *p.ETag
	},
	foreign: foreignBlob,
	remove: func(w *world) {
		_, err := w.direct().block().Delete(w.ctx(), nil)
		w.check(err)
	},
	copy: func(w *world) {
		client, aside := w.direct().block(), w.direct().container().NewBlobClient("aside")
		_, tags := blobParts(w)
		_, err := aside.StartCopyFromURL(w.ctx(), client.URL(), nil)
		w.check(err)
		_, err = client.BlobClient().StartCopyFromURL(w.ctx(), aside.URL(), &blob.StartCopyFromURLOptions{BlobTags: tags})
		w.check(err)
	},
	lock: func(w *world) string {
		return lockOf(w, w.direct().block().BlobClient())
	},
	broken: func(w *world) {
		_, err := w.direct().block().Upload(w.ctx(), body([]byte(`{"log":"0"}} {"precious":true}`)), nil)
		w.check(err)
	},
}

func lockOf[C interface {
	*blob.Client
}](w *world, client C) string {
	l := must(lease.NewBlobClient(client, nil))
	resp, err := l.AcquireLease(w.ctx(), -1, nil)
	w.check(err)
	return *resp.LeaseID
}

// metaOf returns metadata with names in lower case, because HTTP does not keep their case.
func metaOf(metadata map[string]*string) map[string]*string {
	out := map[string]*string{}
	for name, value := range metadata {
		out[strings.ToLower(name)] = value
	}
	return out
}

// blobParts returns the metadata and the tags of the blob.
func blobParts(w *world) (metadata map[string]*string, tags map[string]string) {
	client := w.direct().block()
	p, err := client.GetProperties(w.ctx(), nil)
	w.check(err)
	all, err := client.GetTags(w.ctx(), nil)
	w.check(err)
	tags = map[string]string{}
	for _, tag := range all.BlobTagSet {
		tags[*tag.Key] = *tag.Value
	}
	return metaOf(p.Metadata), tags
}

func foreignBlob(w *world, facet string, keep bool) {
	client, now := w.direct().block(), w.place.read(w)
	metadata, tags := blobParts(w)
	if !keep {
		maps.DeleteFunc(metadata, func(name string, _ *string) bool { return own(name) })
		maps.DeleteFunc(tags, func(name, _ string) bool { return own(name) })
	}
	text := now[facet] + "f"
	var err error
	switch facet {
	case "content":
		_, err = client.Upload(w.ctx(), body(encoded(text)), &blockblob.UploadOptions{
			Metadata: metadata, Tags: tags, HTTPHeaders: &blob.HTTPHeaders{BlobContentLanguage: new(now["headers"])}, AccessConditions: w.holding(),
		})
	case "metadata":
		metadata["log"] = &text
		_, err = client.SetMetadata(w.ctx(), metadata, &blob.SetMetadataOptions{AccessConditions: w.holding()})
	case "tags":
		tags["log"] = text
		_, err = client.SetTags(w.ctx(), tags, &blob.SetTagsOptions{AccessConditions: w.holding()})
	case "headers":
		_, err = client.SetHTTPHeaders(w.ctx(), blob.HTTPHeaders{BlobContentLanguage: &text}, &blob.SetHTTPHeadersOptions{AccessConditions: w.holding()})
	}
	w.check(err)
}

var entityPlace = &place{
	name: "entity", facets: []string{"row"}, drops: []string{"row"},
	prepare: func(w *world) {
		_, err := w.direct().table().CreateTable(w.ctx(), nil)
		w.check(err)
	},
	create: func(w *world, text string) {
		_, err := w.direct().table().AddEntity(w.ctx(), entityOf(map[string]any{"log": text}), nil)
		w.check(err)
	},
	read: func(w *world) map[string]string {
		if p, _ := entityParts(w); p != nil {
			text, _ := p["log"].(string)
			return map[string]string{"row": text}
		}
		return nil
	},
	etag: func(w *world, _ string) azcore.ETag {
		_, etag := entityParts(w)
		return etag
	},
	foreign: func(w *world, facet string, keep bool) {
		mode := aztables.UpdateModeMerge
		if !keep {
			mode = aztables.UpdateModeReplace
		}
		text := w.place.read(w)[facet] + "f"
		_, err := w.direct().table().UpdateEntity(w.ctx(), entityOf(map[string]any{"log": text}), &aztables.UpdateEntityOptions{UpdateMode: mode})
		w.check(err)
	},
	remove: func(w *world) {
		_, err := w.direct().table().DeleteEntity(w.ctx(), "p", "r", nil)
		w.check(err)
	},
	copy: func(w *world) {
		p, _ := entityParts(w)
		w.place.remove(w)
		_, err := w.direct().table().AddEntity(w.ctx(), entityOf(p), nil)
		w.check(err)
	},
}

func entityOf(p map[string]any) []byte {
	p["PartitionKey"], p["RowKey"] = "p", "r"
	maps.DeleteFunc(p, func(name string, _ any) bool { return name == "Timestamp" || strings.HasPrefix(name, "odata") })
	return must(json.Marshal(p))
}

// entityParts returns what is stored; nil if there is no entity.
func entityParts(w *world) (p map[string]any, etag azcore.ETag) {
	resp, err := w.direct().table().GetEntity(context.Background(), "p", "r", nil)
	if azerr.Classify(err).Kind == azerr.NotFound {
		return nil, ""
	}
	w.check(err)
	w.check(json.Unmarshal(resp.Value, &p))
	return p, resp.ETag
}
