package doctor

import (
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/google/uuid"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/manual"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
)

// container examines what the credential permits in a container, and how conditions fare on the way.
func (p *patient) container(ctx context.Context) {
	client, err := p.f.Container(p.opts.Container)
	if err != nil {
		p.refused("container", p.opts.Container.Container, err)
		return
	}
	name := p.opts.Container.Container
	err = p.ask(ctx, func(ctx context.Context) error {
		r, err := client.GetProperties(ctx, nil)
		if ptr.Value(r.HasImmutabilityPolicy) || ptr.Value(r.HasLegalHold) || ptr.Value(r.IsImmutableStorageWithVersioningEnabled) {
			p.add("features", warning, "use a container without a policy for state and locks", "%s is immutable: blobs can be created there, but not changed or deleted", name)
		}
		return err
	})
	if azerr.Absent(err) == "container" {
		p.refused("container show", name, err)
		return
	}
	p.permitted("container show", name, err)
	err = p.ask(ctx, func(ctx context.Context) error {
		_, err := client.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{MaxResults: new(int32(1))}).NextPage(ctx)
		return err
	})
	p.permitted("blob list", name, err)
	if !p.opts.ReadOnly {
		p.probe(ctx, client)
	}
}

// probe creates a blob, and reads, changes, leases and deletes it. Each request is sent once, so that a
// repetition is an intermediary's.
func (p *patient) probe(ctx context.Context, in *container.Client) {
	name := "azconc-doctor-" + uuid.NewString()
	on := p.opts.Container.Container + "/" + name
	client := in.NewBlockBlobClient(name)
	content := func(text string) io.ReadSeekCloser { return streaming.NopCloser(strings.NewReader(text)) }
	var written blockblob.UploadResponse
	err := p.ask(ctx, func(ctx context.Context) (err error) {
		written, err = client.Upload(ctx, content("1"), &blockblob.UploadOptions{AccessConditions: create()})
		return err
	})
	if o := azerr.Classify(err); o.Kind == azerr.Conflict {
		p.add("intermediary", failed, "have its operator turn that off; until then --confirm-conflicts always, or ConfirmAlways in Go, on every command",
			"something in between repeats writes: a blob that nobody has created before exists already")
	} else if !p.permitted("blob create", on, err) {
		return
	}
	defer p.remove(ctx, client, on)
	if err == nil && ptr.Value(written.VersionID) != "" {
		p.add("features", ok, "", "the account keeps versions: each write is one, and is paid for")
	}
	if err == nil && ptr.Value(written.ETag) == "" {
		p.add("intermediary", failed, "have its operator keep response headers: without ETags nothing can be changed safely", "something in between removes ETags")
		return
	}
	var read blob.DownloadStreamResponse
	err = p.ask(ctx, func(ctx context.Context) (err error) {
		if read, err = client.DownloadStream(ctx, nil); err == nil {
			err = read.Body.Close()
		}
		return err
	})
	if !p.permitted("blob get", on, err) {
		return
	}
	tag := ptr.Value(read.ETag)
	if strings.HasPrefix(string(tag), "W/") || tag == "" || written.ETag != nil && tag != *written.ETag {
		p.add("intermediary", failed, "have its operator leave ETags alone, such as by turning compression off", "something in between changes ETags: %q was written, %q was read", ptr.Value(written.ETag), tag)
		return
	}
	p.conditional(ctx, client, on, tag, content)
	p.lease(ctx, client, on)
}

func create() *blob.AccessConditions {
	return &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: new(azcore.ETagAny)}}
}

// conditional changes the blob under its ETag, and tries to change it under the old one.
func (p *patient) conditional(ctx context.Context, client *blockblob.Client, on string, tag azcore.ETag, content func(string) io.ReadSeekCloser) {
	under := &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: &tag}}
	err := p.ask(ctx, func(ctx context.Context) error {
		_, err := client.Upload(ctx, content("2"), &blockblob.UploadOptions{AccessConditions: under})
		return err
	})
	if azerr.Classify(err).Kind == azerr.Conflict {
		p.add("intermediary", failed, "have its operator turn that off; until then --confirm-conflicts always on every command",
			"something in between repeats writes: the only write of a new blob met a conflict")
		return
	}
	if !p.permitted("blob put --if-match", on, err) {
		return
	}
	err = p.ask(ctx, func(ctx context.Context) error {
		_, err := client.Upload(ctx, content("3"), &blockblob.UploadOptions{AccessConditions: under})
		return err
	})
	if o := azerr.Classify(err); o.Status != http.StatusPreconditionFailed {
		p.add("intermediary", failed, keptCure,
			"a write under an old ETag was not refused: something in between removes If-Match")
	}
}

func (p *patient) lease(ctx context.Context, client *blockblob.Client, on string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	leases := pessimistic.NewBlob(client)
	held, err := manual.Acquire(ctx, leases, nil)
	if !p.permitted("blob lease", on, err) {
		return
	}
	if err := manual.Release(ctx, leases, held.ID, nil); err != nil {
		p.refused("blob lease release", on, err)
	}
}

func (p *patient) remove(ctx context.Context, client *blockblob.Client, on string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	_, err := client.Delete(ctx, nil)
	if !p.permitted("blob delete", on, err) {
		p.f.Notef("the blob %s stays", on)
	}
}
