package group

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/fence"
)

// State is a group as any client can see it. It may be outdated: use it for display.
type State struct {
	Parts   []Part   // by their numbers
	Members []Member // those whose lease is held, the eldest first
}

// Part is a part of a group.
type Part struct {
	Number int
	Held   bool
	Owner  string // the holder, or the last one, as in LockerOptions.Owner
	Member string // the id of that member
	Fence  fence.Token
	Since  time.Time // when it was acquired, by the service's clock
}

// Member is a member of a group.
type Member struct {
	ID    string
	Owner string
	Parts int // that it holds
	Since time.Time
}

// Show returns the state of a group. The number of its parts is that of the last holder of a part. Errors: ErrNotFound if there is no
// such group; *azerr.OpError. Requests: 1.
func Show(ctx context.Context, k *pessimistic.Locker, name string) (State, error) {
	if k == nil {
		return State{}, errNoLocker
	}
	seen, err := look(ctx, k, name, 0)
	if err == nil && len(seen.Parts) == 0 {
		err = &azerr.OpError{Op: "show", Resource: k.Path(name), Err: fmt.Errorf("%w: no member has taken part in such a group yet", azerr.ErrNotFound)}
	}
	return seen.State, err
}

// memberPrefix is between the name of a group and the id of a member.
const memberPrefix = "member/"

// signature is the owner in the record of a member's locks, so that one list shows which member holds a part, and into how many parts
// it divides the group. A later version with other rules has another signature.
func signature(owner, id string, parts int) string {
	return fmt.Sprintf("%s (member %s of %d)", owner, id, parts)
}

var signatures = regexp.MustCompile(`^(.*) \(member ([0-9a-f]+) of (\d{1,3})\)$`)

func parseSignature(text string) (owner, id string, parts int) {
	m := signatures.FindStringSubmatch(text)
	if m == nil {
		return text, "", 0
	}
	parts, _ = strconv.Atoi(m[3])
	return m[1], m[2], parts
}

// sight is what one list shows.
type sight struct {
	State
	mixed error // ErrMixed, with a lock that is held
	dead  int   // members that have left their blobs behind
}

// look lists the group. If parts is 0, it is the number of the last holder of a part.
func look(ctx context.Context, k *pessimistic.Locker, name string, parts int) (sight, error) {
	var all []pessimistic.LockInfo
	for info, err := range k.List(ctx, &pessimistic.ListOptions{Prefix: name + "/"}) {
		if err != nil {
			return sight{}, err
		}
		info.Name = info.Name[len(name)+1:]
		all = append(all, info)
	}
	slices.SortFunc(all, func(a, b pessimistic.LockInfo) int {
		return cmp.Or(cmp.Compare(a.Fence, b.Fence), cmp.Compare(a.Name, b.Name))
	})
	for given, i := parts, 0; given == 0 && i < len(all); i++ {
		if _, _, n := parseSignature(all[i].Owner); n != 0 && partNumber(all[i].Name) >= 0 {
			parts = n
		}
	}
	s := sight{State: State{Parts: make([]Part, parts)}}
	for i := range s.Parts {
		s.Parts[i].Number = i
	}
	for _, info := range all {
		s.add(info, k.Path(name))
	}
	for _, p := range s.Parts {
		if i := slices.IndexFunc(s.Members, func(m Member) bool { return m.ID == p.Member }); p.Held && i >= 0 {
			s.Members[i].Parts++
		}
	}
	return s, nil
}

func (s *sight) add(info pessimistic.LockInfo, path string) {
	owner, id, n := parseSignature(info.Owner)
	number, parts := partNumber(info.Name), len(s.Parts)
	isPart, isMember := number >= 0, strings.HasPrefix(info.Name, memberPrefix)
	switch {
	case info.Held && n != parts && (isPart && n != 0 || isMember && info.Owner != ""): // without an owner it is about to say who it is
		others := fmt.Sprintf("%d parts", n)
		if n == 0 {
			others = "another version of azconc"
		}
		s.mixed = fmt.Errorf("%s: %d parts here, and %s at %s: %w", path, parts, others, owner, ErrMixed)
	case isMember && info.Held && id != "":
		s.Members = append(s.Members, Member{ID: id, Owner: owner, Since: info.Since})
	case isMember && !info.Held:
		s.dead++
	case isPart && number < parts:
		s.Parts[number] = Part{Number: number, Held: info.Held, Owner: owner, Member: id, Fence: info.Fence, Since: info.Since}
	}
}

// partNumber returns the number of the part that has a lock, and -1 for another lock.
func partNumber(lock string) int {
	if n, err := strconv.Atoi(lock); err == nil && n >= 0 && strconv.Itoa(n) == lock {
		return n
	}
	return -1
}

// share returns how many parts a member should have that has own now. The list may not show it, or what it has just taken.
func (s *sight) share(self string, own int) int {
	members := len(s.Members)
	if !slices.ContainsFunc(s.Members, func(m Member) bool { return m.ID == self }) {
		members++ // the youngest
	}
	floor, more := len(s.Parts)/members, len(s.Parts)%members
	before, elder := 0, true // members that come before this one
	for _, m := range s.Members {
		switch {
		case m.ID == self:
			elder = false
		case m.Parts > floor && own <= floor, (m.Parts > floor) == (own > floor) && elder:
			before++
		}
	}
	if before < more {
		return floor + 1
	}
	return floor
}

var errNoLocker = errors.New("group: no Locker")
