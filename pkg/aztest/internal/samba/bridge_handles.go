package samba

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// closing bounds the wait until a client has lost its opens.
const closing = 30 * time.Second

// handle is an open of another client.
type handle struct {
	id, session, address, path string
	pid                        string // the smbd of its client; each client has one
	file                       uint64
	opened                     time.Time
	rights                     []string
}

// table is the part of the output of smbstatus --json that is needed here.
type table struct {
	Sessions map[string]struct {
		ID     string               `json:"session_id"`
		Server struct{ PID string } `json:"server_id"`
		Host   string               `json:"hostname"`
	} `json:"sessions"`
	Files map[string]struct {
		Name string `json:"filename"`
		ID   struct {
			Inode uint64 `json:"inode"`
		} `json:"fileid"`
		Opens map[string]struct {
			Server struct{ PID string } `json:"server_id"`
			ID     string               `json:"share_file_id"`
			Access struct {
				Read   bool `json:"READ_DATA"`
				Write  bool `json:"WRITE_DATA"`
				Append bool `json:"APPEND_DATA"`
				Delete bool `json:"DELETE"`
			} `json:"access_mask"`
			Opened time.Time `json:"opened_at"`
		} `json:"opens"`
	} `json:"open_files"`
}

// handles lists the other clients' opens of the file, in a stable order. The bridge's own opens, which represent
// leases, are not handles.
func (b *Bridge) handles(r *request) ([]handle, error) {
	out, err := b.server.status(r.background())
	if err != nil {
		return nil, err
	}
	var t table
	if err := json.Unmarshal(out, &t); err != nil {
		return nil, fmt.Errorf("smbstatus: %w", err)
	}
	addresses, sessions := map[string]string{}, map[string]string{}
	for _, s := range t.Sessions {
		addresses[s.Server.PID] = strings.TrimPrefix(s.Host, "ipv4:")
		sessions[s.Server.PID] = s.ID
	}
	var list []handle
	for _, f := range t.Files {
		if f.Name != r.path {
			continue
		}
		for _, o := range f.Opens {
			pid := o.Server.PID
			if addresses[pid] == b.client.local {
				continue
			}
			h := handle{id: handleID(pid, o.ID), session: sessions[pid], address: addresses[pid], path: f.Name, pid: pid, file: f.ID.Inode, opened: o.Opened}
			for name, on := range map[string]bool{"Read": o.Access.Read, "Write": o.Access.Write || o.Access.Append, "Delete": o.Access.Delete} {
				if on {
					h.rights = append(h.rights, name)
				}
			}
			slices.Sort(h.rights)
			list = append(list, h)
		}
	}
	slices.SortFunc(list, func(a, b handle) int { return strings.Compare(a.id, b.id) })
	return list, nil
}

// handleID returns a number, as the service's ids are, made of the process and its number for the open.
func handleID(pid, open string) string {
	p, _ := strconv.ParseUint(pid, 10, 32)
	o, _ := strconv.ParseUint(open, 10, 32)
	return strconv.FormatUint(p<<32|o, 10)
}

func (b *Bridge) listHandles(w http.ResponseWriter, r *request) error {
	if err := b.exists(r); err != nil {
		return err
	}
	list, err := b.handles(r)
	if err != nil {
		return err
	}
	type entry struct {
		HandleId, Path, FileId, SessionId, ClientIp, ClientName, OpenTime string
		AccessRight                                                       []string `xml:"AccessRightList>AccessRight"`
	}
	var out struct {
		XMLName    xml.Name `xml:"EnumerationResults"`
		Handle     []entry  `xml:"Entries>Handle"`
		NextMarker string
	}
	for _, h := range list {
		out.Handle = append(out.Handle, entry{h.id, h.path, strconv.FormatUint(h.file, 10), h.session, h.address, "localhost",
			h.opened.UTC().Format(http.TimeFormat), h.rights})
	}
	return answerXML(w, out)
}

// exists opens the file without any access. Handles can be listed and closed while a deletion is pending, because
// closing them completes it.
func (b *Bridge) exists(r *request) error {
	f, err := b.client.Create(r.path, b.opens[r.op])
	if errors.Is(err, StatusDeletePending) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// closeHandles is coarser than the service's: Samba can only disconnect the client that has the handle from the share,
// with all its opens. The number of closed handles counts those of the file.
func (b *Bridge) closeHandles(w http.ResponseWriter, r *request) error {
	if err := b.exists(r); err != nil {
		return err
	}
	before, err := b.handles(r)
	if err != nil {
		return err
	}
	clients := map[string]bool{}
	for _, h := range before {
		if id := r.in.Get("x-ms-handle-id"); id == "*" || id == h.id {
			clients[h.pid] = true
		}
	}
	for _, pid := range slices.Sorted(maps.Keys(clients)) {
		if _, err := b.server.run(r.background(), nil, "smbcontrol", "--configfile="+b.server.config, pid, "close-share", ShareName); err != nil {
			return err
		}
	}
	after, err := b.gone(r, clients)
	if err != nil {
		return err
	}
	r.out.Set("x-ms-number-of-handles-closed", strconv.Itoa(len(before)-len(after)))
	r.out.Set("x-ms-number-of-handles-failed", "0")
	w.WriteHeader(http.StatusOK)
	return nil
}

// gone waits until the clients have no opens of the file left, and returns the opens of other clients.
func (b *Bridge) gone(r *request, clients map[string]bool) ([]handle, error) {
	ctx, cancel := context.WithTimeout(r.background(), closing)
	defer cancel()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		left, err := b.handles(r)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(left, func(h handle) bool { return clients[h.pid] }) {
			return left, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("handles of %s are still open: %w", r.path, context.Cause(ctx))
		case <-tick.C:
		}
	}
}
