package azcertmagic

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

var oneInFive = aztest.Fault{Kind: aztest.LoseAnswer, Probability: 0.2}

// TestKeysAreFilesInDirectories: what the comments of certmagic.Storage demand, while one answer in five is lost.
func TestKeysAreFilesInDirectories(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, service := t.Context(), newService(t)
		service.SetFaults(oneInFive)
		s := newStorage(t, service)
		for _, key := range []string{"a/b", "a/c/d", "a/c/e", "ab/c", "f"} {
			if err := s.Store(ctx, key, []byte("old")); err != nil {
				t.Fatal(err)
			}
			if err := s.Store(ctx, key, []byte(key)); err != nil {
				t.Fatal(err)
			}
		}
		if ok, err := s.TryLock(ctx, "a"); !ok || err != nil { // locks and keys do not meet
			t.Fatal(ok, err)
		}
		absent := func(err error, what string) {
			t.Helper()
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %v, want fs.ErrNotExist", what, err)
			}
		}
		listed := func(path string, recursive bool, want string) {
			t.Helper()
			if got, err := s.List(ctx, path, recursive); err != nil || strings.Join(got, " ") != want {
				t.Errorf("List %q %v: %v %v, want %s", path, recursive, got, err, want)
			}
		}
		if v, err := s.Load(ctx, "a/b"); err != nil || string(v) != "a/b" {
			t.Errorf("Load: %q, %v", v, err)
		}
		_, err := s.Load(ctx, "a")
		absent(err, "Load of a directory")
		_, err = s.Load(ctx, "x")
		absent(err, "Load")
		_, err = s.Stat(ctx, "x")
		absent(err, "Stat")
		_, err = s.List(ctx, "x", true)
		absent(err, "List")
		listed("a", false, "a/b a/c")
		listed("a", true, "a/b a/c a/c/d a/c/e")
		listed("a/", false, "a/b a/c")
		listed("f", false, "")
		listed("", false, "a ab f")
		if i, err := s.Stat(ctx, "a/c/d"); err != nil || !i.IsTerminal || i.Size != 5 || i.Key != "a/c/d" || i.Modified.IsZero() {
			t.Errorf("Stat of a file: %+v, %v", i, err)
		}
		if i, err := s.Stat(ctx, "a/c"); err != nil || i.IsTerminal || i.Key != "a/c" {
			t.Errorf("Stat of a directory: %+v, %v", i, err)
		}
		for range 2 {
			if err := s.Delete(ctx, "a"); err != nil {
				t.Error(err)
			}
		}
		listed("", true, "ab ab/c f")
		if s.Exists(ctx, "a") || !s.Exists(ctx, "ab") || !s.Exists(ctx, "f") {
			t.Error("Exists does not agree with List")
		}
		if err := s.Unlock(ctx, "a"); err != nil {
			t.Error(err)
		}
	})
}

// TestALockIsHeldUntilUnlock: by one goroutine of one process, beyond the context of Lock, and for longer than a lease lasts.
func TestALockIsHeldUntilUnlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newService(t)
		service.SetFaults(oneInFive)
		a, b := newStorage(t, service), newStorage(t, service)
		ctx, cancel := context.WithCancel(t.Context())
		if err := a.Lock(ctx, "issue"); err != nil {
			t.Fatal(err)
		}
		cancel()
		bubble.Sleep(10 * time.Minute)
		if err := a.RenewLockLease(t.Context(), "issue", time.Hour); err != nil {
			t.Error(err)
		}
		for _, s := range []*Storage{a, b} {
			if ok, err := s.TryLock(t.Context(), "issue"); ok || err != nil {
				t.Errorf("TryLock of a lock that is held: %v, %v", ok, err)
			}
			short, cancel := context.WithTimeout(t.Context(), time.Minute)
			if err := s.Lock(short, "issue"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Lock of a lock that is held: %v", err)
			}
			cancel()
			if err := s.RenewLockLease(t.Context(), "other", time.Hour); err == nil {
				t.Error("a lock that is not held is renewed")
			}
		}
		if err := b.Unlock(t.Context(), "issue"); err == nil {
			t.Error("the lock of another process is released")
		}
		if err := a.Unlock(ctx, "issue"); err != nil { // its context has ended
			t.Error(err)
		}
		if err := b.Lock(t.Context(), "issue"); err != nil {
			t.Fatal(err)
		}
		service.SetFaults(aztest.Fault{Kind: aztest.Hang})
		bubble.Sleep(time.Minute)
		service.SetFaults()
		if err := b.RenewLockLease(t.Context(), "issue", time.Hour); err == nil {
			t.Error("a lock that was lost counts as held")
		}
		if err := b.Unlock(t.Context(), "issue"); err != nil { // it is free
			t.Error(err)
		}
		if err := a.Lock(t.Context(), "issue"); err != nil {
			t.Error(err)
		}
		if err := a.Unlock(t.Context(), "issue"); err != nil {
			t.Error(err)
		}
	})
}

// TestCertmagicObtainsACertificateOnce: three processes need one certificate at the same time, while one answer in five is lost.
func TestCertmagicObtainsACertificateOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, ca := newService(t), newAuthority(t)
		service.SetFaults(oneInFive)
		var all sync.WaitGroup
		for n := range 3 {
			storage := newStorage(t, service)
			all.Go(func() {
				var config *certmagic.Config
				cache := certmagic.NewCache(certmagic.CacheOptions{
					GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return config, nil }, Logger: zap.NewNop()})
				defer cache.Stop()
				config = certmagic.New(cache, certmagic.Config{Storage: storage, Issuers: []certmagic.Issuer{ca}, Logger: zap.NewNop(),
					OCSP: certmagic.OCSPConfig{DisableStapling: true}})
				if err := config.ManageSync(t.Context(), []string{"example.com"}); err != nil {
					t.Error(fmt.Errorf("process %d: %w", n, err))
				}
			})
		}
		all.Wait()
		if n := ca.issued.Load(); n != 1 {
			t.Errorf("%d certificates were issued, want 1", n)
		}
		keys, err := newStorage(t, service).List(t.Context(), "certificates/authority/example.com", false)
		if err != nil || len(keys) != 3 {
			t.Errorf("stored: %v, %v", keys, err)
		}
	})
}

// TestAnEmptyKeyDeletesNothing: everything is below it, other programs' blobs too if there is no prefix.
func TestAnEmptyKeyDeletesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, s := t.Context(), newStorage(t, newService(t))
		if err := s.Store(ctx, "a/b", []byte("v")); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"", "/", "//"} {
			if err := s.Delete(ctx, key); err == nil {
				t.Errorf("Delete %q succeeded", key)
			}
			if v, err := s.Load(ctx, "a/b"); err != nil || string(v) != "v" {
				t.Fatalf("after Delete %q: %q, %v", key, v, err)
			}
		}
	})
}
