package files

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/directory"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
)

// shared is a handle that lets everybody do everything but delete.
func shared(id string) aztest.SMBHandle {
	return aztest.SMBHandle{ID: id, ClientName: "desk-" + id, ShareRead: true, ShareWrite: true, ShareDelete: true}
}

// openMany opens n handles, named 0, 1, …
func openMany(t *testing.T, s *aztest.Service, n int) {
	t.Helper()
	for i := range n {
		if got := s.OpenSMB("box", "f", shared(fmt.Sprint(i))); got != aztest.SMBOpened {
			t.Fatal(got)
		}
	}
}

func TestHandlesReportClientsAndTheirAccess(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		s.OpenSMB("box", "f", aztest.SMBHandle{ID: "1", ClientName: "desk", Write: true, ShareRead: true})
		handles, err := Handles(t.Context(), f, nil)
		if err != nil || len(handles) != 1 || s.Requests() != 1 {
			t.Fatalf("%v, %v after %d requests", handles, err, s.Requests())
		}
		h := handles[0]
		if h.ID != "1" || h.Path != "f" || h.Opened.IsZero() || !h.Reconnected.IsZero() {
			t.Errorf("%+v", h)
		}
		if got := h.String(); !strings.HasPrefix(got, "desk (192.0.2.1:50000) for read, write since 2000-01-01T00:00:00Z") {
			t.Errorf("shown as %q", got)
		}
	})
}

func TestHandlesAreListedInPagesAndRecursively(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		openMany(t, s, 5001)
		root := s.Share("box").NewRootDirectoryClient()
		for _, tt := range []struct {
			name      string
			recursive bool
			want, n   int
		}{{"the directory itself", false, 0, 1}, {"all below it", true, 5001, 2}} {
			s.Reset()
			handles, err := Handles(t.Context(), root, &HandlesOptions{Recursive: tt.recursive})
			if err != nil || len(handles) != tt.want || s.Requests() != tt.n {
				t.Errorf("%s: %d handles, %v, after %d requests, want %d after %d", tt.name, len(handles), err, s.Requests(), tt.want, tt.n)
			}
		}
	})
}

func TestHandlesOfANilClientAreRefusedBeforeSending(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		_, none := Handles(t.Context(), (*file.Client)(nil), nil)
		_, noDirectory := Handles(t.Context(), (*directory.Client)(nil), nil)
		_, deep := Handles(t.Context(), f, &HandlesOptions{Recursive: true})
		_, nobody := ForceClose(t.Context(), f, nil, nil)
		for i, err := range []error{none, noDirectory, deep, nobody} {
			if err == nil || s.Requests() != 0 {
				t.Errorf("%d: %v after %d requests", i, err, s.Requests())
			}
		}
		_, err := Handles(t.Context(), s.File("box", "missing"), nil)
		if !errors.Is(err, pessimistic.ErrNotFound) {
			t.Errorf("a file that is not there: %v", err)
		}
	})
}

func TestAllHandlesAreClosedAHundredAtATimeAndFailuresCounted(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		openMany(t, s, 250)
		for _, stuck := range []string{"3", "120", "249"} {
			s.StickSMB("box", "f", stuck)
		}
		s.Reset()
		sum, err := ForceClose(t.Context(), f, []string{AllHandles}, nil)
		if !errors.Is(err, pessimistic.ErrHeld) || !strings.Contains(err.Error(), "3 handles") {
			t.Errorf("err = %v", err)
		}
		if sum != (CloseResult{Closed: 247, Failed: 3}) || s.Requests() != 3 {
			t.Errorf("%+v after %d requests", sum, s.Requests())
		}
		left, err := Handles(t.Context(), f, nil)
		if err != nil || len(left) != 3 {
			t.Errorf("%d are left, %v", len(left), err)
		}
	})
}

func TestOnlyTheNamedHandlesAreClosed(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		openMany(t, s, 150)
		s.Reset()
		sum, err := ForceClose(t.Context(), f, []string{"7", "149", "closed long ago"}, nil)
		if err != nil || sum != (CloseResult{Closed: 2}) || s.Requests() != 3 {
			t.Errorf("%+v, %v after %d requests", sum, err, s.Requests())
		}
	})
}

func TestALostResponseMakesTheCountALowerBound(t *testing.T) {
	for kind, atLeast := range map[aztest.FaultKind]bool{
		aztest.LoseAnswer: true, aztest.LoseRequest: true, aztest.FailAfterCommit: true, aztest.Refuse: false,
	} {
		fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
			openMany(t, s, 101)
			s.Reset()
			s.SetFaults(aztest.Fault{Kind: kind, Count: 1, Match: aztest.Op("Force Close Handles")})
			sum, err := ForceClose(t.Context(), f, []string{AllHandles}, nil)
			if err != nil || sum.AtLeast != atLeast {
				t.Errorf("%s: %+v, %v", kind, sum, err)
			}
			if left, err := Handles(t.Context(), f, nil); err != nil || len(left) != 0 {
				t.Errorf("%s: %d are left, %v", kind, len(left), err)
			}
		})
	}
}

func TestClosingEndsWithItsContextAndReportsWhatWasClosed(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		openMany(t, s, 101)
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("enough")
		s.SetFaults(aztest.Fault{Kind: aztest.Hang, Skip: 1})
		time.AfterFunc(time.Second, func() { cancel(cause) })
		sum, err := ForceClose(ctx, f, []string{AllHandles}, nil)
		if !errors.Is(err, cause) || sum.Closed != 100 || !sum.AtLeast {
			t.Errorf("%+v, %v", sum, err)
		}
	})
}

func TestClosingHandlesWithoutPermissionFailsAtOnce(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		s.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: http.StatusForbidden, Code: "AuthorizationFailure"})
		_, list := Handles(t.Context(), f, nil)
		_, closing := ForceClose(t.Context(), f, []string{AllHandles}, nil)
		if azerr.Classify(list).Code != "AuthorizationFailure" || azerr.Classify(closing).Code != "AuthorizationFailure" || s.Requests() != 2 {
			t.Errorf("%v, %v after %d requests", list, closing, s.Requests())
		}
	})
}
