package pairs

import (
	"cmp"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/fence"
)

// call is what a way is given. A value is a text, and a call adds its mark to it, or replaces it by its mark.
type call struct {
	mark   string
	id     string
	holder fence.Holder
	match  azcore.ETag // the version that the caller names, or "*"
	from   string      // the text of that version
	lease  string
	tags   string
	dry    bool
	create bool
	bare   bool // no lineage
	always bool // every conflict needs a proof
}

func (c call) send() (o optimistic.SendOptions) {
	if c.bare {
		o.NoLineage = true
	}
	if c.always {
		o.ConfirmConflicts = optimistic.ConfirmAlways
	}
	return o
}

// beside are the conditions beside the version.
func (c call) beside() optimistic.Conditions {
	return optimistic.Conditions{LeaseID: c.lease, IfTags: c.tags}
}

func (c call) conditions() optimistic.Conditions {
	o := c.beside()
	o.IfMatch = c.match
	return o
}

func (c call) updating() *optimistic.UpdateOptions {
	return &optimistic.UpdateOptions{Conditions: c.conditions(), OperationID: c.id, Create: c.create, DryRun: c.dry, SendOptions: c.send()}
}

func (c call) writing() *optimistic.WriteOptions {
	return &optimistic.WriteOptions{Conditions: c.beside(), OperationID: c.id, SendOptions: c.send()}
}

func (c call) transacting() *tables.TransactOptions {
	return &tables.TransactOptions{OperationID: c.id, Holder: c.holder, SendOptions: c.send()}
}

// added returns the text after the call, over one that was read.
func (c call) added(text string) string { return text + c.mark }

// given returns the text after the call if the caller names the version: over the text of that version, or over none.
func (c call) given() string { return c.from + c.mark }

// fence returns the token of the call's holder, or 0.
func (c call) fence() fence.Token {
	if c.holder == nil {
		return 0
	}
	return c.holder.Fence()
}

func (c call) blind() bool { return c.match == azcore.ETagAny }

func (c call) named() bool { return cmp.Or(c.match, azcore.ETagAny) != azcore.ETagAny }
