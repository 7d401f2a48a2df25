package samba

import (
	"errors"
	"testing"
)

func dial(t *testing.T, s *Server) *Client {
	t.Helper()
	c, err := s.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func open(t *testing.T, c *Client, path string, o Open) *File {
	t.Helper()
	f, err := c.Create(path, o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestWhatOneClientDoesNotShareAnotherDoesNotGet(t *testing.T) {
	s := Start(t)
	a, b := dial(t, s), dial(t, s)
	f := open(t, a, "f", Open{Access: AccessRead | AccessWrite, Disposition: CreateNew})
	if err := f.WriteAt(0, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if data, err := f.ReadAt(0, 9); err != nil || string(data) != "hello" {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := b.Create("f", Open{Access: AccessRead, Share: ShareAll}); !errors.Is(err, StatusSharingViolation) {
		t.Errorf("%v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, b, "f", Open{Access: AccessRead, Share: ShareAll})
	if list, err := a.List(""); err != nil || len(list) != 1 || list[0].Size != 5 {
		t.Errorf("%v %v", list, err)
	}
	if err := a.Echo(); err != nil {
		t.Error(err)
	}
}
