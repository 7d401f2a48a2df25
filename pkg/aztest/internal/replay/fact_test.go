package replay

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"
)

// Services are the names of the services whose traffic was recorded, and of the files in testdata.
var Services = []string{"blob", "file", "queue", "table"}

// Sets are the directories in testdata, one for each set of recordings.
var Sets = []string{"first", "second"}

// Scenario is a sequence of requests that one test of an SDK sent.
type Scenario struct {
	Service string    `json:"-"`
	Name    string    `json:"scenario"`
	Began   time.Time `json:"began"` // Date of the first answer
	Version string    `json:"version"`
	Steps   []Step    `json:"steps"`
}

// Step is one request and the facts of its response. Header names are in lower case.
type Step struct {
	At        int               `json:"at,omitempty"` // seconds since Began, by the service's clock
	Method    string            `json:"method"`
	Path      string            `json:"path"`
	Query     string            `json:"query,omitempty"`
	Version   string            `json:"version,omitempty"` // if it is not the scenario's
	Header    map[string]string `json:"header,omitempty"`
	Body      string            `json:"body,omitempty"` // with its long words replaced, see Expand
	Length    int               `json:"length,omitempty"`
	Anonymous bool              `json:"anonymous,omitempty"` // sent without a credential
	Secondary bool              `json:"secondary,omitempty"` // sent to the read-only secondary

	Answer Answer `json:"answer"`
}

// Answer is the service's response: all header names, and the values of those that mean the same on another account.
type Answer struct {
	Status int               `json:"status"`
	Code   string            `json:"code,omitempty"`
	Header map[string]string `json:"header,omitempty"` // "" for a header of which only the presence counts
	Shape  []string          `json:"shape,omitempty"`  // see Shape
	Length int               `json:"length,omitempty"` // of the body
}

// Write writes scenarios, one a line, compressed.
func Write(w io.Writer, scenarios []Scenario) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	e := json.NewEncoder(z)
	e.SetEscapeHTML(false)
	for _, s := range scenarios {
		if err := e.Encode(s); err != nil {
			return err
		}
	}
	return z.Close()
}

// Read reads the output of Write.
func Read(path, service string) ([]Scenario, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []Scenario
	err = eachLine(f, func(line []byte) error {
		s := Scenario{Service: service}
		if err := json.Unmarshal(line, &s); err != nil {
			return err
		}
		all = append(all, s)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}

// eachLine calls do with each line of a compressed text.
func eachLine(r io.Reader, do func(line []byte) error) error {
	z, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		if err := do(lines.Bytes()); err != nil {
			return err
		}
	}
	return lines.Err()
}
