package replay

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The recordings omit the resources that many scenarios had created before. prepare creates them: the container, share,
// queue or table that a request names, and the blob or file that it reads or changes.
func (p *player) prepare(step Step) {
	if step.Answer.Code == "" && step.Answer.Status >= 400 && step.Method == http.MethodHead {
		return
	}
	source := sourcePath(step.Header["x-ms-copy-source"])
	if p.scenario.Service == "table" {
		p.prepareTable(step)
		return
	}
	name, rest, _ := strings.Cut(strings.TrimPrefix(step.Path, "/"), "/")
	if name == "" {
		return
	}
	container := "/" + name
	creates := rest == "" && step.Method == http.MethodPut && !strings.Contains(step.Query, "comp=")
	absent := slices.Contains([]string{"ContainerNotFound", "ShareNotFound", "QueueNotFound"}, step.Answer.Code) ||
		rest == "" && (step.Answer.Status == http.StatusNotFound || step.Answer.Status == http.StatusForbidden)
	invalid := step.Answer.Status == http.StatusBadRequest && creates
	if !p.made[container] && !absent && !invalid && !(creates && step.Answer.Status == http.StatusCreated) {
		p.create(container, map[string]string{"blob": "restype=container", "file": "restype=share"}[p.scenario.Service], nil, nil)
	}
	if source != "" && !p.made[source] && step.Answer.Code != "CannotVerifyCopySource" && step.Answer.Code != "BlobNotFound" {
		if box := "/" + strings.Split(source, "/")[1]; !p.made[box] {
			p.create(box, map[string]string{"blob": "restype=container", "file": "restype=share"}[p.scenario.Service], nil, nil)
		}
		p.createContent(source, p.sourceLength(step), Answer{})
	}
	if rest == "" || p.scenario.Service == "queue" || p.made[step.Path] {
		return
	}
	if p.scenario.Service == "file" {
		p.prepareFile(step)
		return
	}
	comp := compOf(step)
	if step.Method == http.MethodPut && (comp == "" || comp == "block" || comp == "blocklist" || comp == "undelete") ||
		step.Answer.Status == http.StatusNotFound || step.Answer.Status == http.StatusBadRequest || comp == "properties" && step.Method == http.MethodHead {
		return
	}
	p.createContent(step.Path, p.lengthOf(step.Path), step.Answer)
}

func compOf(step Step) string {
	query, _ := url.ParseQuery(step.Query)
	return query.Get("comp")
}

// note records the paths of created resources.
func (p *player) note(step Step) {
	if step.Method == http.MethodPut {
		p.made[step.Path] = true
	}
	if step.Method == http.MethodPost && step.Path == "/Tables" {
		if m := tableInBody.FindStringSubmatch(step.Body); m != nil {
			p.made["/"+m[1]] = true
		}
	}
}

// create creates a resource that existed before the scenario. It is not part of the comparison.
func (p *player) create(path, query string, header map[string]string, body []byte) {
	p.made[path], p.before[path] = true, true
	r, err := http.NewRequest(http.MethodPut, p.url[p.scenario.Service], newBody(body))
	if err != nil {
		panic(err)
	}
	r.URL.Path += unescaped(p.scenario, path)
	r.URL.RawQuery = query
	p.authorize(r)
	r.Header.Set("x-ms-version", "2019-02-02")
	for name, value := range header {
		r.Header.Set(name, value)
	}
	if got, err := p.exchange(r); err != nil || got.Status >= 300 && got.Status != http.StatusConflict {
		panic(fmt.Sprintf("set-up of %s in %s: %d %s %v", path, p.scenario.Name, got.Status, got.Code, err))
	}
}

// createContent creates a blob or a file of the length and the kind that the rest of the scenario shows.
func (p *player) createContent(path string, length int, shown Answer) {
	body := content(length)
	p.contents[path] = body
	header := map[string]string{}
	for name, value := range shown.Header {
		if strings.HasPrefix(name, "x-ms-meta-") {
			header[name] = value
		}
	}
	if p.scenario.Service == "file" {
		header["x-ms-type"], header["x-ms-content-length"] = "file", strconv.Itoa(length)
		p.create(path, "", header, nil)
		if length > 0 {
			p.create(path, "comp=range", map[string]string{"x-ms-write": "update", "x-ms-range": fmt.Sprintf("bytes=0-%d", length-1)}, body)
		}
		return
	}
	kind := shown.Header["x-ms-blob-type"]
	switch {
	case kind == "PageBlob" || shown.Header["x-ms-blob-sequence-number"] != "":
		header["x-ms-blob-type"], header["x-ms-blob-content-length"] = "PageBlob", strconv.Itoa(length)
		p.create(path, "", header, nil)
	case kind == "AppendBlob" || shown.Header["x-ms-blob-append-offset"] != "":
		header["x-ms-blob-type"] = "AppendBlob"
		p.create(path, "", header, nil)
		if length > 0 {
			p.create(path, "comp=appendblock", nil, body)
		}
	default:
		header["x-ms-blob-type"] = "BlockBlob"
		p.create(path, "", header, body)
	}
}

// lengthOf returns the length of the resource at a path, from the rest of the scenario.
func (p *player) lengthOf(path string) int {
	for _, step := range p.scenario.Steps[p.step:] {
		if step.Path != path || step.Answer.Status >= 300 {
			continue
		}
		if _, total, ok := strings.Cut(step.Answer.Header["content-range"], "/"); ok {
			n, _ := strconv.Atoi(total)
			return n
		}
		if n, err := strconv.Atoi(step.Answer.Header["content-length"]); err == nil && (step.Method == http.MethodHead || step.Method == http.MethodGet && compOf(step) == "") {
			return n
		}
	}
	return 512
}

// sourceLength returns the length of a source, from what its copy shows later.
func (p *player) sourceLength(step Step) int {
	if n := p.lengthOf(step.Path); n != 512 {
		return n
	}
	for _, later := range p.scenario.Steps[p.step:] {
		for _, line := range later.Answer.Shape {
			if size, ok := strings.CutPrefix(line, "Size="); ok {
				n, _ := strconv.Atoi(size)
				return n
			}
		}
	}
	return 8 << 10
}

var (
	tableInPath = regexp.MustCompile(`^/(\w+)`)
	tableInBody = regexp.MustCompile(`(?:"TableName": ?"|(?:PUT|POST|MERGE|DELETE|PATCH) (?:https://[^/]+)?/)(\w+)`)
)

func (p *player) prepareTable(step Step) {
	name := ""
	if step.Path == "/$batch" {
		if m := tableInBody.FindStringSubmatch(step.Body); m != nil {
			name = m[1]
		}
	} else if m := tableInPath.FindStringSubmatch(step.Path); m != nil && m[1] != "Tables" {
		name = m[1]
	} else if m := tableInBody.FindStringSubmatch(step.Body); m != nil && step.Answer.Code == "TableAlreadyExists" {
		name = m[1]
	}
	if name == "" || p.made["/"+name] || step.Answer.Code == "TableNotFound" {
		return
	}
	p.made["/"+name] = true
	r, err := http.NewRequest(http.MethodPost, p.url["table"]+"/Tables", newBody([]byte(`{"TableName":"`+name+`"}`)))
	if err != nil {
		panic(err)
	}
	p.authorize(r)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json;odata=nometadata")
	r.Header.Set("x-ms-version", "2019-02-02")
	if _, err := p.exchange(r); err != nil {
		panic(err)
	}
}

// createParents creates the directories above a path.
func (p *player) createParents(path string) {
	segments := strings.Split(path, "/")
	for i := 3; i < len(segments); i++ {
		if dir := strings.Join(segments[:i], "/"); !p.made[dir] {
			p.create(dir, "restype=directory", nil, nil)
		}
	}
}

// prepareFile creates the file or the directory that a request works on.
func (p *player) prepareFile(step Step) {
	query, _ := url.ParseQuery(step.Query)
	comp := query.Get("comp")
	if step.Method == http.MethodPut && comp == "" && step.Answer.Status < 300 {
		p.createParents(step.Path)
	}
	if step.Method == http.MethodPut && comp == "" || step.Answer.Status >= 400 && step.Answer.Status != http.StatusConflict {
		return
	}
	p.createParents(step.Path)
	if query.Get("restype") == "directory" {
		p.create(step.Path, "restype=directory", nil, nil)
		return
	}
	if strings.HasPrefix(comp, "listhandles") || comp == "forceclosehandles" {
		return
	}
	p.createContent(step.Path, p.lengthOf(step.Path), step.Answer)
}
