package aztest_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/pageblob"

	"github.com/azconc/azconc/pkg/aztest"
)

func writePages(t *testing.T, client *pageblob.Client, offset, count int64, value byte) {
	t.Helper()
	body := streaming.NopCloser(bytes.NewReader(bytes.Repeat([]byte{value}, int(count))))
	if _, err := client.UploadPages(t.Context(), body, blob.HTTPRange{Offset: offset, Count: count}, nil); err != nil {
		t.Fatal(err)
	}
}

func listPages(t *testing.T, client *pageblob.Client, o *pageblob.GetPageRangesOptions) string {
	t.Helper()
	page, err := client.NewGetPageRangesPager(o).NextPage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range page.PageRange {
		out = append(out, fmt.Sprintf("%d-%d", *r.Start, *r.End))
	}
	return fmt.Sprint(out)
}

func TestALargePageBlobTakesTheMemoryOfItsPages(t *testing.T) {
	s := aztest.New(nil)
	s.BlockBlob("box", "unused")
	client := s.Container("box").NewPageBlobClient("disk")
	const size = 8 << 40
	if _, err := client.Create(t.Context(), size, nil); err != nil {
		t.Fatal(err)
	}
	writePages(t, client, size-1024, 1024, 'x')
	writePages(t, client, 512, 512, 'y')
	if got := listPages(t, client, nil); got != "[512-1023 8796093021184-8796093022207]" {
		t.Errorf("pages: %s", got)
	}
	if got := listPages(t, client, &pageblob.GetPageRangesOptions{Range: blob.HTTPRange{Offset: 0, Count: 1 << 30}}); got != "[512-1023]" {
		t.Errorf("pages of the first GiB: %s", got)
	}
	resp, err := client.DownloadStream(t.Context(), &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: size - 513, Count: 2}})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if data, err := io.ReadAll(resp.Body); err != nil || string(data) != "xx" {
		t.Errorf("read %q, %v", data, err)
	}
	_, err = client.Create(t.Context(), size+512, nil)
	expectCode(t, "a larger one", code(err), "InvalidHeaderValue")
	_, err = client.UploadPages(t.Context(), content("short"), blob.HTTPRange{Offset: 0, Count: 512}, nil)
	expectCode(t, "a body that is no page", code(err), "InvalidHeaderValue")
	_, err = client.ClearPages(t.Context(), blob.HTTPRange{Offset: size, Count: 512}, nil)
	expectCode(t, "beyond the end", code(err), "InvalidPageRange")
}

func TestChangedPagesSinceASnapshot(t *testing.T) {
	s := aztest.New(nil)
	s.BlockBlob("box", "unused")
	client := s.Container("box").NewPageBlobClient("disk")
	if _, err := client.Create(t.Context(), 8192, nil); err != nil {
		t.Fatal(err)
	}
	writePages(t, client, 0, 2048, 'a')
	snapshot, err := client.CreateSnapshot(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	writePages(t, client, 512, 512, 'b')
	writePages(t, client, 0, 512, 'a') // the same again
	writePages(t, client, 4096, 512, 'c')
	if _, err := client.ClearPages(t.Context(), blob.HTTPRange{Offset: 1024, Count: 512}, nil); err != nil {
		t.Fatal(err)
	}
	page, err := client.NewGetPageRangesDiffPager(&pageblob.GetPageRangesDiffOptions{PrevSnapshot: snapshot.Snapshot}).NextPage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(page.PageRange) != 2 || *page.PageRange[0].Start != 0 || *page.PageRange[0].End != 1023 || *page.PageRange[1].Start != 4096 || len(page.ClearRange) != 1 || *page.ClearRange[0].Start != 1024 {
		t.Errorf("%d written, %d cleared", len(page.PageRange), len(page.ClearRange))
	}
}

// TestAPageBlobOfAnySizeIsCopied and read as far as it fits into memory: a copy, and a read of all of it, ended the process.
func TestAPageBlobOfAnySizeIsCopied(t *testing.T) {
	s := aztest.New(&aztest.Options{Anonymous: true})
	small := s.BlockBlob("box", "small")
	client := s.Container("box").NewPageBlobClient("disk")
	if _, err := client.Create(t.Context(), 8<<40, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Container("box").NewPageBlobClient("copy").StartCopyFromURL(t.Context(), client.URL(), nil); err != nil {
		t.Errorf("a copy: %v", err)
	}
	_, err := client.DownloadStream(t.Context(), nil)
	expectCode(t, "all of it", code(err), "NotImplemented")
	_, err = small.UploadBlobFromURL(t.Context(), client.URL(), nil)
	expectCode(t, "all of it, as a source", code(err), "NotImplemented")
	_, err = small.CopyFromURL(t.Context(), client.URL(), &blob.CopyFromURLOptions{SourceContentMD5: make([]byte, 16)})
	expectCode(t, "all of it, for its sum", code(err), "NotImplemented")
}
