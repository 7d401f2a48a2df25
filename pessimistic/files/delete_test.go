package files

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/observe"
)

const (
	lookAtFile = "Get File Properties"
	deleteFile = "Delete File"
)

func isThere(t *testing.T, f *file.Client) bool {
	t.Helper()
	_, err := f.GetProperties(context.Background(), nil)
	if err != nil && azerr.Classify(err).Code != "ResourceNotFound" {
		t.Fatal(err)
	}
	return err == nil
}

func TestAFileIsDeletedWithTwoRequestsAndUnderALeaseWithOne(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		done, err := Delete(t.Context(), f, nil)
		if err != nil || done != (DeleteResult{How: DeletedByUs, Requests: 2}) || !slices.Equal(fileOps(s), []string{lookAtFile, deleteFile}) {
			t.Errorf("%+v, %v, sent %q", done, err, fileOps(s))
		}
		done, err = Delete(t.Context(), f, nil)
		if !errors.Is(err, pessimistic.ErrNotFound) || done != (DeleteResult{Requests: 1}) {
			t.Errorf("when it is gone: %+v, %v", done, err)
		}
	})
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		l, err := pessimistic.Acquire(t.Context(), NewFile(f), nil)
		if err != nil {
			t.Fatal(err)
		}
		if done, err := Delete(t.Context(), f, nil); !errors.Is(err, pessimistic.ErrHeld) || done.Requests != 2 {
			t.Errorf("without the id: %+v, %v", done, err)
		}
		other := "6f1f1a1e-0000-4000-8000-000000000000"
		if _, err := Delete(t.Context(), f, &DeleteOptions{LeaseID: other}); !errors.Is(err, pessimistic.ErrLost) {
			t.Errorf("with the id of another holder: %v", err)
		}
		done, err := Delete(t.Context(), f, &DeleteOptions{LeaseID: l.ID()})
		if err != nil || done != (DeleteResult{How: DeletedByUs, Requests: 1}) {
			t.Errorf("with the id: %+v, %v", done, err)
		}
		_ = l.Release(t.Context())
	})
}

func TestAFileIsDeletedOnceWhateverHappensToAResponse(t *testing.T) {
	for kind, want := range map[aztest.FaultKind]DeleteResult{
		aztest.LoseAnswer:      {DeletedUnclear, 0, 3, 1},
		aztest.FailAfterCommit: {DeletedUnclear, 0, 3, 1},
		aztest.AnswerTwice:     {DeletedUnclear, 0, 2, 0}, // the second answer is 404
		aztest.LoseRequest:     {DeletedByUs, 0, 4, 1},
		aztest.Refuse:          {DeletedByUs, 0, 3, 0},
		aztest.Throttle:        {DeletedByUs, 0, 3, 0}, // which has not been carried out
	} {
		fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
			s.SetFaults(aztest.Fault{Kind: kind, Count: 1, Match: aztest.Op(deleteFile)})
			done, err := Delete(t.Context(), f, nil)
			if err != nil || done != want {
				t.Errorf("%s: %+v, %v, want %+v: %q", kind, done, err, want, fileOps(s))
			}
			if isThere(t, f) {
				t.Errorf("%s: it is still there", kind)
			}
		})
	}
}

// Another client recreates the file between the deletion whose response is lost and the next try.
func TestARecreatedFileIsNotDeleted(t *testing.T) {
	for _, leased := range []bool{false, true} {
		fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
			var o DeleteOptions
			if leased {
				l, err := pessimistic.Acquire(t.Context(), NewFile(f), nil)
				if err != nil {
					t.Fatal(err)
				}
				o.LeaseID = l.ID()
				defer func() { _ = l.Release(context.Background()) }()
			}
			s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Count: 1, Match: aztest.Op(deleteFile)})
			made := false
			o.Hooks.Span = func(ctx context.Context, s observe.Span) (context.Context, func(error)) {
				return ctx, func(err error) {
					if s.Name == "Delete File" && err != nil && !made {
						made = true
						if _, err := f.Create(context.Background(), 5, nil); err != nil {
							t.Error(err)
						}
					}
				}
			}
			done, err := Delete(t.Context(), f, &o)
			if !isThere(t, f) || !made {
				t.Fatalf("leased %v: a file of another client is deleted", leased)
			}
			if !leased && (err != nil || done.How != DeletedUnclear) || leased && !errors.Is(err, pessimistic.ErrOutcomeUnknown) {
				t.Errorf("leased %v: %+v, %v", leased, done, err)
			}
		})
	}
}

// pendingFile is open twice, and marked for deletion.
func pendingFile(s *aztest.Service) {
	s.OpenSMB("box", "f", shared("1"))
	s.OpenSMB("box", "f", shared("2"))
	s.MarkDeletedSMB("box", "f", true)
}

func TestAPendingDeletionIsNeitherSuccessNorAbsence(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		pendingFile(s)
		done, err := Delete(t.Context(), f, nil)
		used, ok := errors.AsType[*InUseError](err)
		if !ok || used.Reason != azerr.DeletePending || errors.Is(err, pessimistic.ErrNotFound) || done != (DeleteResult{Requests: 1}) {
			t.Errorf("%+v, %v", done, err)
		}
	})
}

func TestDeleteWaitsForTheEndOfAPendingDeletion(t *testing.T) {
	poll := &WaitOptions{Poll: pollEach(2 * time.Second)}
	for name, tt := range map[string]struct {
		after func(s *aztest.Service) // 5 s
		how   Deletion
		err   error
		gone  bool
	}{
		"the last handle closes": {func(s *aztest.Service) { s.CloseSMB("box", "f", "1"); s.CloseSMB("box", "f", "2") }, DeletedBySMB, nil, true},
		"the mark is taken back": {func(s *aztest.Service) { s.MarkDeletedSMB("box", "f", false) }, "", ErrUndeleted, false},
		"taken back and all close": {func(s *aztest.Service) {
			s.MarkDeletedSMB("box", "f", false)
			s.CloseSMB("box", "f", "1")
			s.CloseSMB("box", "f", "2")
		}, "", ErrUndeleted, false},
	} {
		fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
			pendingFile(s)
			time.AfterFunc(5*time.Second, func() { tt.after(s) })
			done, err := Delete(t.Context(), f, &DeleteOptions{Wait: poll})
			if !errors.Is(err, tt.err) || done != (DeleteResult{How: tt.how, Waited: 6 * time.Second, Requests: 4}) || isThere(t, f) == tt.gone {
				t.Errorf("%s: %+v, %v", name, done, err)
			}
			if slices.Contains(fileOps(s), deleteFile) {
				t.Errorf("%s: what was marked by another was deleted by us: %q", name, fileOps(s))
			}
		})
	}
}

func TestDeleteWaitsForTheFileToBeClosedAndNamesItsClients(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		s.OpenSMB("box", "f", shared("1"))
		time.AfterFunc(5*time.Second, func() { s.CloseSMB("box", "f", "1") })
		o := &DeleteOptions{Wait: &WaitOptions{MaxWait: 3 * time.Second, Poll: pollEach(2 * time.Second)}}
		done, err := Delete(t.Context(), f, o)
		used, ok := errors.AsType[*InUseError](err)
		// A look, attempts at 0, 2 and 3 s, and the names.
		if !ok || used.Reason != azerr.OpenHandle || len(used.Handles) != 1 || done.Requests != 1+3+1 || done.Waited != 3*time.Second {
			t.Errorf("%+v, %v", done, err)
		}
		s.Reset()
		o.Wait.MaxWait = 0
		done, err = Delete(t.Context(), f, o)
		if err != nil || done.How != DeletedByUs || done.Requests != s.Requests() {
			t.Errorf("%+v, %v after %d requests", done, err, s.Requests())
		}
	})
}

func TestADeletionThatBecomesPendingMeanwhileIsNotRepeated(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		s.OpenSMB("box", "f", shared("1"))
		time.AfterFunc(3*time.Second, func() { s.MarkDeletedSMB("box", "f", true) })
		time.AfterFunc(7*time.Second, func() { s.MarkDeletedSMB("box", "f", false); s.CloseSMB("box", "f", "1") })
		_, err := Delete(t.Context(), f, &DeleteOptions{Wait: &WaitOptions{Poll: pollEach(2 * time.Second)}})
		if !errors.Is(err, ErrUndeleted) || !isThere(t, f) {
			t.Errorf("%v", err)
		}
	})
}

func TestAReadOnlyFileIsNotWaitedFor(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		s.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: http.StatusConflict, Code: "ReadOnlyAttribute", Match: aztest.Op(deleteFile)})
		done, err := Delete(t.Context(), f, &DeleteOptions{Wait: &WaitOptions{}})
		if azerr.Classify(err).Reason != azerr.ReadOnly || errors.Is(err, pessimistic.ErrHeld) || done.Requests != 2 {
			t.Errorf("%+v, %v", done, err)
		}
	})
}

func TestADeletionWithoutAnyResponseIsUnknown(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		s.SetFaults(aztest.Fault{Kind: aztest.LoseRequest, Match: aztest.Op(deleteFile)})
		done, err := Delete(t.Context(), f, nil)
		if !errors.Is(err, pessimistic.ErrOutcomeUnknown) || done.Ambiguous != 6 || done.Requests != 12 || !isThere(t, f) {
			t.Errorf("%+v, %v", done, err)
		}
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op(lookAtFile)})
		if _, err := Delete(t.Context(), f, nil); err == nil || errors.Is(err, pessimistic.ErrOutcomeUnknown) {
			t.Errorf("nothing was sent but looks: %v", err)
		}
	})
}

func TestADeletionEndsWithItsContextAndReportsWhatIsKnown(t *testing.T) {
	for _, op := range []string{lookAtFile, deleteFile} {
		fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
			ctx, cancel := context.WithCancelCause(t.Context())
			cause := errors.New("enough")
			time.AfterFunc(time.Second, func() { cancel(cause) })
			s.SetFaults(aztest.Fault{Kind: aztest.Hang, Match: aztest.Op(op)})
			_, err := Delete(ctx, f, nil)
			if !errors.Is(err, cause) || errors.Is(err, pessimistic.ErrOutcomeUnknown) != (op == deleteFile) {
				t.Errorf("%s: %v", op, err)
			}
		})
	}
}
