package conformance

import (
	"context"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/lease"
)

// File tests the leases of files, which are the only concurrency control of the File service over REST, and that it
// ignores conditions.
func File(t T, h Harness) {
	share := h.Share(t)
	f := share.NewRootDirectoryClient().NewFileClient("leased")
	if _, err := f.Create(t.Context(), 16, nil); err != nil {
		t.Fatal(err)
	}
	holder := func(id string) *lease.FileClient {
		l, err := lease.NewFileClient(f, &lease.FileClientOptions{LeaseID: &id})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	acquire := func(id string) said {
		return call(func(ctx context.Context) error { _, err := holder(id).Acquire(ctx, nil); return err })
	}
	write := func(id string) said {
		return call(func(ctx context.Context) error {
			_, err := f.UploadRange(ctx, 0, text("0123456789abcdef"), &file.UploadRangeOptions{LeaseAccessConditions: fileLease(id)})
			return err
		})
	}
	read := func(id string) said {
		return call(func(ctx context.Context) error {
			r, err := f.DownloadStream(ctx, &file.DownloadStreamOptions{LeaseAccessConditions: fileLease(id)})
			if err == nil {
				err = r.Body.Close()
			}
			return err
		})
	}
	ask := func(question string, want, got said) { expect{service: want}.check(t, h, question, got) }
	ask("write with an id, not leased", "412 LeaseNotPresentWithFileOperation", write(someLease))
	ask("acquire", success, acquire(someLease))
	ask("acquire again under the same id", success, acquire(someLease))
	ask("acquire under another id", "409 LeaseAlreadyPresent", acquire(anotherLease))
	ask("write without the id", "412 LeaseIdMissing", write(""))
	ask("write with another id", "412 LeaseIdMismatchWithFileOperation", write(anotherLease))
	ask("write with the id", success, write(someLease))
	ask("read without the id", success, read(""))
	ask("read with another id", "412 LeaseIdMismatchWithFileOperation", read(anotherLease))
	ask("change", success, call(func(ctx context.Context) error {
		_, err := holder(someLease).Change(ctx, anotherLease, nil)
		return err
	}))
	ask("change again, as after a lost response", success, call(func(ctx context.Context) error {
		_, err := holder(someLease).Change(ctx, anotherLease, nil)
		return err
	}))
	ask("release under the old id", "409 LeaseIdMismatchWithLeaseOperation", call(func(ctx context.Context) error { _, err := holder(someLease).Release(ctx, nil); return err }))
	ask("break", success, call(func(ctx context.Context) error { _, err := holder(someLease).Break(ctx, nil); return err }))
	ask("write with the id of a broken lease", "412 LeaseLost", write(anotherLease))
	ask("write without an id when it is broken", success, write(""))
	unmet := http.Header{"If-Match": {`"0x8D0000000000001"`}}
	ask("write with If-Match: another", success, callWith(unmet, func(ctx context.Context) error {
		_, err := f.UploadRange(ctx, 0, text("0123456789abcdef"), nil)
		return err
	}))
	ask("delete", success, call(func(ctx context.Context) error { _, err := f.Delete(ctx, nil); return err }))
	ask("read when it is deleted", "404 ResourceNotFound", read(""))
}

func fileLease(id string) *file.LeaseAccessConditions {
	if id == "" {
		return nil
	}
	return &file.LeaseAccessConditions{LeaseID: &id}
}
