package files

import (
	"bytes"
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"

	"github.com/azconc/azconc/pkg/ptr"
)

// listedAtOnce is how many ranges of a file one list covers, 1 GiB of 4 MiB each: a file of many fragments has a long list.
const listedAtOnce = 256

// holes says which parts of a file were never written, or were cleared, and so are zeros. A list costs a request and may save
// none, so it is asked for only once a range of nothing but zeros was met and at least two ranges are left, and only as far as
// such ranges go on. Content without such a range costs nothing.
type holes struct {
	client *file.Client
	call   *call
	lease  string

	from, to int64  // what was listed
	data     []hull // of each range in it
	blind    bool   // lists are of no use here
}

// hull spans what was written within one range of a file; it is empty for a hole.
type hull struct{ begin, end int64 }

// zeros reports whether a range has no other byte.
func zeros(part []byte) bool {
	return len(part) == 0 || part[0] == 0 && bytes.Equal(part[1:], part[:len(part)-1])
}

// worth reports whether a list from an offset on may save requests, after a range of zeros.
func (h *holes) worth(at, size int64) bool {
	return !h.blind && at >= h.to && size-at > h.call.span
}

// list asks for the ranges from an offset on. It is sent once: without an answer the ranges are read, or written, as if there
// were no holes. The list counts only if it is of a file of this size, and of the version if one is given: an intermediary can
// make an answer that has no ranges.
func (h *holes) list(ctx context.Context, at, size int64, version azcore.ETag) {
	end := min(size, at+listedAtOnce*h.call.span)
	var list file.GetRangeListResponse
	err := h.call.wire().Once(ctx, "List Ranges", h.call.try, func(ctx context.Context) (err error) {
		list, err = h.client.GetRangeList(ctx, &file.GetRangeListOptions{Range: file.HTTPRange{Offset: at, Count: end - at}, LeaseAccessConditions: leasedBy(h.lease)})
		return err
	})
	etag := ptr.Value(list.ETag)
	if err != nil || list.FileContentLength == nil || *list.FileContentLength != size || etag == "" || version != "" && etag != version {
		h.blind = true
		return
	}
	data := make([]hull, (end-at+h.call.span-1)/h.call.span)
	for _, one := range list.Ranges {
		if one == nil || one.Start == nil || one.End == nil || *one.Start < 0 || *one.End < *one.Start {
			h.blind = true
			return
		}
		for begin, stop := max(*one.Start, at), min(*one.End+1, end); begin < stop; {
			i := (begin - at) / h.call.span
			edge := min(stop, at+(i+1)*h.call.span)
			if was := data[i]; was.end == 0 {
				data[i] = hull{begin, edge}
			} else {
				data[i] = hull{min(was.begin, begin), max(was.end, edge)}
			}
			begin = edge
		}
	}
	h.from, h.to, h.data = at, end, data
}

// written returns the part of a range that may have data; it is empty for a hole.
func (h *holes) written(at, end int64) hull {
	if at < h.from || at >= h.to {
		return hull{at, end}
	}
	return h.data[(at-h.from)/h.call.span]
}
