package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// entry is a file of an archive.
type entry struct {
	name string
	data []byte
	mode os.FileMode
}

// archive packs the binary and the common files: a zip for Windows, a gzipped tar for all others.
func (r *release) archive(target, binary string, common map[string][]byte) error {
	data, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	folder := r.name(target) + "/"
	entries := []entry{{folder + filepath.Base(binary), data, 0o755}}
	for _, name := range sortedKeys(common) {
		entries = append(entries, entry{folder + name, common[name], 0o644})
	}
	if strings.HasPrefix(target, "windows/") {
		packed, err := zipped(entries, r.time)
		if err != nil {
			return err
		}
		return r.write(r.name(target)+".zip", packed)
	}
	packed, err := tarred(entries, r.time)
	if err != nil {
		return err
	}
	if packed, err = gzipped(packed); err != nil {
		return err
	}
	return r.write(r.name(target)+".tar.gz", packed)
}

// tarred is a tar of the entries in their order, owned by root, of one time. USTAR has no field that could differ elsewhere.
func tarred(entries []entry, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Size: int64(len(e.data)), Mode: int64(e.mode), ModTime: at, Format: tar.FormatUSTAR}
		if e.mode.IsDir() {
			h.Typeflag, h.Mode = tar.TypeDir, int64(e.mode.Perm()|e.mode&os.ModeSticky>>11)
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func zipped(entries []entry, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: at}
		h.SetMode(e.mode)
		f, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := f.Write(e.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// gzipped has neither a name nor a time.
func gzipped(data []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(w, bytes.NewReader(data)); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
