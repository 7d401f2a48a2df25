package azerr

import (
	"slices"
	"strings"
	"testing"
)

func TestEveryDocumentedCodeIsExplained(t *testing.T) {
	for _, row := range documented {
		for code := range strings.FieldsSeq(row.codes) {
			e, ok := Explain(code)
			if !ok || e.Code != code || e.Means == "" || e.Until == "" || e.Do == "" {
				t.Errorf("%s: %+v", code, e)
			}
			o := Classify(answered(row.status, code))
			if code != "CannotVerifyCopySource" && (e.Kind != o.Kind || e.Reason != o.Reason) {
				t.Errorf("%s is explained as %v %v, classified as %v %v", code, e.Kind, e.Reason, o.Kind, o.Reason)
			}
			if o.Transient() && o.Kind != BadInput && !e.Passes && code != "CannotVerifyCopySource" {
				t.Errorf("%s is worth sending again, but said not to pass", code)
			}
			if o.Kind == Lost && e.Passes || o.Kind == Permanent && e.Passes || o.Kind == NotFound && e.Passes {
				t.Errorf("%s is said to pass", code)
			}
		}
	}
	if _, ok := Explain("NoSuchCode"); ok {
		t.Error("a code that nobody documents is explained")
	}
}

// TestTheCodesOfFilesInUseHaveRowsOfTheirOwn: the general words would not say what to do.
func TestTheCodesOfFilesInUseHaveRowsOfTheirOwn(t *testing.T) {
	for code := range explained {
		if _, ok := codes[code]; !ok {
			t.Errorf("%s is explained, and has no meaning", code)
		}
	}
	for code, m := range codes {
		if slices.Contains([]Reason{OpenHandle, RangeLocked, DeletePending, CacheFlush, ReadOnly}, m.reason) && explained[code].Means == "" {
			t.Errorf("%s has no row", code)
		}
	}
}
