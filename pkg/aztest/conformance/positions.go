package conformance

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/pageblob"
)

// Positions tests the conditions on an append blob's length and on a page blob's sequence number.
func Positions(t T, h Harness) {
	c := h.Container(t)
	t.Run("append", func(t T) { appendPositions(t, h, target{container: c, name: "append"}) })
	t.Run("sequence", func(t T) { sequences(t, h, target{container: c, name: "pages"}) })
}

func appendPositions(t T, h Harness, x target) {
	x.create(t, "append")
	add := func(conditions *appendblob.AppendPositionAccessConditions) said {
		return call(func(ctx context.Context) error {
			_, err := x.append().AppendBlock(ctx, text("12345"), &appendblob.AppendBlockOptions{AppendPositionAccessConditions: conditions})
			return err
		})
	}
	at := func(n int64) *appendblob.AppendPositionAccessConditions {
		return &appendblob.AppendPositionAccessConditions{AppendPosition: &n}
	}
	max := func(n int64) *appendblob.AppendPositionAccessConditions {
		return &appendblob.AppendPositionAccessConditions{MaxSize: &n}
	}
	const wrongPosition, tooLarge said = "412 AppendPositionConditionNotMet", "412 MaxBlobSizeConditionNotMet"
	for _, q := range []struct {
		question   string
		conditions *appendblob.AppendPositionAccessConditions
		want       said
	}{
		{"at its end", at(0), success},
		{"at where it ended before", at(0), wrongPosition},
		{"beyond its end", at(6), wrongPosition},
		{"up to a size that it would exceed", max(9), tooLarge},
		{"up to its new size", max(10), success},
	} {
		expect{service: q.want}.check(t, h, q.question, add(q.conditions))
	}
	seal := call(func(ctx context.Context) error { _, err := x.append().Seal(ctx, nil); return err })
	expect{service: success}.check(t, h, "seal", seal)
	expect{service: "409 BlobIsSealed"}.check(t, h, "append to a sealed blob", add(nil))
	expect{service: success}.check(t, h, "seal again", call(func(ctx context.Context) error { _, err := x.append().Seal(ctx, nil); return err }))
	expect{service: "409 InvalidBlobType"}.check(t, h, "append to a block blob", call(func(ctx context.Context) error {
		b := target{container: x.container, name: "block"}
		b.create(t, "")
		_, err := b.append().AppendBlock(ctx, text("12345"), nil)
		return err
	}))
}

func sequences(t T, h Harness, x target) {
	x.create(t, "page")
	number := func(action pageblob.SequenceNumberActionType, n *int64) said {
		return call(func(ctx context.Context) error {
			_, err := x.page().UpdateSequenceNumber(ctx, &pageblob.UpdateSequenceNumberOptions{ActionType: &action, SequenceNumber: n})
			return err
		})
	}
	current := func() int64 {
		p, err := x.page().GetProperties(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return *p.BlobSequenceNumber
	}
	for _, step := range []struct {
		action pageblob.SequenceNumberActionType
		n      *int64
		want   int64
	}{
		{pageblob.SequenceNumberActionTypeUpdate, new(int64(7)), 7},
		{pageblob.SequenceNumberActionTypeMax, new(int64(5)), 7},
		{pageblob.SequenceNumberActionTypeMax, new(int64(9)), 9},
		{pageblob.SequenceNumberActionTypeIncrement, nil, 10},
		{pageblob.SequenceNumberActionTypeUpdate, new(int64(5)), 5},
	} {
		expect{service: success}.check(t, h, string(step.action), number(step.action, step.n))
		if got := current(); got != step.want {
			t.Errorf("%s: the sequence number is %d, want %d", step.action, got, step.want)
		}
	}
	const wrongNumber said = "412 SequenceNumberConditionNotMet"
	put := func(s *pageblob.SequenceNumberAccessConditions) said {
		return call(func(ctx context.Context) error {
			_, err := x.page().UploadPages(ctx, page(), blob.HTTPRange{Count: 512}, &pageblob.UploadPagesOptions{SequenceNumberAccessConditions: s})
			return err
		})
	}
	type s = pageblob.SequenceNumberAccessConditions
	for _, q := range []struct {
		question   string
		conditions *s
		want       said
	}{
		{"equal", &s{IfSequenceNumberEqualTo: new(int64(5))}, success},
		{"equal to another", &s{IfSequenceNumberEqualTo: new(int64(6))}, wrongNumber},
		{"at most", &s{IfSequenceNumberLessThanOrEqualTo: new(int64(5))}, success},
		{"at most a lower one", &s{IfSequenceNumberLessThanOrEqualTo: new(int64(4))}, wrongNumber},
		{"below", &s{IfSequenceNumberLessThan: new(int64(6))}, success},
		{"below the same", &s{IfSequenceNumberLessThan: new(int64(5))}, wrongNumber},
	} {
		expect{service: q.want}.check(t, h, q.question, put(q.conditions))
	}
	if got := current(); got != 5 {
		t.Errorf("Put Page changes the sequence number to %d", got)
	}
}
