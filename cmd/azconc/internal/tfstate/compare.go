package tfstate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Difference is a resource that two runs left differently, both of which began with the same state.
type Difference struct {
	Resource string `json:"resource"` // its address
	Ours     string `json:"ours"`     // what the first run did: created, changed, removed, or nothing
	Theirs   string `json:"theirs"`   // what the other runs did
}

// Compare returns the resources in which ours or theirs differ from the state that both began with, sorted by address.
func Compare(read, ours, theirs []byte) ([]Difference, error) {
	var sides [3]map[string]string
	for i, state := range [][]byte{read, ours, theirs} {
		var err error
		if sides[i], err = resources(state); err != nil {
			return nil, err
		}
	}
	all := map[string]bool{}
	for _, side := range sides {
		for address := range side {
			all[address] = true
		}
	}
	var found []Difference
	for _, address := range slices.Sorted(maps.Keys(all)) {
		d := Difference{address, deed(sides[0][address], sides[1][address]), deed(sides[0][address], sides[2][address])}
		if d.Ours != "" || d.Theirs != "" {
			found = append(found, d)
		}
	}
	return found, nil
}

// deed says what became of a resource. A resource that does not exist is empty.
func deed(from, to string) string {
	switch {
	case from == to:
		return ""
	case from == "":
		return "created"
	case to == "":
		return "removed"
	}
	return "changed"
}

// resources returns the instances in a state of version 4, as compact JSON by address.
func resources(state []byte) (map[string]string, error) {
	found := map[string]string{}
	if len(state) == 0 {
		return found, nil
	}
	var s struct {
		Version   int
		Resources []struct {
			Module, Mode, Type, Name string
			Instances                []json.RawMessage
		}
	}
	if err := json.Unmarshal(state, &s); err != nil || s.Version != 4 {
		return nil, errors.New("it is not a state of version 4")
	}
	for _, r := range s.Resources {
		address := r.Type + "." + r.Name
		if r.Mode == "data" {
			address = "data." + address
		}
		if r.Module != "" {
			address = r.Module + "." + address
		}
		for _, raw := range r.Instances {
			var key struct {
				IndexKey any `json:"index_key"`
			}
			var text bytes.Buffer
			if err := errors.Join(json.Unmarshal(raw, &key), json.Compact(&text, raw)); err != nil {
				return nil, fmt.Errorf("%s: %w", address, err)
			}
			index := ""
			switch k := key.IndexKey.(type) {
			case string:
				index = fmt.Sprintf("[%q]", k)
			case float64:
				index = fmt.Sprintf("[%v]", k)
			}
			found[address+index] = text.String()
		}
	}
	return found, nil
}
