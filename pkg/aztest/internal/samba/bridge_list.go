package samba

import (
	"encoding/xml"
	"errors"
	"net/http"
)

// list omits files that it cannot open because their deletion is pending. Samba, like Windows, lists them; the service
// hides them, and so does the bridge.
func (b *Bridge) list(w http.ResponseWriter, path string) error {
	entries, err := b.client.List(path)
	if err != nil {
		return err
	}
	type properties struct {
		Size int64 `xml:"Content-Length"`
	}
	type entry struct {
		Name       string
		Properties properties
	}
	var out struct {
		XMLName       xml.Name `xml:"EnumerationResults"`
		ShareName     string   `xml:",attr"`
		DirectoryPath string   `xml:",attr"`
		Directories   []entry  `xml:"Entries>Directory"`
		Files         []entry  `xml:"Entries>File"`
		NextMarker    string
	}
	out.ShareName, out.DirectoryPath = ShareName, path
	for _, e := range entries {
		if e.Directory {
			out.Directories = append(out.Directories, entry{Name: e.Name})
			continue
		}
		f, err := b.client.Create(path+"/"+e.Name, b.opens[opGetProperties])
		if errors.Is(err, StatusDeletePending) || errors.Is(err, StatusNameNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
		out.Files = append(out.Files, entry{e.Name, properties{f.Size}})
	}
	return answerXML(w, out)
}

func answerXML(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(http.StatusOK)
	return xml.NewEncoder(w).Encode(v)
}
