// Package azcertmagic stores the certificates, keys and locks of certmagic, and so of Caddy, in a container.
//
//	storage, err := azcertmagic.New(container, nil)
//	certmagic.Default.Storage = storage
package azcertmagic

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/caddyserver/certmagic"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/azerr"
)

// Storage is a certmagic.Storage in a container, with TryLock and RenewLockLease. Private keys are stored as certmagic passes them:
// who can read the container has them. A lock is a lease that is renewed until Unlock; if its process dies, it is free after 30 s.
// certmagic is not stopped when a lock is lost; a lost lock shows in RenewLockLease.
//
// A Storage is safe for concurrent use. Requests: 1 for Store, Load, Stat and Exists, 1 more where the key is a directory or
// missing; 1 for each 5,000 keys that List finds; that of List and 1 for each key to Delete; those of pessimistic.Locker to lock.
type Storage struct {
	client *container.Client
	prefix string
	locks  *pessimistic.Locker
	holds  sync.Map // of *pessimistic.Hold, by the name of the lock
}

// New returns a Storage in a container, which must exist when it is first used. opts are those of the locks, nil for the defaults; their
// Prefix is that of all blobs, "certmagic/" if it is empty: the keys are below it in "data/", the locks in "locks/". It sends no
// request.
func New(client *container.Client, opts *pessimistic.LockerOptions) (*Storage, error) {
	var o pessimistic.LockerOptions
	if opts != nil {
		o = *opts
	}
	prefix := cmp.Or(o.Prefix, "certmagic/")
	o.Prefix = prefix + "locks/"
	locks, err := pessimistic.NewLocker(client, &o)
	if err != nil {
		return nil, err
	}
	return &Storage{client: client, prefix: prefix + "data/", locks: locks}, nil
}

func (s *Storage) blob(key string) blobs.Blob[[]byte] {
	return blobs.NewBytes(s.client.NewBlockBlobClient(s.prefix + key))
}

// Store writes a value. A write whose response is lost is sent again.
func (s *Storage) Store(ctx context.Context, key string, value []byte) error {
	_, err := blobs.Upload(ctx, s.blob(key).Client, bytes.NewReader(value), nil)
	return err
}

// Load returns the last value that was stored. If there is none, the error is fs.ErrNotExist.
func (s *Storage) Load(ctx context.Context, key string) ([]byte, error) {
	v, err := optimistic.Read(ctx, s.blob(key), nil)
	if err != nil {
		return nil, absent(key, err)
	}
	return v.Value, nil
}

func absent(key string, err error) error {
	if errors.Is(err, optimistic.ErrNotFound) {
		return &fs.PathError{Op: "load", Path: key, Err: fs.ErrNotExist}
	}
	return err
}

// Delete deletes a key and everything below it. An empty key, below which everything is, is refused.
func (s *Storage) Delete(ctx context.Context, key string) error {
	if directory(key) == "" {
		return errors.New("azcertmagic: Delete of an empty key would delete every key: name a key or a directory")
	}
	keys, err := s.below(ctx, key, nil)
	for _, key := range append(keys, key) {
		if _, failed := optimistic.Delete(ctx, s.blob(key), optimistic.State{}, nil); !errors.Is(failed, optimistic.ErrNotFound) {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// Exists reports whether a key has a value, or keys below it.
func (s *Storage) Exists(ctx context.Context, key string) bool {
	_, err := s.Stat(ctx, key)
	return err == nil
}

// Stat describes a key, or the directory of this name. If there is neither, the error is fs.ErrNotExist.
func (s *Storage) Stat(ctx context.Context, key string) (certmagic.KeyInfo, error) {
	v, err := optimistic.Read(ctx, s.blob(key), nil)
	if err == nil {
		return certmagic.KeyInfo{Key: key, Modified: v.LastModified, Size: int64(len(v.Value)), IsTerminal: true}, nil
	}
	if errors.Is(err, optimistic.ErrNotFound) {
		if keys, failed := s.below(ctx, key, new(int32(1))); len(keys) > 0 || failed != nil {
			return certmagic.KeyInfo{Key: key}, failed
		}
	}
	return certmagic.KeyInfo{}, absent(key, err)
}

// List returns the keys and directories directly below a path, or all of them, in order. If the path is neither a key nor a
// directory, the error is fs.ErrNotExist.
func (s *Storage) List(ctx context.Context, path string, recursive bool) ([]string, error) {
	keys, err := s.below(ctx, path, nil)
	if err == nil && len(keys) == 0 && path != "" {
		_, err = s.Load(ctx, path)
	}
	found, from := map[string]bool{}, len(directory(path))
	for _, key := range keys {
		for ; len(key) > from; key = key[:max(from, strings.LastIndexByte(key, '/'))] { // and the directories that it is in
			if recursive || !strings.Contains(key[from:], "/") {
				found[key] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), err
}

// directory is what the keys below a path begin with: "a" is the directory of "a/b", not of "ab/c".
func directory(path string) string {
	return strings.TrimPrefix(strings.Trim(path, "/")+"/", "/")
}

// below returns the keys below a path. With a limit, it returns some of them, if there are any.
func (s *Storage) below(ctx context.Context, path string, limit *int32) (keys []string, err error) {
	pager := s.client.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: new(s.prefix + directory(path)), MaxResults: limit})
	for pager.More() && (limit == nil || len(keys) == 0) {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, azerr.Op("list", path, err)
		}
		for _, item := range page.Segment.BlobItems {
			keys = append(keys, strings.TrimPrefix(*item.Name, s.prefix))
		}
	}
	return keys, nil
}

// Lock waits until it holds the lock, also for other goroutines of this process.
func (s *Storage) Lock(ctx context.Context, name string) error { return s.lock(ctx, name, nil) }

// TryLock is Lock without waiting.
func (s *Storage) TryLock(ctx context.Context, name string) (bool, error) {
	err := s.lock(ctx, name, &pessimistic.LockOptions{NoWait: true})
	if errors.Is(err, pessimistic.ErrHeld) {
		return false, nil
	}
	return err == nil, err
}

// lock waits for as long as ctx. The lock is held until Unlock, which certmagic calls on a context of its own.
func (s *Storage) lock(ctx context.Context, name string, opts *pessimistic.LockOptions) error {
	work, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	h, err := s.locks.Lock(work, name, opts)
	if !stop() && err == nil {
		err = errors.Join(context.Cause(ctx), h.Release(work))
	}
	if err == nil {
		s.holds.Store(name, h) // nobody else's: a lock that was lost stays this process's until Unlock
	}
	return err
}

// Unlock releases a lock. An error means that the lock is not free before its lease ends, in 30 s. A lock that was lost is
// free for other processes at once, and for this one from now on.
func (s *Storage) Unlock(ctx context.Context, name string) error {
	err := errNotHeld
	if h, ok := s.holds.LoadAndDelete(name); ok {
		if err = h.(*pessimistic.Hold).Release(ctx); errors.Is(err, pessimistic.ErrLost) {
			return nil
		}
	}
	return err
}

var errNotHeld = errors.New("azcertmagic: the lock is not held")

// RenewLockLease returns nil if the lock is held: it is renewed for as long as that, whatever the duration. It sends no request.
func (s *Storage) RenewLockLease(_ context.Context, name string, _ time.Duration) error {
	if h, ok := s.holds.Load(name); ok {
		return h.(*pessimistic.Hold).Err()
	}
	return errNotHeld
}
