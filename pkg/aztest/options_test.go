package aztest_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

func TestTheDateLagsBehindTheWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(&aztest.Options{DateLag: time.Second})
		client := s.BlockBlob("box", "b")
		behind, back, last := map[time.Duration]int{}, 0, time.Time{}
		for range 300 {
			bubble.Sleep(370 * time.Millisecond)
			r, err := client.Upload(t.Context(), content("x"), nil)
			if err != nil {
				t.Fatal(err)
			}
			behind[r.LastModified.Sub(*r.Date)]++
			if r.Date.Before(last) {
				back++
			}
			last = *r.Date
		}
		if len(behind) != 2 || behind[0] == 0 || behind[time.Second] == 0 || back == 0 {
			t.Errorf("Last-Modified is %v after Date, which went back %d times; want 0 s and 1 s, and some", behind, back)
		}
	})
}

func TestAFileMayHave4TiB(t *testing.T) {
	s := aztest.New(nil)
	f := s.File("box", "huge")
	if _, err := f.Create(t.Context(), 4<<40, nil); err != nil {
		t.Fatal(err)
	}
	if p, err := f.GetProperties(t.Context(), nil); err != nil || *p.ContentLength != 4<<40 {
		t.Errorf("%+v, %v", p.ContentLength, err)
	}
	r, err := http.NewRequest(http.MethodDelete, s.FileURL()+"/box?restype=share&sharesnapshot=2020-01-01T00:00:00.0000000Z", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "SharedKey x")
	if a, err := s.Do(r); err != nil || a.StatusCode != http.StatusNotImplemented {
		t.Errorf("a snapshot of the share is deleted: %+v, %v", a, err)
	}
	if _, err := f.GetProperties(t.Context(), nil); err != nil {
		t.Errorf("the share went with it: %v", err)
	}
}
