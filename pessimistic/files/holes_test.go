package files

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/observe"
)

// sparse makes the file one of so many ranges, of which only some were written, and returns its content.
func sparse(t *testing.T, s *aztest.Service, f *file.Client, ranges int, written ...int) []byte {
	t.Helper()
	content := make([]byte, ranges*testSpan)
	s.SetFaults()
	if _, err := f.Create(context.Background(), int64(len(content)), nil); err != nil {
		t.Fatal(err)
	}
	for _, i := range written {
		part := content[i*testSpan+8 : (i+1)*testSpan-8]
		copy(part, patterned(len(part), byte(i+1)))
		if _, err := f.UploadRange(context.Background(), int64(i*testSpan+8), streaming.NopCloser(bytes.NewReader(part)), nil); err != nil {
			t.Fatal(err)
		}
	}
	s.Reset()
	return content
}

func tally(ops []string) map[string]int {
	n := map[string]int{}
	for _, op := range ops {
		n[op]++
	}
	return n
}

// Holes are not requested: a list costs one request per 256 ranges, and only once a range of zeros was met.
func TestHolesAreNotRead(t *testing.T) {
	for name, tt := range map[string]struct {
		ranges      int
		written     []int
		gets, lists int
	}{
		"dense":                        {9, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}, 9, 0},
		"nothing but a hole":           {300, nil, 1, 2},
		"a hole at the end":            {50, []int{0}, 1 + 4 + 0, 1}, // four are under way by then
		"a hole and then data":         {50, []int{0, 48, 49}, 1 + 4 + 2, 1},
		"data here and there":          {100, []int{10, 20, 30}, 1 + 3, 1},
		"too short for a list":         {2, nil, 2, 0},
		"a hole among the last":        {6, []int{0, 2, 3, 4, 5}, 6, 0},
		"beyond what one list says":    {600, []int{0, 500}, 1 + 4 + 1, 3},
		"data behind the first list":   {300, []int{270, 271, 272, 273, 274, 275, 276}, 1 + 7, 2},
		"data where the list ends":     {300, []int{256, 257}, 1 + 1 + 3, 2},
		"a file of one range, no data": {1, nil, 1, 0},
	} {
		fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
			content := sparse(t, s, f, tt.ranges, tt.written...)
			var b bytes.Buffer
			got, err := Download(t.Context(), f, &b, &DownloadOptions{span: testSpan})
			sent := tally(fileOps(s))
			if err != nil || !bytes.Equal(b.Bytes(), content) || sent["Get File"] != tt.gets || sent["List Ranges"] != tt.lists || got.Requests != tt.gets+tt.lists {
				t.Errorf("%s: %d bytes, equal %v, %+v, %v, sent %v", name, b.Len(), bytes.Equal(b.Bytes(), content), got, err, sent)
			}
		})
	}
}

// A list without an answer, or of another version, is no list: everything is read, and a change is noticed as ever.
func TestAListThatCannotBeTrustedIsIgnored(t *testing.T) {
	for _, kind := range []aztest.FaultKind{aztest.LoseAnswer, aztest.LoseRequest, aztest.CutAnswer, aztest.Throttle, aztest.Page, aztest.Hang, aztest.Rechunk, aztest.Refuse} {
		fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
			content := sparse(t, s, f, 20, 17)
			s.SetFaults(aztest.Fault{Kind: kind, Match: aztest.Op("List Ranges")})
			var b bytes.Buffer
			got, err := Download(t.Context(), f, &b, &DownloadOptions{span: testSpan})
			if sent := tally(fileOps(s)); err != nil || !bytes.Equal(b.Bytes(), content) || sent["List Ranges"] != 1 || kind != aztest.Rechunk && got.Requests != 21 {
				t.Errorf("%s: %+v, %v, sent %v", kind, got, err, sent)
			}
		})
	}
	for _, restart := range []bool{false, true} {
		fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
			content := sparse(t, s, f, 20, 17)
			o := &DownloadOptions{span: testSpan}
			written := false
			o.Hooks.Span = func(ctx context.Context, one observe.Span) (context.Context, func(error)) {
				if one.Name == "List Ranges" && !written {
					written = true
					copy(content, "new") // and what had data has none: no range is left by which to notice
					clear(content[17*testSpan:])
					_, err := f.UploadRange(context.Background(), 0, streaming.NopCloser(bytes.NewReader([]byte("new"))), nil)
					_, also := f.ClearRange(context.Background(), file.HTTPRange{Offset: 17 * testSpan, Count: testSpan}, nil)
					if err = errors.Join(err, also); err != nil {
						t.Error(err)
					}
				}
				return ctx, func(error) {}
			}
			var b bytes.Buffer
			if restart {
				o.Restart = func() error { b.Reset(); return nil }
			}
			got, err := Download(t.Context(), f, &b, o)
			if restart && (err != nil || got.Restarts != 1 || !bytes.Equal(b.Bytes(), content)) || !restart && !errors.Is(err, pessimistic.ErrConflict) {
				t.Errorf("restart %v: %+v, %v", restart, got, err)
			}
		})
	}
}

// Zeros are not sent: where the file has none they are cleared, and where it has, nothing is done.
func TestZerosAreNotWritten(t *testing.T) {
	data := patterned(testSpan, 7)
	long := slices.Concat(data, make([]byte, 20*testSpan), data)
	for name, tt := range map[string]struct {
		ranges  int // before
		written []int
		content []byte
		sent    map[string]int
		ranked  int // ranges written
	}{
		"over holes":         {22, []int{0, 21}, long, map[string]int{"List Ranges": 1, "Put Range": 2}, 2},
		"over data":          {22, []int{0, 1, 2, 3, 4, 21}, long, map[string]int{"List Ranges": 1, "Put Range": 6}, 6},
		"behind the old end": {1, []int{0}, long, map[string]int{"Set File Properties": 1, "Put Range": 2}, 2},
		"nothing at all":     {22, nil, make([]byte, 22*testSpan), map[string]int{"List Ranges": 1}, 0},
		"one range of zeros": {1, []int{0}, make([]byte, testSpan), map[string]int{"Put Range": 1}, 1},
		"a dense content":    {2, nil, slices.Concat(data, data), map[string]int{"Put Range": 2}, 2},
	} {
		fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
			sparse(t, s, f, tt.ranges, tt.written...)
			out, err := Upload(t.Context(), f, bytes.NewReader(tt.content), int64(len(tt.content)), &UploadOptions{span: testSpan})
			sent, want := tally(fileOps(s)), tally(join(fileAcquire, []string{lookAtFile}, fileRelease))
			for op, n := range tt.sent {
				want[op] += n
			}
			if err != nil || !maps.Equal(sent, want) || out.Ranges != tt.ranked || out.Changed != (tt.ranked > 0) || !bytes.Equal(stored(t, s, f), tt.content) {
				t.Errorf("%s: %+v, %v, sent %v, want %v", name, out, err, sent, want)
			}
		})
	}
	// A file that another client has filled since it was created here is not taken for one of zeros.
	fileWorld(t, func(t *testing.T, s *aztest.Service, _ *file.Client) {
		f := s.File("box", "new")
		content := make([]byte, 4*testSpan)
		hooks := observe.Hooks{Span: func(ctx context.Context, one observe.Span) (context.Context, func(error)) {
			return ctx, func(error) {
				if one.Name == "Create File" {
					if _, err := f.UploadRange(context.Background(), 2*testSpan, streaming.NopCloser(bytes.NewReader(data)), nil); err != nil {
						t.Error(err)
					}
				}
			}
		}}
		out, err := Upload(t.Context(), f, bytes.NewReader(content), int64(len(content)), &UploadOptions{span: testSpan, Create: true, Hooks: hooks})
		if err != nil || !out.Created || out.Ranges != 1 || !bytes.Equal(stored(t, s, f), content) {
			t.Errorf("%+v, %v", out, err)
		}
	})
}

// An update reads holes as zeros, clears what becomes zeros, and leaves a file that grows by zeros to the service.
func TestAnUpdateOfASparseFile(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		content := sparse(t, s, f, 40, 0, 30)
		want := append(slices.Clone(content), make([]byte, 5*testSpan)...)
		clear(want[30*testSpan : 31*testSpan])
		out, err := Update(t.Context(), f, func(_ context.Context, old []byte) ([]byte, error) {
			if !bytes.Equal(old, content) {
				t.Error("the change got another content")
			}
			return want, nil
		}, &UpdateOptions{span: testSpan})
		sent := tally(fileOps(s))
		if err != nil || out.Ranges != 1 || sent["Put Range"] != 1 || sent["List Ranges"] != 1 || sent["Get File"] != 1+4+1 || !bytes.Equal(stored(t, s, f), want) {
			t.Errorf("%+v, %v, sent %v", out, err, sent)
		}
	})
}
