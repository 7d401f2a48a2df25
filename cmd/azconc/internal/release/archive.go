package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"maps"
	"os"
	"slices"
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
func (r *release) archive(target, binary string, data []byte, common map[string][]byte) error {
	folder := r.name(target) + "/"
	entries := []entry{{folder + binary, data, 0o755}}
	for _, name := range slices.Sorted(maps.Keys(common)) {
		entries = append(entries, entry{folder + name, common[name], 0o644})
	}
	pack, extension := gzipped, ".tar.gz"
	if strings.HasPrefix(target, "windows/") {
		pack, extension = zipped, ".zip"
	}
	packed, err := pack(entries, r.time)
	if err != nil {
		return err
	}
	return r.write(r.name(target)+extension, packed)
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
	err := w.Close()
	return b.Bytes(), err
}

// gzipped is a tar in gzip.
func gzipped(entries []entry, at time.Time) ([]byte, error) {
	packed, err := tarred(entries, at)
	if err != nil {
		return nil, err
	}
	return compressed(packed)
}

// compressed has neither a name nor a time.
func compressed(data []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
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
	err := w.Close()
	return b.Bytes(), err
}
