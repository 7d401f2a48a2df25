package protocol

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// FuzzForeignLineage reads any text as a lineage, as metadata that another program wrote. What is read is written so that
// it is read again the same; it fits where it has to be stored; it proves nothing about a write whose id is not in it.
func FuzzForeignLineage(f *testing.F) {
	full := LineageOf()
	for range 40 {
		full = full.Push(LineageSize, Entry{ID: NewWriteID(), Base: Over(`"0x8DE0A1B2C3D4E5F"`)})
	}
	crowded := full
	for i := range 40 {
		crowded = crowded.Push(LineageSize, Entry{ID: NewWriteID(), Base: Over(`"0x8DE0A1B2C3D4E5F"`), Passed: i})
	}
	performed := full.Perform(NewIntent("blob", "fuzz"), time.Unix(1e9, 0))
	f.Add(full.String(), "")
	f.Add(performed.String(), performed.OperationsString())
	f.Add(crowded.String(), "")
	f.Add("w1.-,w2.?", "AAAAAAAAAAAAAA")
	f.Add("~.0", "0")
	f.Add(TagLineage(full), "")
	f.Add("a.-,~2~~a~-", "!")
	ours := NewWriteID()
	f.Fuzz(func(t *testing.T, writes, operations string) {
		l := ParseLineage(writes, operations)
		again := ParseLineage(l.String(), l.OperationsString())
		if len(l.String()) >= maxLineageBytes-markSize { // marks may have been left out
			l.marks = l.marks[:min(len(l.marks), len(again.marks))]
		}
		if !reflect.DeepEqual(again, l) {
			t.Errorf("%q, %q: %+v is read again as %+v", writes, operations, l, again)
		}
		for _, c := range l.String() + l.OperationsString() {
			if c < ' ' || c > '~' {
				t.Fatalf("%q is written with %q, which no header can have", writes, c)
			}
		}
		if fitted := ParseLineage(l.Fit(1024), ""); len(l.Fit(1024)) > 1024 || len(fitted.Writes) > len(l.Writes) {
			t.Errorf("%q does not fit into 1024 characters: %d", writes, len(l.Fit(1024)))
		}
		if tag := TagLineage(l); len(l.Writes) > 0 && len(tag) > maxTagValue {
			t.Errorf("%q makes a tag of %d characters", writes, len(tag))
		}
		if strings.Contains(writes, ours) {
			return
		}
		if l.Has(ours) || l.holds(ours) {
			t.Errorf("%q proves a write that is not in it", writes)
		}
		// Our write on top is found, whatever the rest is, and the rest is carried on.
		pushed := ParseLineage(l.Push(LineageSize, Entry{ID: ours, Base: Over(azcore.ETag(`"0x1"`))}).String(), "")
		if !pushed.holds(ours) || !pushed.replaced(`"0x1"`) {
			t.Errorf("%q: our write on top of it is not found: %+v", writes, pushed)
		}
	})
}

// FuzzTagValue reads any text as the value of a lineage tag.
func FuzzTagValue(f *testing.F) {
	f.Add("wabcdefghijklmnop.oabcdefghijklm")
	f.Add("..")
	f.Fuzz(func(t *testing.T, value string) {
		l := ParseTagLineage(value)
		written := TagLineage(l)
		again := ParseTagLineage(written)
		if len(value) <= maxTagValue && len(l.Writes)+len(l.Operations) > 0 && (len(again.Writes) != len(l.Writes) || TagLineage(again) != written) {
			t.Errorf("%q is read as %+v, and again as %+v", value, l, again)
		}
	})
}
