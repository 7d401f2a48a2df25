package blobs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/anyblob"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/wire"
)

// NewTags returns the index tags of a blob as a Target. The blob must exist. Content, metadata and ETag are not changed.
//
// Tags are not part of the blob's ETag, so the guard is x-ms-if-tags: the write requires that every tag that was read
// still has its value. Such a predicate cannot require that a tag is absent. The lineage closes that gap: it is stored
// in a tag of its own, LineageKey, one of the ten that a blob may have, and every azconc write changes its value. So
// azconc writers never lose each other's changes, a write cannot be carried out twice, and a lost response is resolved
// as elsewhere (the tag remembers the last 14 writes). The remaining limits:
//
//   - A tag that a writer outside azconc adds between our read and our write, without changing any other tag, is lost.
//   - The first write to a blob without the lineage tag is guarded only by the tags that are there, if any. Of two
//     concurrent first writes one may be lost, and a delayed first write overwrites later ones. If that matters, create
//     the blob with a tag LineageKey (of any value): then all writes are safe.
//   - The tag has room for the last 7 operations, of any age.
//   - A blob with ten tags of its own has no room for the lineage, and refuses an OperationID. No writer can add an
//     eleventh tag either, so the guard is complete; a write whose response was lost is ErrOutcomeUnknown.
//   - With NoLineage the tag has the operations alone, and is removed if there are none: lost responses are then
//     ErrOutcomeUnknown, and the guard has its gaps.
//
// The lineage tag is indexed and billed like any other. Writes of the Blob target keep it, so that they and writers of
// tags notice each other. Version.ETag is computed from the tags by azconc, and can be used for IfMatch only here.
//
// Cost: 1 request to read, 1 to write. Both require permission to read and to write tags.
func NewTags(client *blob.Client) optimistic.Target[map[string]string] {
	return tagsTarget{Client: client}
}

type tagsTarget struct {
	Client *blob.Client
	optimistic.Sealed[map[string]string]
}

// tagCarry is the part of a read that the following write needs.
type tagCarry struct {
	tags map[string]string // without the lineage
	mark string            // the lineage tag's value; empty if there is none, or if it equals Version.Lineage
}

func (t tagsTarget) Resource() string { return resource.Path(t.Client.URL()) }

func (t tagsTarget) Traits() sealed.Traits { return sealed.Traits{Client: t.Client, Scope: "tags"} }

func (t tagsTarget) Clone(value map[string]string) (map[string]string, error) {
	return maps.Clone(value), nil
}

// Read implements Target: one Get Blob Tags.
func (t tagsTarget) Read(ctx context.Context) (*sealed.Version[map[string]string], error) {
	all, err := readTags(ctx, t.Client)
	if err != nil {
		return anyblob.Absent[map[string]string](err)
	}
	v := &sealed.Version[map[string]string]{State: stateOfTags(all)}
	mark := all[optimistic.LineageKey]
	delete(all, optimistic.LineageKey)
	v.Value = all
	return sealed.Carry(v, tagCarry{tags: maps.Clone(all), mark: mark}), nil
}

// Look implements Target: one Get Blob Tags.
func (t tagsTarget) Look(ctx context.Context) (protocol.State, error) {
	all, err := readTags(ctx, t.Client)
	if err != nil {
		return anyblob.AbsentState(err)
	}
	return stateOfTags(all), nil
}

// Prepare implements Target: one Set Blob Tags.
func (t tagsTarget) Prepare(base *sealed.Version[map[string]string], value map[string]string, lineage protocol.Lineage, c sealed.Conditions) (protocol.Prepared, error) {
	if !base.Exists {
		return protocol.Prepared{}, errors.New("a blob's tags cannot be created without the blob: create the blob first")
	}
	carry, ok := sealed.Carried(base).(tagCarry)
	if !ok {
		return protocol.Prepared{}, errors.New("the base version was not read from tags, so the write would have no condition: Read it first")
	}
	if maps.Equal(value, carry.tags) && !lineage.Begins(base.Lineage) {
		return protocol.Prepared{}, nil
	}
	if err := validTags(value); err != nil {
		return protocol.Prepared{}, err
	}
	before, after := maps.Clone(carry.tags), maps.Clone(value)
	if before == nil {
		before = map[string]string{}
	}
	if after == nil {
		after = map[string]string{}
	}
	switch known := protocol.TagLineage(base.Lineage); {
	case carry.mark != "":
		before[optimistic.LineageKey] = carry.mark
	case known != "":
		before[optimistic.LineageKey] = known
	}
	var stored protocol.Lineage
	if text := protocol.TagLineage(lineage); text != "" && len(after) < maxTags {
		after[optimistic.LineageKey], stored = text, protocol.ParseTagLineage(text)
	}
	c = guardTags(c, before)
	opts := blob.SetTagsOptions{AccessConditions: anyblob.AccessConditions(optimistic.Conditions{IfTags: c.IfTags, LeaseID: c.LeaseID})}
	produced := stateOfTags(after).ETag
	send := func(ctx context.Context) (azcore.ETag, error) {
		o := opts
		_, err := wire.Request(ctx, "Set Blob Tags", func(ctx context.Context) (blob.SetTagsResponse, error) {
			return t.Client.SetTags(ctx, after, &o)
		})
		return produced, err
	}
	carry = tagCarry{tags: maps.Clone(value)}
	for name, old := range before {
		if v, kept := after[name]; !kept || v != old {
			return protocol.Prepared{Send: send, Stored: stored, Carry: carry}, nil // its own effect breaks its condition, so it can be carried out only once
		}
	}
	return protocol.Prepared{Send: protocol.LookFirst(send, base.State, "", t.Look), Stored: stored, Carry: carry}, nil
}

// stateOfTags computes a version from the tags. Equal tags have equal versions. Among azconc writers no version occurs
// twice, because each write puts a new id into the lineage tag.
func stateOfTags(all map[string]string) protocol.State {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(sum, "%q=%q\n", name, all[name])
	}
	return protocol.State{
		Exists: true, ETag: azcore.ETag(`"tags-` + hex.EncodeToString(sum.Sum(nil)[:16]) + `"`), Lineage: protocol.ParseTagLineage(all[optimistic.LineageKey]),
	}
}

// Limits of index tags (REST: "Set Blob Tags").
const (
	maxTags     = 10  // tags on a blob
	maxTagName  = 128 // characters in a tag's name
	maxTagValue = 256 // characters in a tag's value
)

// validTags returns an error for tags that the service would refuse. Quotes are not allowed in tags, so a predicate
// made of valid tags needs no escaping.
func validTags(tags map[string]string) error {
	if len(tags) > maxTags {
		return fmt.Errorf("tags: %d are more than the %d that a blob may have", len(tags), maxTags)
	}
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		value := tags[name]
		switch {
		case strings.EqualFold(name, optimistic.LineageKey):
			return fmt.Errorf("tags: %q is azconc's own; choose another name", name)
		case name == "" || len(name) > maxTagName:
			return fmt.Errorf("tags: the name %q does not have 1 to %d characters", name, maxTagName)
		case len(value) > maxTagValue:
			return fmt.Errorf("tags: the value of %q is longer than %d characters", name, maxTagValue)
		}
		for _, text := range []string{name, value} {
			if i := strings.IndexFunc(text, func(r rune) bool { return !tagCharacter(r) }); i >= 0 {
				return fmt.Errorf("tags: %q contains %q; letters, digits, space and + - . / : = _ are allowed", text, text[i:i+1])
			}
		}
	}
	return nil
}

func tagCharacter(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune(" +-./:=_", r)
}
